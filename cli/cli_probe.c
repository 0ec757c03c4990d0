// SPDX-License-Identifier: Apache-2.0
/* cli_probe.c: drover probe. Runs in: cli. */
#include <errno.h>
#include <stdio.h>

#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"

/* The answer of a node that is not healthy has the status 503. */
static int
ask_probe(struct cli *cli, json_t **ret, struct err *e)
{
	int r = cli_api_get(cli, "/v1/agent/health?deep=1", ret, e);

	if (r != -EREMOTEIO || cli->status != 503 || !cli->refusal)
		return r;
	*ret = json_loads(cli->refusal, 0, NULL);
	return *ret ? 0 : r;
}

static void
print_components(const struct cli *cli, const json_t *components)
{
	struct cli_table *t = CLI_TABLE("Component", "State", "Since", "Took", "Message");
	char since[CLI_TIME_SIZE], took[CLI_TIME_SIZE];
	const json_t *c;
	const char *name;

	json_object_foreach ((json_t *)components, name, c) {
		cli_table_row(t);
		cli_cell(t, "%s", name);
		cli_cell(t, "%s", cli_json_str(c, "state"));
		cli_cell(t, "%s", cli_time(cli, cli_json_time_ns(c, "since"), since));
		cli_cell(
		    t, "%s", cli_span(cli_scale(cli_json_int(c, "duration_ms"), 1000000), took));
		cli_cell(t, "%s", cli_json_str(c, "message"));
	}
	cli_table_print(t);
}

/* The last error of each component that had one, also if it works again. */
static void
print_errors(const struct cli *cli, const json_t *components)
{
	struct cli_table *t = CLI_TABLE("Component", "Time", "Message");
	char when[CLI_TIME_SIZE];
	const json_t *c;
	const char *name;

	json_object_foreach ((json_t *)components, name, c) {
		if (!cli_json_get(c, "last_error"))
			continue;
		cli_table_row(t);
		cli_cell(t, "%s", name);
		cli_cell(t, "%s", cli_time(cli, cli_json_time_ns(c, "last_error_at"), when));
		cli_cell(t, "%s", cli_json_str(c, "last_error"));
	}
	cli_table_print_under(t, "Last Errors");
}

static void
print_probe(const struct cli *cli, const json_t *body)
{
	char since[CLI_TIME_SIZE];

	cli_field("Node", "%s", cli_json_str(body, "client/state"));
	if (cli_json_str(body, "servers/since")[0])
		cli_field("Servers", "%s since %s: %s", cli_json_str(body, "servers/state"),
		    cli_time(cli, cli_json_time_ns(cli_json_get(body, "servers"), "since"), since),
		    cli_json_str(body, "servers/message"));
	(void)printf("\n");
	print_components(cli, cli_json_get(body, "components"));
	if (cli->verbose)
		print_errors(cli, cli_json_get(body, "components"));
}

int
cli_probe(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *body = NULL;
	struct err e = { 0 };
	int r;

	(void)argc;
	(void)argv;
	r = ask_probe(cli, &body, &e);
	if (r == 0 && cli->json)
		r = cli_json_print(body, &e);
	if (r < 0)
		return cli_fail(cli, &e);
	if (!cli->json)
		print_probe(cli, body);
	return cli_json_true(body, "client/ok") ? CLI_OK : CLI_FAILED;
}
