/* SPDX-License-Identifier: Apache-2.0 */
/* cli_stream.h: requests whose answer is read while it comes. Runs in: cli. */
#ifndef DROVER_CLI_CLI_STREAM_H
#define DROVER_CLI_CLI_STREAM_H

#include "cli/cli.h"
#include "cli/cli_http.h"

struct cli_stream {
	const char *method, *target, *body; /* body: NULL for none */
	bool endless;              /* once the answer has begun, its next piece may take any time */
	cli_http_body_fn *on_body; /* gets the pieces of an answer with a status of success */
	void *arg;
};

/* Sends the request and passes on the answer until it ends. Returns 0; -ENOENT or -EREMOTEIO for an
 * error status, with the answer's text in *e; -ECONNRESET if the agent ends; -errno otherwise. */
int cli_stream(struct cli *cli, const struct cli_stream *stream, struct err *e);
/* Writes a piece to stdout at once, also to a pipe: for on_body. */
int cli_stream_print(void *arg, const void *data, size_t len, struct err *e);

#endif
