// SPDX-License-Identifier: Apache-2.0
/* cli_node.c: drover node status, events and drain. Runs in: cli. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_alloc.h"
#include "cli/cli_api.h"
#include "cli/cli_list.h"
#include "cli/cli_print.h"
#include "cli/cli_stats.h"
#include "cli/cli_verbs.h"
#include "cli/cli_volume.h"
#include "cli/cli_watch.h"
#include "common/duration.h"
#include "common/mem.h"

static struct {
	bool enable, disable, force, no_deadline, ignore_system, keep_ineligible, detach, monitor,
	    self, stats, yes, allocs, os, brief;
	uint64_t deadline_ms;
} options = { .deadline_ms = 3600 * 1000 };

const struct cli_flag cli_node_status_flags[] = {
	{ "allocs", CLI_FLAG_BOOL, &options.allocs, NULL,
	    "list the number of running allocations" },
	CLI_LIST_FLAGS,
	{ "os", CLI_FLAG_BOOL, &options.os, NULL, "list the operating systems" },
	{ "self", CLI_FLAG_BOOL, &options.self, NULL, "the node of this agent" },
	{ "short", CLI_FLAG_BOOL, &options.brief, NULL, "show only the node itself" },
	{ "stats", CLI_FLAG_BOOL, &options.stats, NULL,
	    "also show resource usage (needs -self or a node)" },
	{ 0 },
};

const struct cli_flag cli_node_drain_flags[] = {
	{ "deadline", CLI_FLAG_DURATION, &options.deadline_ms, "TIME",
	    "how long to wait for batch jobs to finish (1h)" },
	{ "detach", CLI_FLAG_BOOL, &options.detach, NULL,
	    "return as soon as the request is accepted" },
	{ "disable", CLI_FLAG_BOOL, &options.disable, NULL,
	    "end the drain and make the node eligible again" },
	{ "enable", CLI_FLAG_BOOL, &options.enable, NULL, "drain the node (the default)" },
	{ "force", CLI_FLAG_BOOL, &options.force, NULL, "stop all allocations at once" },
	{ "ignore-system", CLI_FLAG_BOOL, &options.ignore_system, NULL,
	    "keep system jobs running" },
	{ "keep-ineligible", CLI_FLAG_BOOL, &options.keep_ineligible, NULL,
	    "with -disable: keep the node ineligible" },
	{ "monitor", CLI_FLAG_BOOL, &options.monitor, NULL,
	    "follow the drain that is in progress" },
	{ "no-deadline", CLI_FLAG_BOOL, &options.no_deadline, NULL,
	    "wait indefinitely for batch jobs to finish" },
	{ "self", CLI_FLAG_BOOL, &options.self, NULL, "the node of this agent (the default)" },
	{ "yes", CLI_FLAG_BOOL, &options.yes, NULL, "do not ask for confirmation" },
	{ 0 },
};

static json_t *allocs; /* all of them, while nodes are listed with -allocs */

static long long
count_running(const char *node_id)
{
	const json_t *alloc;
	long long n = 0;
	size_t i;

	json_array_foreach (allocs, i, alloc)
		n += strcmp(cli_json_str(alloc, "NodeID"), node_id) == 0 &&
		     strcmp(cli_json_str(alloc, "ClientStatus"), "running") == 0;
	return n;
}

static void
node_cells(const struct cli *cli, struct cli_table *t, const json_t *node)
{
	cli_cell(t, "%.*s", cli->id_len, cli_json_str(node, "ID"));
	CLI_TEXT_CELLS(t, node, "Name", "Datacenter", "NodeClass");
	cli_cell(t, "%s", cli_yes(cli_json_true(node, "Drain")));
	cli_cell(t, "%s", cli_json_str(node, "SchedulingEligibility"));
	cli_cell(t, "%s", cli_json_str(node, "Status"));
	if (options.os)
		cli_cell(t, "%s", cli_json_str(cli_json_get(node, "Attributes"), "os.name"));
	if (options.allocs)
		cli_cell(t, "%lld", count_running(cli_json_str(node, "ID")));
}

static int
list_nodes(struct cli *cli, struct err *e)
{
	const char *heads[9] = { "ID", "Name", "?Datacenter", "?Class", "?Drain", "Eligibility",
		"Status" };
	struct cli_list list = {
		.none = "No nodes", .heads = heads, .n_heads = 7, .cells = node_cells
	};
	int r = 0;

	if (options.os)
		heads[list.n_heads++] = "?OS";
	if (options.allocs)
		heads[list.n_heads++] = "Running Allocs";
	if (options.allocs)
		r = cli_api_get(cli, "/v1/allocations", &allocs, e);
	if (r == 0)
		r = cli_list_get(cli, &list, options.os ? "/v1/nodes?os=true" : "/v1/nodes", e);
	json_decref(allocs);
	return r;
}

static void
print_healths(const char *head, const char *column, const json_t *map)
{
	struct cli_table *t;
	const json_t *item;
	const char *name;

	if (json_object_size(map) == 0)
		return;
	cli_head("%s", head);
	t = CLI_TABLE(column, "Detected", "Healthy", "Description");
	json_object_foreach ((json_t *)map, name, item) {
		const json_t *detected = cli_json_get(item, "Detected");

		cli_table_row(t);
		cli_cell(t, "%s", name);
		cli_cell(t, "%s", cli_yes(!detected || json_is_true(detected)));
		cli_cell(t, "%s", cli_yes(cli_json_true(item, "Healthy")));
		cli_cell(t, "%s", cli_json_str(item, "HealthDescription"));
	}
	cli_table_print(t);
}

static void
print_host_volumes(const json_t *node)
{
	const json_t *volumes = cli_json_get(node, "HostVolumes"), *volume;
	struct cli_table *t;
	const char *name;

	if (json_object_size(volumes) == 0)
		return;
	cli_head("Host Volumes");
	t = CLI_TABLE("Name", "Read Only", "Path");
	json_object_foreach ((json_t *)volumes, name, volume) {
		cli_table_row(t);
		cli_cell(t, "%s", name);
		cli_cell(t, "%s", cli_yes(cli_json_true(volume, "ReadOnly")));
		cli_cell(t, "%s", cli_json_str(volume, "Path"));
	}
	cli_table_print(t);
}

/* Why the node was drained, such as "landing": its servers have no other place for it. */
static void
print_last_drain(const struct cli *cli, const json_t *drain)
{
	const char *status = cli_json_str(drain, "Status");
	const char *message = cli_json_str(drain, "Meta/message");
	char time[CLI_TIME_SIZE];

	if (status[0] && strcmp(status, "canceled") != 0)
		cli_field("Last Drain", "%s %s%s%s", status,
		    cli_time(cli, cli_json_time_ns(drain, "UpdatedAt"), time),
		    message[0] ? ": " : "", message);
}

static void
print_node(const struct cli *cli, const json_t *node)
{
	char size[CLI_TIME_SIZE], time[CLI_TIME_SIZE];

	cli_field("ID", "%s", cli_json_str(node, "ID"));
	cli_field("Name", "%s", cli_json_str(node, "Name"));
	cli_field("Class", "%s", cli_json_str(node, "NodeClass"));
	cli_field("Datacenter", "%s", cli_json_str(node, "Datacenter"));
	cli_field("Status", "%s", cli_json_str(node, "Status"));
	cli_field("Description", "%s", cli_json_str(node, "StatusDescription"));
	cli_field("Drain", "%s",
	    cli_yes(cli_json_true(node, "Drain") ||
		    json_is_object(cli_json_get(node, "DrainStrategy"))));
	print_last_drain(cli, cli_json_get(node, "LastDrain"));
	cli_field("Eligibility", "%s", cli_json_str(node, "SchedulingEligibility"));
	cli_field("Since", "%s",
	    cli_time(cli, cli_scale(cli_json_int(node, "StatusUpdatedAt"), NS_PER_S), time));
	cli_field("CPU", "%lld MHz", (long long)cli_json_int(node, "NodeResources/Cpu/CpuShares"));
	cli_field("Memory", "%s",
	    cli_bytes(
		cli_scale(cli_json_int(node, "NodeResources/Memory/MemoryMB"), 1 << 20), size));
	cli_field("Kernel", "%s", cli_json_str(cli_json_get(node, "Attributes"), "kernel.version"));
}

static void
print_events(const struct cli *cli, const json_t *events)
{
	static const struct cli_event_keys keys = { "Timestamp", "Subsystem", "Message",
		"Message" };

	cli_print_events(cli, events, &keys);
}

static void
print_parts(const struct cli *cli, const json_t *node)
{
	print_healths("Drivers", "Driver", cli_json_get(node, "Drivers"));
	print_healths("CSI Controllers", "Plugin", cli_json_get(node, "CSIControllerPlugins"));
	print_healths("CSI Nodes", "Plugin", cli_json_get(node, "CSINodePlugins"));
	print_host_volumes(node);
	print_events(cli, cli_json_get(node, "Events"));
}

static int
show_node(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/node/%s", id);
	cleanup_json json_t *node = NULL, *all = NULL, *here = json_array();
	const json_t *alloc;
	size_t i;
	int r;

	if (cli->json)
		return cli_api_print(cli, target, e);
	r = cli_api_get(cli, target, &node, e);
	if (r == 0 && !options.brief)
		r = cli_api_get(cli, "/v1/allocations", &all, e);
	if (r < 0)
		return r;
	print_node(cli, node);
	if (options.brief)
		return options.stats ? cli_print_node_stats(cli, id, e) : 0;
	print_parts(cli, node);
	cli_volume_print_uses_of_node(cli, id);
	json_array_foreach (all, i, alloc)
		if (strcmp(cli_json_str(alloc, "NodeID"), id) == 0)
			(void)json_array_append(here, (json_t *)alloc);
	cli_head("Allocations");
	cli_print_allocs(cli, here);
	if (options.stats && (r = cli_print_node_stats(cli, id, e)) < 0)
		return r;
	if (cli->verbose) {
		cli_map_print("Attributes", cli_json_get(node, "Attributes"));
		cli_map_print("Meta", cli_json_get(node, "Meta"));
	}
	return 0;
}

int
cli_node_status(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *id = NULL;
	struct err e = { 0 };
	int r;

	if (argc == 0 && !options.self) {
		r = list_nodes(cli, &e);
		return r < 0 ? cli_fail(cli, &e) : CLI_OK;
	}
	r = cli_list_refuse_flags(&e);
	if (r == 0)
		r = argc ? cli_id_resolve(cli, &cli_kind_node, argv[0], &id, &e)
			 : cli_id_self(cli, &id, &e);
	if (r == 0)
		r = show_node(cli, id, &e);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}

static int
show_events(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/node/%s", id);
	cleanup_json json_t *node = NULL;
	const json_t *events;
	int r = cli_api_get(cli, target, &node, e);

	if (r < 0)
		return r;
	events = cli_json_get(node, "Events");
	if (cli->json)
		return cli_json_print(events, e);
	if (json_array_size(events) == 0)
		cli_say(cli, "No events");
	print_events(cli, events);
	return 0;
}

int
cli_node_events(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *id = NULL;
	struct err e = { 0 };
	int r = argc ? cli_id_resolve(cli, &cli_kind_node, argv[0], &id, &e)
		     : cli_id_self(cli, &id, &e);

	if (r == 0)
		r = show_events(cli, id, &e);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}

static json_t *
make_drain_request(void)
{
	json_int_t deadline_ns = (json_int_t)options.deadline_ms * NS_PER_MS;

	if (options.disable)
		return json_pack(
		    "{s:n, s:b}", "DrainSpec", "MarkEligible", !options.keep_ineligible);
	if (options.force)
		deadline_ns = -1;
	else if (options.no_deadline)
		deadline_ns = 0;
	return json_pack("{s:{s:I, s:b}, s:b}", "DrainSpec", "Deadline", deadline_ns,
	    "IgnoreSystemJobs", options.ignore_system, "MarkEligible", 0);
}

/* Reports volumes that this node's allocations still claim. */
static int
print_claims_left(struct cli *cli, const char *node_id, const char *volume_id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/volume/csi/%s", volume_id);
	cleanup_json json_t *volume = NULL;
	const json_t *alloc;
	size_t i;
	int r = cli_api_get(cli, target, &volume, e);

	json_array_foreach (cli_json_get(volume, "Allocations"), i, alloc) {
		if (strcmp(cli_json_str(alloc, "NodeID"), node_id) != 0 ||
		    !cli_alloc_has_ended(alloc))
			continue;
		cli_say(cli,
		    "==> Volume \"%s\" is still mounted and claimed for allocation \"%.*s\": "
		    "plugin %s has not unmounted it yet",
		    volume_id, cli->id_len, cli_json_str(alloc, "ID"),
		    cli_json_str(volume, "PluginID"));
	}
	return r == -ENOENT ? 0 : r;
}

/* An ended allocation releases its claim once the volume is unmounted. */
static int
print_volumes_left(struct cli *cli, const char *node_id, struct err *e)
{
	cleanup_json json_t *list = NULL;
	const json_t *volume;
	size_t i;
	int r = cli_api_get(cli, "/v1/volumes?type=csi", &list, e);

	json_array_foreach (list, i, volume) {
		if (r == 0 && (cli_json_int(volume, "CurrentReaders") > 0 ||
				  cli_json_int(volume, "CurrentWriters") > 0))
			r = print_claims_left(cli, node_id, cli_json_str(volume, "ID"), e);
	}
	return r;
}

/* The drain is over when the node reports it, after all its allocations have ended. */
static int
follow_drain(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/node/%s", id);
	struct cli_watch_filter filter = { .node_id = id, .no_system = options.ignore_system };
	unsigned step_ms = 0;
	bool draining = true;
	int seen, r;

	seen = cli_watch_end(cli, &filter, e);
	if (seen < 0)
		return seen;
	while (draining) {
		cleanup_json json_t *node = NULL;

		r = cli_api_get(cli, target, &node, e);
		if (r < 0)
			return r;
		draining = json_is_object(cli_json_get(node, "DrainStrategy"));
		if (draining)
			cli_watch_pause(&step_ms);
	}
	cli_say(cli, "==> Node \"%.*s\" is drained: %d allocation(s) have ended", cli->id_len, id,
	    seen);
	return print_volumes_left(cli, id, e);
}

/* Another operator ended the drain. */
static int
monitor_drain(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/node/%s", id);
	cleanup_json json_t *node = NULL;
	int r = cli_api_get(cli, target, &node, e);

	if (r < 0)
		return r;
	if (!json_is_object(cli_json_get(node, "DrainStrategy"))) {
		cli_say(cli, "==> Node \"%.*s\" is not draining", cli->id_len, id);
		return 0;
	}
	options.ignore_system = cli_json_true(node, "DrainStrategy/IgnoreSystemJobs");
	return follow_drain(cli, id, e);
}

static int
drain_node(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/node/%s/drain", id);
	cleanup_json json_t *answer = NULL;
	int r = cli_api_send_new(cli, "POST", target, make_drain_request(), &answer, e);

	if (r == 0 && cli->json)
		r = cli_json_print(answer, e);
	if (r < 0)
		return r;
	cli_say(cli,
	    options.disable ? "==> Node \"%.*s\" is no longer draining"
			    : "==> Node \"%.*s\" is draining",
	    cli->id_len, id);
	return options.disable || options.detach ? 0 : follow_drain(cli, id, e);
}

static int
check_drain_options(const char *wanted, struct err *e)
{
	int agreed;

	if (options.enable && options.disable)
		return err_say(e, -EINVAL, "-enable and -disable cannot be used together");
	if (options.monitor && (options.enable || options.disable || options.detach))
		return err_say(
		    e, -EINVAL, "-monitor cannot be used with -enable, -disable or -detach");
	if (options.disable && (options.force || options.no_deadline))
		return err_say(e, -EINVAL, "-disable cannot be used with -force or -no-deadline");
	if (options.force && options.no_deadline)
		return err_say(e, -EINVAL, "-force and -no-deadline cannot be used together");
	if (wanted && options.self)
		return err_say(e, -EINVAL, "-self and \"%s\" name two different nodes", wanted);
	if (options.disable || options.monitor || options.yes)
		return 0;
	agreed = cli_ask("This stops every allocation of the node. Continue?");
	if (agreed < 0)
		return err_say(e, -EINVAL, "a drain stops every allocation of the node: add -yes");
	return agreed ? 0 : err_say(e, -ECANCELED, "cancelled: nothing was changed");
}

int
cli_node_drain(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *id = NULL;
	struct err e = { 0 };
	int r;

	r = check_drain_options(argc ? argv[0] : NULL, &e);
	if (r == 0)
		r = argc ? cli_id_resolve(cli, &cli_kind_node, argv[0], &id, &e)
			 : cli_id_self(cli, &id, &e);
	if (r == 0)
		r = options.monitor ? monitor_drain(cli, id, &e) : drain_node(cli, id, &e);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}
