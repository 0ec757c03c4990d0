// SPDX-License-Identifier: Apache-2.0
/* cli_system.c: drover system gc, drover node eligibility. Runs in: cli. */
#include <errno.h>

#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"

static struct {
	bool enable, disable, self;
} options;

const struct cli_flag cli_node_eligibility_flags[] = {
	{ "disable", CLI_FLAG_BOOL, &options.disable, NULL, "accept no new allocations" },
	{ "enable", CLI_FLAG_BOOL, &options.enable, NULL, "accept allocations again" },
	{ "self", CLI_FLAG_BOOL, &options.self, NULL, "the node of this agent (the default)" },
	{ 0 },
};

int
cli_system_gc(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };
	int r = cli_api_send(cli, "PUT", "/v1/system/gc", NULL, NULL, &e);

	(void)argc;
	(void)argv;
	if (r < 0)
		return cli_fail(cli, &e);
	cli_say(cli, "Ended allocations and jobs are being removed");
	return CLI_OK;
}

static int
set_eligibility(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/node/%s/eligibility", id);
	cleanup_json json_t *answer = NULL;
	int r = cli_api_send_new(cli, "PUT", target,
	    json_pack("{s:s, s:s}", "NodeID", id, "Eligibility",
		options.enable ? "eligible" : "ineligible"),
	    &answer, e);

	if (r == 0 && cli->json)
		r = cli_json_print(answer, e);
	if (r == 0)
		cli_say(cli, "Node \"%.*s\" takes %s", cli->id_len, id,
		    options.enable ? "allocations" : "no new allocations; running ones continue");
	return r;
}

int
cli_node_eligibility(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *id = NULL;
	struct err e = { 0 };
	int r = 0;

	if (options.enable == options.disable)
		r = err_say(&e, -EINVAL, "give either -enable or -disable");
	else if (argc > 0 && options.self)
		r = err_say(&e, -EINVAL, "-self and \"%s\" name two different nodes", argv[0]);
	if (r == 0)
		r = argc ? cli_id_resolve(cli, &cli_kind_node, argv[0], &id, &e)
			 : cli_id_self(cli, &id, &e);
	if (r == 0)
		r = set_eligibility(cli, id, &e);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}
