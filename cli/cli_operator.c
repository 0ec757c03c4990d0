// SPDX-License-Identifier: Apache-2.0
/* cli_operator.c: drover operator api sends any request to the agent's API. Runs in: cli. */
#include <errno.h>
#include <string.h>

#include "cli/cli_file.h"
#include "cli/cli_stream.h"
#include "cli/cli_verbs.h"

static struct {
	const char *method;
} options;

const struct cli_flag cli_operator_api_flags[] = {
	{ "X", CLI_FLAG_STRING, &options.method, "METHOD",
	    "the method: GET, or PUT with a file, by default" },
	{ 0 },
};

int
cli_operator_api(struct cli *cli, int argc, char **argv)
{
	const char *method = options.method ? options.method : argc > 1 ? "PUT" : "GET";
	struct cli_file file = { 0 };
	struct err e = { 0 };
	int r = 0;

	if (argv[0][0] != '/' || strpbrk(argv[0], " \r\n") || strpbrk(method, " \r\n"))
		r = err_say(
		    &e, -EINVAL, "\"%s\" is not a path of the API, such as /v1/jobs", argv[0]);
	if (r == 0 && argc > 1)
		r = cli_file_open(argv[1], &file, &e);
	if (r == 0)
		r = cli_stream(cli,
		    &(struct cli_stream){ .method = method,
			.target = argv[0],
			.body = file.text,
			.on_body = cli_stream_print },
		    &e);
	cli_file_done(&file);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}
