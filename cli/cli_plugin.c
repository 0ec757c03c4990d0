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
print_names(const json_t *instance, const char *name, const char *member)
{
	cleanup_free char *names = cli_join(cli_json_get(instance, member), ", ");

	cli_field(name, "%s", names);
}

static void
print_topology(const json_t *instance)
{
	const json_t *segments = cli_json_get(instance, "Topology/Segments"), *value;
	struct text t = { 0 };
	const char *key;

	text_append(&t, "", 0);
	json_object_foreach ((json_t *)segments, key, value)
		text_printf(&t, "%s%s=%s", t.len > 0 ? ", " : "", key, json_string_value(value));
	cli_field("Topology", "%s", t.text);
	text_done(&t);
}

static void
print_instance(const struct cli *cli, const json_t *instance)
{
	int64_t volumes = cli_json_int(instance, "Volumes"),
		max = cli_json_int(instance, "MaxVolumes");
	const char *alloc = cli_json_str(instance, "AllocID");
	char since[CLI_TIME_SIZE];

	cli_head(*alloc ? "Instance of Allocation %.*s" : "Instance of the Configuration",
	    cli->id_len, alloc);
	cli_field("Node", "%.*s", cli->id_len, cli_json_str(instance, "NodeID"));
	cli_field("Type", "%s", cli_json_str(instance, "Type"));
	cli_field("Version", "%s", cli_json_str(instance, "Version"));
	cli_field("Healthy", "%s", cli_yes(cli_json_true(instance, "Healthy")));
	cli_field("Since", "%s", cli_time(cli, cli_json_int(instance, "HealthSince"), since));
	cli_field("Description", "%s", cli_json_str(instance, "HealthDescription"));
	cli_field("External Node ID", "%s", cli_json_str(instance, "ExternalNodeID"));
	print_topology(instance);
	if (*cli_json_str(instance, "ExternalNodeID") && max > 0)
		cli_field("Volumes", "%lld of at most %lld", (long long)volumes, (long long)max);
	else if (*cli_json_str(instance, "ExternalNodeID"))
		cli_field("Volumes", "%lld", (long long)volumes);
	print_names(instance, "Plugin Capabilities", "PluginCapabilities");
	print_names(instance, "Expansion", "ExpansionCapabilities");
	print_names(instance, "Controller Capabilities", "ControllerCapabilities");
	print_names(instance, "Node Capabilities", "NodeCapabilities");
	print_names(instance, "Group Capabilities", "GroupControllerCapabilities");
}

/* Servers do not report instances, only what a node says of each service. */
static void
print_instances_or_services(const struct cli *cli, const json_t *plugin)
{
	const json_t *instances = cli_json_get(plugin, "Instances"), *instance;
	size_t i;

	json_array_foreach (instances, i, instance)
		print_instance(cli, instance);
	if (json_array_size(instances) > 0)
		return;
	print_instances(cli, "Controllers", cli_json_get(plugin, "Controllers"));
	print_instances(cli, "Nodes", cli_json_get(plugin, "Nodes"));
}

static void
print_capacity(const json_t *plugin)
{
	int64_t largest = cli_json_int(plugin, "Capacity/MaximumVolumeSize"),
		smallest = cli_json_int(plugin, "Capacity/MinimumVolumeSize");
	char left[CLI_TIME_SIZE], least[CLI_TIME_SIZE], most[CLI_TIME_SIZE];

	if (json_is_object(cli_json_get(plugin, "Capacity")))
		cli_field("Capacity", "%s left%s%s%s%s",
		    cli_bytes(cli_json_int(plugin, "Capacity/Available"), left),
		    smallest > 0 ? ", for a volume at least " : "",
		    smallest > 0 ? cli_bytes(smallest, least) : "",
		    largest > 0 ? ", for a volume at most " : "",
		    largest > 0 ? cli_bytes(largest, most) : "");
	else
		cli_field("Capacity", "%s", cli_json_str(plugin, "CapacityError"));
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
	print_capacity(plugin);
	print_instances_or_services(cli, plugin);
	cli_head("Allocations");
	cli_print_allocs(cli, cli_json_get(plugin, "Allocations"));
}

static int
show_plugin(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/plugin/csi/%s?refresh=true", id);

	return cli_show(cli, target, print_plugin, e);
}

int
cli_plugin_status(struct cli *cli, int argc, char **argv)
{
	return cli_list_or_show(cli, &cli_kind_plugin, argc, argv, list_plugins, show_plugin);
}
