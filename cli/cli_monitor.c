// SPDX-License-Identifier: Apache-2.0
/* cli_monitor.c: drover monitor follows the agent's log. Runs in: cli. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "common/cleanup.h"
#include "common/clock.h"

static struct {
	const char *level, *node, *server;
	bool json;
} options = { .level = "info" };

const struct cli_flag cli_monitor_flags[] = {
	{ "log-level", CLI_FLAG_STRING, &options.level, "LEVEL",
	    "error, warn, info or debug, independent of the agent's own level (info)" },
	{ "log-json", CLI_FLAG_BOOL, &options.json, NULL, "print each line as JSON" },
	{ "node-id", CLI_FLAG_STRING, &options.node, "NODE", "monitor this node of the cluster" },
	{ "server-id", CLI_FLAG_STRING, &options.server, "SERVER",
	    "monitor this server: its name, or \"leader\"" },
	{ 0 },
};

struct answer {
	struct cli_http_parser parser;
	char refusal[512];
	size_t len;
};

static int
on_body(void *arg, const void *data, size_t len, struct err *e)
{
	struct answer *a = arg;
	const char *bytes = data;

	for (size_t i = 0; a->parser.status != 200 && i < len; i++)
		if (a->len < sizeof a->refusal - 1)
			a->refusal[a->len++] = bytes[i];
	if (a->parser.status != 200)
		return 0;
	/* Flushes each line at once, also to a pipe. */
	if (fwrite(data, 1, len, stdout) != len || fflush(stdout) != 0)
		return err_set(e, -errno, "write the log");
	return 0;
}

static int
follow_log(struct cli *cli, const char *node, struct err *e)
{
	cleanup_free char *target = cli_target(
	    "/v1/agent/monitor?plain=true&log_level=%s&log_json=%s&node_id=%s&server_id=%s",
	    options.level, options.json || cli->json ? "true" : "false", node,
	    options.server ?: "");
	const uint64_t deadline_ms = clock_ms() + cli->timeout_ms;
	struct answer a = { 0 };
	cleanup_close int fd = -1;
	int r;

	cli_http_parser_init(&a.parser, on_body, &a);
	fd = cli_api_open(cli, "GET", target, NULL, e);
	if (fd < 0)
		return cli_api_explain(cli, e);
	do {
		r = cli_http_recv(fd, &a.parser, a.parser.status ? UINT64_MAX : deadline_ms, e);
	} while (r == 0);
	if (r == -ECONNRESET && a.parser.status == 200)
		return err_say(e, r, "the agent has exited");
	if (r < 0)
		return r;
	return a.parser.status == 200 ? 0 : err_say(e, -EREMOTEIO, "%s", a.refusal);
}

int
cli_monitor(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *node = NULL;
	struct err e = { 0 };
	int r = 0;

	(void)argc;
	(void)argv;
	if (options.node)
		r = cli_id_resolve(cli, &cli_kind_node, options.node, &node, &e);
	if (r == 0)
		r = follow_log(cli, node ?: "", &e);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}
