// SPDX-License-Identifier: Apache-2.0
/* cli_monitor.c: drover monitor follows the agent's log. Runs in: cli. */
#include <stdlib.h>

#include "cli/cli_api.h"
#include "cli/cli_stream.h"
#include "cli/cli_verbs.h"
#include "common/cleanup.h"

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

static int
follow_log(struct cli *cli, const char *node, struct err *e)
{
	cleanup_free char *target = cli_target(
	    "/v1/agent/monitor?plain=true&log_level=%s&log_json=%s&node_id=%s&server_id=%s",
	    options.level, options.json || cli->json ? "true" : "false", node,
	    options.server ?: "");

	return cli_stream(cli,
	    &(struct cli_stream){
		.method = "GET", .target = target, .endless = true, .on_body = cli_stream_print },
	    e);
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
