/* SPDX-License-Identifier: Apache-2.0 */
/* cli_secrets.h: the flags -secret and -secret-file, whose values no output shows. Runs in: cli. */
#ifndef DROVER_CLI_CLI_SECRETS_H
#define DROVER_CLI_CLI_SECRETS_H

#include <jansson.h>

#include "cli/cli.h"
#include "model/engine/containers.h"

struct cli_secrets {
	struct strings given;
	const char *file;
};

extern struct cli_secrets cli_secrets;
#define CLI_SECRET_FLAGS                                                                           \
	{ "secret", CLI_FLAG_SECRETS, &cli_secrets.given, "KEY=VALUE",                             \
		"a secret for the plugin; may be repeated" },                                      \
	{                                                                                          \
		"secret-file", CLI_FLAG_STRING, &cli_secrets.file, "FILE",                         \
		    "a file with a line KEY=VALUE for each secret, or - for stdin"                 \
	}

/* Reads the secrets into *ret, an object, which is empty if there are none. Returns 0, or -errno
 * with a sentence without them. */
int cli_secrets_read(json_t **ret, struct err *e);
/* Lets the next requests have the secrets in a header, if there are some. Returns as
 * cli_secrets_read(); -EINVAL if a header cannot hold one. */
int cli_secrets_set_header(struct cli *cli, struct err *e);

#endif
