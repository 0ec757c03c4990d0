// SPDX-License-Identifier: Apache-2.0
/* cli_server.c: drover agent-info, server members and node config: the agent and the servers that
 * it knows. Runs in: cli. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_list.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "common/mem.h"

static struct {
	bool list, update;
} options;

const struct cli_flag cli_node_config_flags[] = {
	{ "servers", CLI_FLAG_BOOL, &options.list, NULL, "list the servers that the agent knows" },
	{ "update-servers", CLI_FLAG_BOOL, &options.update, NULL,
	    "not supported: servers are changed in the configuration" },
	{ 0 },
};

static void
print_agent(const struct cli *cli, const json_t *self)
{
	const json_t *facts;
	const char *name;

	(void)cli;
	cli_field("Name", "%s", cli_json_str(self, "config/Name"));
	cli_field("Version", "%s", cli_json_str(self, "config/Version/Version"));
	cli_field("Region", "%s", cli_json_str(self, "config/Region"));
	cli_field("Datacenter", "%s", cli_json_str(self, "config/Datacenter"));
	cli_field("Data Directory", "%s", cli_json_str(self, "config/DataDir"));
	json_object_foreach (cli_json_get(self, "stats"), name, facts)
		cli_map_print(name, facts);
}

int
cli_agent_info(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };

	(void)argc;
	(void)argv;
	return cli_show(cli, "/v1/agent/self", print_agent, &e) < 0 ? cli_fail(cli, &e) : CLI_OK;
}

/* The leaders of all regions that have been asked for, as address:port. */
static json_t *leaders;

/* Returns the leader of a region; "" if it is unknown. */
static const char *
leader_of(struct cli *cli, const char *region)
{
	cleanup_free char *target = cli_target("/v1/status/leader?region=%s", region);
	json_t *leader = json_object_get(leaders, region);
	struct err e = { 0 };

	if (!leader) {
		if (cli_api_get(cli, target, &leader, &e) < 0 || !json_is_string(leader)) {
			json_decref(leader);
			leader = json_string("");
		}
		(void)json_object_set_new(leaders, region, leader);
	}
	return json_string_value(leader) ?: "";
}

static void
member_cells(const struct cli *cli, struct cli_table *t, const json_t *member)
{
	const char *address = cli_json_str(member, "Addr");
	const char *leader = cli_json_str(leaders, cli_json_str(member, "Tags/region"));
	cleanup_free char *own = mem_printf(
	    strchr(address, ':') ? "[%s]:%s" : "%s:%s", address, cli_json_str(member, "Tags/port"));

	cli_cell(t, "%s", cli_json_str(member, "Name"));
	cli_cell(t, "%s", address);
	cli_cell(t, "%lld", (long long)cli_json_int(member, "Port"));
	cli_cell(t, "%s", cli_json_str(member, "Status"));
	cli_cell(t, "%s", cli_yes(strcmp(leader, own) == 0));
	CLI_TEXT_CELLS(t, member, "Tags/raft_vsn", "Tags/build", "Tags/dc", "Tags/region");
	if (cli->verbose) {
		cleanup_free char *tags =
		    json_dumps(cli_json_get(member, "Tags"), JSON_COMPACT | JSON_SORT_KEYS);

		cli_cell(t, "%lld", (long long)cli_json_int(member, "ProtocolCur"));
		cli_cell(t, "%s", tags ?: "");
	}
}

#define MEMBER_HEADS                                                                               \
	"Name", "Address", "?Port", "Status", "Leader", "?Raft Version", "?Build", "?Datacenter",  \
	    "Region"

static const struct cli_list members = { CLI_HEADS(MEMBER_HEADS), .cells = member_cells };
static const struct cli_list verbose_members = { CLI_HEADS(MEMBER_HEADS, "Protocol", "Tags"),
	.cells = member_cells };

static int
list_members(struct cli *cli, struct err *e)
{
	cleanup_json json_t *answer = NULL;
	const json_t *member;
	size_t i;
	int r = cli_api_fetch(cli, "/v1/agent/members", &answer, e);

	if (r <= 0)
		return r;
	json_array_foreach (cli_json_get(answer, "Members"), i, member)
		(void)leader_of(cli, cli_json_str(member, "Tags/region"));
	cli_list_print(
	    cli, cli->verbose ? &verbose_members : &members, cli_json_get(answer, "Members"));
	return 0;
}

int
cli_server_members(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };
	int r;

	(void)argc;
	(void)argv;
	leaders = json_object();
	r = list_members(cli, &e);
	json_decref(leaders);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}

static void
print_servers(const struct cli *cli, const json_t *servers)
{
	const json_t *server;
	size_t i;

	if (json_array_size(servers) == 0)
		cli_say(cli, "No servers: this agent works alone");
	json_array_foreach (servers, i, server)
		cli_line("%s", json_string_value(server) ?: "");
}

/* Sends the request that the agent refuses, with its sentence about what to do instead. */
static int
update_servers(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct text target = { 0 };
	int r;

	text_printf(&target, "/v1/agent/servers");
	for (int i = 0; i < argc; i++) {
		cleanup_free char *one = cli_target("address=%s", argv[i]);

		text_printf(&target, "%s%s", i == 0 ? "?" : "&", one);
	}
	r = cli_api_send(cli, "PUT", target.text, NULL, NULL, e);
	text_done(&target);
	return r;
}

int
cli_node_config(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };
	int r;

	if (options.list == options.update || (options.list && argc > 0))
		r = err_say(&e, -EINVAL, "usage: drover node config -servers");
	else if (options.update)
		r = update_servers(cli, argc, argv, &e);
	else
		r = cli_show(cli, "/v1/agent/servers", print_servers, &e);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}
