// SPDX-License-Identifier: Apache-2.0
/* cli_plugin.c: drover plugin status. Runs in: cli. */
#include <stdlib.h>

#include "cli/cli_alloc.h"
#include "cli/cli_api.h"
#include "cli/cli_list.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"

static void
plugin_cells(const struct cli *cli, struct cli_table *t, const json_t *plugin)
{
	(void)cli;
	cli_cell(t, "%s", cli_json_str(plugin, "ID"));
	cli_cell(t, "%s", cli_json_str(plugin, "Provider"));
	cli_cell(t, "%lld/%lld", (long long)cli_json_int(plugin, "ControllersHealthy"),
	    (long long)cli_json_int(plugin, "ControllersExpected"));
	cli_cell(t, "%lld/%lld", (long long)cli_json_int(plugin, "NodesHealthy"),
	    (long long)cli_json_int(plugin, "NodesExpected"));
}

static const struct cli_list plugins = {
	.none = "No plugins",
	CLI_HEADS("ID", "Provider", "Controllers Healthy", "Nodes Healthy"),
	.cells = plugin_cells,
};

static int
list_plugins(struct cli *cli, struct err *e)
{
	return cli_list_get(cli, &plugins, "/v1/plugins?type=csi", e);
}

/* Prints what each node reports about the plugin's controller or node service. */
static void
print_instances(const struct cli *cli, const char *head, const json_t *map)
{
	struct cli_table *t;
	const json_t *info;
	const char *node;

	if (json_object_size(map) == 0)
		return;
	cli_head("%s", head);
	t = CLI_TABLE("Node", "Allocation", "Healthy", "Description");
	json_object_foreach ((json_t *)map, node, info) {
		cli_table_row(t);
		cli_cell(t, "%.*s", cli->id_len, node);
		cli_cell(t, "%.*s", cli->id_len, cli_json_str(info, "AllocID"));
		cli_cell(t, "%s", cli_yes(cli_json_true(info, "Healthy")));
		cli_cell(t, "%s", cli_json_str(info, "HealthDescription"));
	}
	cli_table_print(t);
}

static void
print_plugin(const struct cli *cli, const json_t *plugin)
{
	cli_field("ID", "%s", cli_json_str(plugin, "ID"));
	cli_field("Provider", "%s", cli_json_str(plugin, "Provider"));
	cli_field("Version", "%s", cli_json_str(plugin, "Version"));
	cli_field("Controllers Healthy", "%lld of %lld",
	    (long long)cli_json_int(plugin, "ControllersHealthy"),
	    (long long)cli_json_int(plugin, "ControllersExpected"));
	cli_field("Nodes Healthy", "%lld of %lld", (long long)cli_json_int(plugin, "NodesHealthy"),
	    (long long)cli_json_int(plugin, "NodesExpected"));
	print_instances(cli, "Controllers", cli_json_get(plugin, "Controllers"));
	print_instances(cli, "Nodes", cli_json_get(plugin, "Nodes"));
	cli_head("Allocations");
	cli_print_allocs(cli, cli_json_get(plugin, "Allocations"));
}

static int
show_plugin(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/plugin/csi/%s", id);

	return cli_show(cli, target, print_plugin, e);
}

int
cli_plugin_status(struct cli *cli, int argc, char **argv)
{
	return cli_list_or_show(cli, &cli_kind_plugin, argc, argv, list_plugins, show_plugin);
}
