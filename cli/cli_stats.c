// SPDX-License-Identifier: Apache-2.0
/* cli_stats.c: drover alloc stats, and the figures of drover node status -stats. Runs in: cli. */
#include "cli/cli_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_list.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "common/duration.h"

static double
number(const json_t *value, const char *path)
{
	return json_number_value(cli_json_get(value, path));
}

/* Allocations. */

/* Empty if the kernel does not report the figure. */
static void
memory_cell(struct cli_table *t, const json_t *memory, const char *field, const char *measured)
{
	const json_t *names = cli_json_get(memory, "Measured"), *name;
	char size[CLI_TIME_SIZE];
	size_t i;

	json_array_foreach (names, i, name) {
		if (strcmp(json_string_value(name) ?: "", measured) == 0) {
			cli_cell(t, "%s", cli_bytes(cli_json_int(memory, field), size));
			return;
		}
	}
	cli_cell(t, "%s", "");
}

static void
add_usage(struct cli_table *t, const char *name, const json_t *usage)
{
	const json_t *cpu = cli_json_get(usage, "CpuStats"), *memory;

	memory = cli_json_get(usage, "MemoryStats");
	cli_table_row(t);
	cli_cell(t, "%s", name);
	cli_cell(t, "%.1f %%", number(cpu, "Percent"));
	cli_cell(t, "%.0f MHz", number(cpu, "TotalTicks"));
	cli_cell(t, "%.1f %%", number(cpu, "UserMode"));
	cli_cell(t, "%.1f %%", number(cpu, "SystemMode"));
	memory_cell(t, memory, "RSS", "RSS");
	memory_cell(t, memory, "Cache", "Cache");
	memory_cell(t, memory, "Usage", "Usage");
	memory_cell(t, memory, "MaxUsage", "Max Usage");
	memory_cell(t, memory, "Swap", "Swap");
}

static struct cli_table *
usage_table(const char *what)
{
	return CLI_TABLE(what, "CPU", "?Clock", "?User", "?System", "?RSS", "?Cache", "Memory",
	    "?Most", "?Swap");
}

static void
print_processes(const char *task, const json_t *pids)
{
	struct cli_table *t;
	const json_t *usage;
	const char *pid;

	if (json_object_size(pids) == 0)
		return;
	cli_head("Processes of task \"%s\"", task);
	t = usage_table("Pid");
	json_object_foreach ((json_t *)pids, pid, usage)
		add_usage(t, pid, usage);
	cli_table_print(t);
}

static void
print_throttled(const char *task, const json_t *cpu)
{
	char span[CLI_TIME_SIZE];

	if (cli_json_int(cpu, "ThrottledPeriods") > 0)
		cli_field("Throttled", "task \"%s\" in %lld periods, %s together", task,
		    (long long)cli_json_int(cpu, "ThrottledPeriods"),
		    cli_span(cli_json_int(cpu, "ThrottledTime"), span));
}

static void
print_alloc(const struct cli *cli, const json_t *stats)
{
	const json_t *tasks = cli_json_get(stats, "Tasks"), *task;
	struct cli_table *t;
	const char *name;

	if (json_object_size(tasks) == 0) {
		(void)printf("No task is running\n");
		return;
	}
	t = usage_table("Task");
	json_object_foreach ((json_t *)tasks, name, task)
		add_usage(t, name, cli_json_get(task, "ResourceUsage"));
	if (json_object_size(tasks) > 1)
		add_usage(t, "all", cli_json_get(stats, "ResourceUsage"));
	cli_table_print(t);
	json_object_foreach ((json_t *)tasks, name, task) {
		print_throttled(name, cli_json_get(task, "ResourceUsage/CpuStats"));
		if (cli->verbose)
			print_processes(name, cli_json_get(task, "Pids"));
	}
}

int
cli_print_alloc_stats(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/client/allocation/%s/stats", id);

	return cli_show(cli, target, print_alloc, e);
}

int
cli_alloc_stats(struct cli *cli, int argc, char **argv)
{
	return cli_with_id(cli, &cli_kind_alloc, argv[0], cli_print_alloc_stats);
}

/* Nodes. */

static void
core_cells(const struct cli *cli, struct cli_table *t, const json_t *core)
{
	(void)cli;
	cli_cell(t, "%s", cli_json_str(core, "CPU"));
	cli_cell(t, "%.1f %%", number(core, "TotalPercent"));
	cli_cell(t, "%.1f %%", number(core, "User"));
	cli_cell(t, "%.1f %%", number(core, "System"));
	cli_cell(t, "%.1f %%", number(core, "Idle"));
	cli_cell(t, "%.0f MHz", number(core, "TotalTicks"));
}

static const struct cli_list cores = {
	CLI_HEADS("Core", "Busy", "User", "System", "Idle", "Clock"),
	.cells = core_cells,
};

static void
add_disk(struct cli_table *t, const json_t *disk, const char *device, const char *place)
{
	char size[CLI_TIME_SIZE];

	cli_table_row(t);
	cli_cell(t, "%s", device);
	cli_cell(t, "%s", place);
	cli_cell(t, "%s", cli_bytes(cli_json_int(disk, "Size"), size));
	cli_cell(t, "%s", cli_bytes(cli_json_int(disk, "Used"), size));
	cli_cell(t, "%s", cli_bytes(cli_json_int(disk, "Available"), size));
	cli_cell(t, "%.1f %%", number(disk, "UsedPercent"));
	cli_cell(t, "%.1f %%", number(disk, "InodesUsedPercent"));
}

static void
print_disks(const json_t *stats)
{
	struct cli_table *t =
	    CLI_TABLE("?Device", "Mounted At", "Size", "?Used", "Available", "Used %", "?Inodes %");
	const json_t *disk;
	size_t i;

	json_array_foreach (cli_json_get(stats, "DiskStats"), i, disk)
		add_disk(t, disk, cli_json_str(disk, "Device"), cli_json_str(disk, "Mountpoint"));
	add_disk(t, cli_json_get(stats, "AllocDirStats"), "allocations", "");
	cli_table_print(t);
}

char *
cli_node_stats_target(const char *node_id)
{
	return cli_target("/v1/client/stats?node_id=%s", node_id);
}

int
cli_print_node_stats(struct cli *cli, const char *node_id, struct err *e)
{
	cleanup_free char *target = cli_node_stats_target(node_id);
	cleanup_json json_t *stats = NULL;
	char used[CLI_TIME_SIZE], total[CLI_TIME_SIZE], available[CLI_TIME_SIZE], up[CLI_TIME_SIZE];
	int r = cli_api_get(cli, target, &stats, e);

	if (r < 0)
		return r;
	cli_head("Use");
	cli_field("Up", "%s", cli_span(cli_scale(cli_json_int(stats, "Uptime"), NS_PER_S), up));
	cli_field("CPU", "%.0f MHz", number(stats, "CPUTicksConsumed"));
	cli_field("Memory", "%s of %s, %s available",
	    cli_bytes(cli_json_int(stats, "Memory/Used"), used),
	    cli_bytes(cli_json_int(stats, "Memory/Total"), total),
	    cli_bytes(cli_json_int(stats, "Memory/Available"), available));
	cli_head("Cores");
	cli_list_print(cli, &cores, cli_json_get(stats, "CPU"));
	cli_head("Disks");
	print_disks(stats);
	return 0;
}
