// SPDX-License-Identifier: Apache-2.0
/* cli_leaks.c: drover leaks. Runs in: cli. */
#include "cli/cli_list.h"
#include "cli/cli_verbs.h"

static void
put_cells(const struct cli *cli, struct cli_table *t, const json_t *leak)
{
	(void)cli;
	CLI_TEXT_CELLS(t, leak, "Kind", "Name", "Path", "Detail");
}

static const struct cli_list leaks = {
	.none = "no leaks",
	CLI_HEADS("Kind", "Name", "Path", "Detail"),
	.cells = put_cells,
};

int
cli_leaks(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *list = NULL;
	struct err e = { 0 };
	int r;

	(void)argc;
	(void)argv;
	r = cli_api_get(cli, "/v1/agent/leaks", &list, &e);
	if (r == 0 && cli->json)
		r = cli_json_print(list, &e);
	if (r < 0)
		return cli_fail(cli, &e);
	if (!cli->json)
		cli_list_print(cli, &leaks, list);
	return json_array_size(list) ? CLI_FAILED : CLI_OK;
}
