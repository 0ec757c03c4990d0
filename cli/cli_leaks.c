// SPDX-License-Identifier: Apache-2.0
/* cli_leaks.c: drover leaks. Runs in: cli. */
#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"

int
cli_leaks(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *list = NULL;
	struct cli_table *t;
	struct err e = { 0 };
	const json_t *leak;
	size_t i;
	int r;

	(void)argc;
	(void)argv;
	r = cli_api_get(cli, "/v1/agent/leaks", &list, &e);
	if (r == 0 && cli->json)
		r = cli_json_print(list, &e);
	if (r < 0)
		return cli_fail(cli, &e);
	if (cli->json)
		return json_array_size(list) ? CLI_FAILED : CLI_OK;
	if (json_array_size(list) == 0) {
		cli_say(cli, "no leaks");
		return CLI_OK;
	}
	t = CLI_TABLE("Kind", "Name", "Path", "Detail");
	json_array_foreach (list, i, leak) {
		cli_table_row(t);
		cli_cell(t, "%s", cli_json_str(leak, "Kind"));
		cli_cell(t, "%s", cli_json_str(leak, "Name"));
		cli_cell(t, "%s", cli_json_str(leak, "Path"));
		cli_cell(t, "%s", cli_json_str(leak, "Detail"));
	}
	cli_table_print(t);
	return CLI_FAILED;
}
