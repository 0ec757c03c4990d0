// SPDX-License-Identifier: Apache-2.0
/* cli_stream.c: requests whose answer is read while it comes. Runs in: cli. */
#include "cli/cli_stream.h"

#include <errno.h>
#include <stdio.h>

#include "cli/cli_api.h"
#include "common/cleanup.h"
#include "common/clock.h"

#define REFUSAL_MAX 65536 /* bytes of the text of an error */

struct reply {
	struct cli_http_parser parser;
	const struct cli_stream *stream;
	struct text refusal;
};

static bool
is_success(const struct reply *reply)
{
	return reply->parser.status >= 200 && reply->parser.status <= 299;
}

static int
on_body(void *arg, const void *data, size_t len, struct err *e)
{
	struct reply *reply = arg;

	if (is_success(reply))
		return reply->stream->on_body(reply->stream->arg, data, len, e);
	if (reply->refusal.len < REFUSAL_MAX)
		text_append(&reply->refusal, data, len);
	return 0;
}

int
cli_stream_print(void *arg, const void *data, size_t len, struct err *e)
{
	(void)arg;
	if (fwrite(data, 1, len, stdout) != len || fflush(stdout) != 0)
		return err_set(e, -errno, "write the answer");
	return 0;
}

static int
receive(struct cli *cli, int fd, struct reply *reply, struct err *e)
{
	bool begun;
	int r;

	do {
		begun = reply->stream->endless && reply->parser.status;
		r = cli_http_recv(
		    fd, &reply->parser, begun ? UINT64_MAX : clock_ms() + cli->timeout_ms, e);
	} while (r == 0);
	if (r == -ECONNRESET && begun)
		return err_say(e, r, "the agent has exited");
	if (r < 0 || is_success(reply))
		return r < 0 ? r : 0;
	return cli_api_refusal(cli, reply->parser.status, str(reply->refusal.text), e);
}

int
cli_stream(struct cli *cli, const struct cli_stream *stream, struct err *e)
{
	struct reply reply = { .stream = stream };
	cleanup_close int fd = -1;
	int r;

	cli_http_parser_init(&reply.parser, on_body, &reply);
	fd = cli_api_open(cli, stream->method, stream->target, stream->body, e);
	if (fd < 0)
		return cli_api_explain(cli, e);
	r = receive(cli, fd, &reply, e);
	text_done(&reply.refusal);
	return r;
}
