// SPDX-License-Identifier: Apache-2.0
/* cli_alloc_show.c: shows one allocation: its state, addresses, checks, volumes, tasks. Runs in:
 * cli. */
#include <string.h>

#include "cli/cli_alloc.h"
#include "cli/cli_api.h"
#include "cli/cli_list.h"
#include "cli/cli_print.h"
#include "cli/cli_service.h"
#include "cli/cli_stats.h"
#include "cli/cli_verbs.h"
#include "cli/cli_volume.h"
#include "common/mem.h"

static struct {
	bool brief, stats;
} options;

const struct cli_flag cli_alloc_status_flags[] = {
	CLI_LIST_FLAGS,
	{ "short", CLI_FLAG_BOOL, &options.brief, NULL,
	    "show one line for each task, with its last event" },
	{ "stats", CLI_FLAG_BOOL, &options.stats, NULL, "also show resource usage" },
	{ 0 },
};

const json_t *
cli_alloc_group(const json_t *alloc)
{
	const json_t *group;
	size_t i;

	json_array_foreach (cli_json_get(alloc, "Job/TaskGroups"), i, group)
		if (strcmp(cli_json_str(group, "Name"), cli_json_str(alloc, "TaskGroup")) == 0)
			return group;
	return NULL;
}

static void
print_volumes(const json_t *alloc)
{
	const json_t *volumes = cli_json_get(cli_alloc_group(alloc), "Volumes"), *volume;
	struct cli_table *t;
	const char *name;

	if (json_object_size(volumes) == 0)
		return;
	cli_head("Volumes");
	t = CLI_TABLE("Name", "Type", "Source", "?Read Only", "?Access Mode", "?Attachment Mode");
	json_object_foreach ((json_t *)volumes, name, volume) {
		cli_table_row(t);
		cli_cell(t, "%s", name);
		cli_cell(t, "%s", cli_json_str(volume, "Type"));
		cli_cell(t, "%s", cli_json_str(volume, "Source"));
		cli_cell(t, "%s", cli_yes(cli_json_true(volume, "ReadOnly")));
		cli_cell(t, "%s", cli_json_str(volume, "AccessMode"));
		cli_cell(t, "%s", cli_json_str(volume, "AttachmentMode"));
	}
	cli_table_print(t);
}

void
cli_print_events(const struct cli *cli, const json_t *events, const struct cli_event_keys *keys)
{
	struct cli_table *t;
	char time[CLI_TIME_SIZE];

	if (json_array_size(events) == 0)
		return;
	cli_head("Events, newest first:");
	t = CLI_TABLE("Time", keys->kind, keys->text_head);
	for (size_t i = json_array_size(events); i-- > 0;) {
		const json_t *event = json_array_get(events, i);

		cli_table_row(t);
		cli_cell(t, "%s", cli_time(cli, cli_json_time_ns(event, keys->time), time));
		cli_cell(t, "%s", cli_json_str(event, keys->kind));
		cli_cell(t, "%s", cli_json_str(event, keys->text));
	}
	cli_table_print(t);
}

static void
print_task(const struct cli *cli, const json_t *alloc, const char *name, const json_t *state,
    const json_t *all_events)
{
	static const struct cli_event_keys keys = { "Time", "Type", "DisplayMessage",
		"Description" };
	const json_t *events = json_object_get(all_events, name);
	char path[192], time[CLI_TIME_SIZE];
	const json_t *resources;

	cli_head("Task \"%s\" is %s%s", name, cli_json_str(state, "State"),
	    cli_json_true(state, "Failed") ? " and has failed" : "");
	(void)snprintf(path, sizeof path, "AllocatedResources/Tasks/%s", name);
	resources = cli_json_get(alloc, path);
	if (resources)
		cli_field("Resources", "%lld MHz, %lld MiB",
		    (long long)cli_json_int(resources, "Cpu/CpuShares"),
		    (long long)cli_json_int(resources, "Memory/MemoryMB"));
	cli_field("Address", "%s", cli_json_str(state, "Address"));
	cli_field("Address", "%s", cli_json_str(state, "AddressIPv6"));
	cli_field("Started", "%s", cli_time(cli, cli_json_time_ns(state, "StartedAt"), time));
	cli_field("Finished", "%s", cli_time(cli, cli_json_time_ns(state, "FinishedAt"), time));
	cli_field("Restarts", "%lld", (long long)cli_json_int(state, "Restarts"));
	cli_field(
	    "Last Restart", "%s", cli_time(cli, cli_json_time_ns(state, "LastRestart"), time));
	cli_print_events(cli, events ? events : cli_json_get(state, "Events"), &keys);
}

/* Only for an allocation that failed and will be rescheduled. */
static void
show_next_try(struct cli *cli, const json_t *alloc)
{
	const char *id = cli_json_str(alloc, "FollowupEvalID");
	cleanup_free char *target = NULL;
	cleanup_json json_t *eval = NULL;
	char time[CLI_TIME_SIZE];
	struct err e = { 0 };

	if (!*id || *cli_json_str(alloc, "NextAllocation"))
		return;
	target = cli_target("/v1/evaluation/%s", id);
	if (cli_api_get(cli, target, &eval, &e) == 0)
		cli_field("Rescheduled At", "%s",
		    cli_time(cli, cli_json_time_ns(eval, "WaitUntil"), time));
}

/* Ports. */

static void
add_port(struct cli_table *t, const char *ip, const char *task, const json_t *port)
{
	long long to = cli_json_int(port, "To");

	cli_table_row(t);
	cli_cell(t, "%s", cli_json_str(port, "Label"));
	cli_cell(t, strchr(ip, ':') ? "[%s]:%lld" : "%s:%lld", ip,
	    (long long)cli_json_int(port, "Value"));
	if (to > 0)
		cli_cell(t, "%lld", to);
	else
		cli_cell(t, "%s", "");
	cli_cell(t, "%s", task);
}

/* Adds the ports of `network` in the resources of a task. */
static void
add_task_ports(struct cli_table *t, const char *task, const json_t *resources)
{
	static const char *const kinds[] = { "ReservedPorts", "DynamicPorts" };
	const json_t *network, *port;
	size_t i, k;

	json_array_foreach (cli_json_get(resources, "Networks"), i, network)
		for (size_t kind = 0; kind < ELEMENTSOF(kinds); kind++)
			json_array_foreach (cli_json_get(network, kinds[kind]), k, port)
				add_port(t, cli_json_str(network, "IP"), task, port);
}

static void
print_ports(const json_t *alloc)
{
	const json_t *ports = cli_json_get(alloc, "AllocatedResources/Shared/Ports");
	const json_t *tasks = cli_json_get(alloc, "AllocatedResources/Tasks"), *one;
	struct cli_table *t = CLI_TABLE("Port", "Address", "To", "Task");
	const char *task;
	size_t i;

	json_array_foreach (ports, i, one)
		add_port(t, cli_json_str(one, "HostIP"), "", one);
	json_object_foreach ((json_t *)tasks, task, one)
		add_task_ports(t, task, one);
	cli_table_print_under(t, "Addresses");
}

/* Only the alloc's own node knows its checks; an error leaves them out. */
static void
show_checks(struct cli *cli, const char *id)
{
	cleanup_free char *target = cli_target("/v1/client/allocation/%s/checks", id);
	cleanup_json json_t *checks = NULL;
	struct err ignored = { 0 };

	if (cli_api_get(cli, target, &checks, &ignored) < 0 || json_object_size(checks) == 0)
		return;
	cli_head("Checks");
	cli_list_print(cli, &cli_checks, checks);
}

static void
print_health(const struct cli *cli, const json_t *alloc)
{
	const json_t *status = cli_json_get(alloc, "DeploymentStatus");
	const json_t *healthy = cli_json_get(status, "Healthy");
	char time[CLI_TIME_SIZE];

	cli_field("Deployment", "%.*s%s", cli->id_len, cli_json_str(alloc, "DeploymentID"),
	    cli_json_true(status, "Canary") ? " (canary)" : "");
	if (json_is_boolean(healthy))
		cli_field("Health", "%s, %s", json_is_true(healthy) ? "healthy" : "unhealthy",
		    cli_time(cli, cli_json_time_ns(status, "Timestamp"), time));
	else if (*cli_json_str(alloc, "DeploymentID") &&
		 strcmp(cli_json_str(alloc, "DesiredStatus"), "run") == 0)
		cli_field("Health", "not decided yet");
}

static void
print_alloc(struct cli *cli, const json_t *alloc)
{
	char time[CLI_TIME_SIZE];

	cli_field("ID", "%s", cli_json_str(alloc, "ID"));
	cli_field("Name", "%s", cli_json_str(alloc, "Name"));
	if (strcmp(cli_json_str(alloc, "Namespace"), "default") != 0)
		cli_field("Namespace", "%s", cli_json_str(alloc, "Namespace"));
	cli_field("Job", "%s, version %lld", cli_json_str(alloc, "JobID"),
	    (long long)cli_json_int(alloc, "Job/Version"));
	cli_field("Node", "%s (%.*s)", cli_json_str(alloc, "NodeName"), cli->id_len,
	    cli_json_str(alloc, "NodeID"));
	cli_field("Evaluation", "%.*s", cli->id_len, cli_json_str(alloc, "EvalID"));
	cli_field("Status", "%s", cli_json_str(alloc, "ClientStatus"));
	cli_field("Description", "%s", cli_json_str(alloc, "ClientDescription"));
	cli_field("Desired", "%s", cli_json_str(alloc, "DesiredStatus"));
	cli_field("Desired Because", "%s", cli_json_str(alloc, "DesiredDescription"));
	cli_field("Created", "%s", cli_time(cli, cli_json_time_ns(alloc, "CreateTime"), time));
	cli_field("Modified", "%s", cli_time(cli, cli_json_time_ns(alloc, "ModifyTime"), time));
	cli_field("Network Address", "%s", cli_json_str(alloc, "NetworkStatus/Address"));
	print_health(cli, alloc);
	cli_field("Replaces", "%.*s", cli->id_len, cli_json_str(alloc, "PreviousAllocation"));
	show_next_try(cli, alloc);
	cli_field("Replaced By", "%.*s", cli->id_len, cli_json_str(alloc, "NextAllocation"));
}

/* Prints one line for each task: its state and its last event. */
static void
print_tasks(const struct cli *cli, const json_t *alloc)
{
	struct cli_table *t = CLI_TABLE("Task", "State", "Last Event", "?Time");
	const json_t *state;
	const char *task;
	char time[CLI_TIME_SIZE];

	json_object_foreach (cli_json_get(alloc, "TaskStates"), task, state) {
		const json_t *events = cli_json_get(state, "Events");
		const json_t *last = json_array_get(events, json_array_size(events) - 1);

		cli_table_row(t);
		cli_cell(t, "%s", task);
		cli_cell(t, "%s%s", cli_json_str(state, "State"),
		    cli_json_true(state, "Failed") ? ", failed" : "");
		cli_cell(t, "%s", cli_json_str(last, "Type"));
		cli_cell(t, "%s", cli_time(cli, cli_json_time_ns(last, "Time"), time));
	}
	cli_table_print_under(t, "Tasks");
}

static void
print_parts(struct cli *cli, const char *id, const json_t *alloc)
{
	cleanup_free char *target = cli_target("/v1/client/allocation/%s/events", id);
	cleanup_json json_t *all = NULL;
	const json_t *state;
	const char *task;
	struct err ignored;

	/* The full history is known only for this agent's own allocations; others show their last
	 * events. */
	if (cli->verbose && cli_api_get(cli, target, &all, &ignored) < 0)
		all = NULL;
	print_ports(alloc);
	show_checks(cli, id);
	print_volumes(alloc);
	if (cli->verbose)
		cli_volume_print_uses_of_alloc(cli, alloc);
	json_object_foreach (cli_json_get(alloc, "TaskStates"), task, state)
		print_task(cli, alloc, task, state, all);
}

int
cli_alloc_show(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/allocation/%s", id);
	cleanup_json json_t *alloc = NULL;
	int r = cli_api_fetch(cli, target, &alloc, e);

	if (r <= 0)
		return r;
	print_alloc(cli, alloc);
	if (options.brief)
		print_tasks(cli, alloc);
	else
		print_parts(cli, id, alloc);
	if (!options.stats)
		return 0;
	cli_head("Resource Usage");
	return cli_print_alloc_stats(cli, id, e);
}
