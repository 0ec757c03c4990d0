// SPDX-License-Identifier: Apache-2.0
/* cli_operator.c: drover operator api sends any request to the agent's API. Runs in: cli. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_file.h"
#include "cli/cli_verbs.h"
#include "common/clock.h"

static struct {
	const char *method;
} options;

const struct cli_flag cli_operator_api_flags[] = {
	{ "X", CLI_FLAG_STRING, &options.method, "METHOD",
	    "the method: GET, or PUT with a file, by default" },
	{ 0 },
};

struct reply {
	struct cli_http_parser parser;
	struct text refusal;
};

static bool
is_success(const struct reply *reply)
{
	return reply->parser.status >= 200 && reply->parser.status <= 299;
}

/* Prints each piece at once, because the answer may be a stream. */
static int
on_body(void *arg, const void *data, size_t len, struct err *e)
{
	struct reply *reply = arg;

	if (!is_success(reply)) {
		if (reply->refusal.len < 65536)
			text_append(&reply->refusal, data, len);
		return 0;
	}
	if (fwrite(data, 1, len, stdout) != len || fflush(stdout) != 0)
		return err_set(e, -errno, "write the answer");
	return 0;
}

static int
send_request(
    struct cli *cli, const char *method, const char *target, const char *body, struct err *e)
{
	struct reply reply = { 0 };
	cleanup_close int fd = -1;
	int r;

	cli_http_parser_init(&reply.parser, on_body, &reply);
	fd = cli_api_open(cli, method, target, body, e);
	if (fd < 0)
		return cli_api_explain(cli, e);
	do {
		r = cli_http_recv(fd, &reply.parser, clock_ms() + cli->timeout_ms, e);
	} while (r == 0);
	if (r > 0)
		r = is_success(&reply)
			? 0
			: cli_api_refusal(cli, reply.parser.status, str(reply.refusal.text), e);
	text_done(&reply.refusal);
	return r;
}

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
		r = send_request(cli, method, argv[0], file.text, &e);
	cli_file_done(&file);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}
