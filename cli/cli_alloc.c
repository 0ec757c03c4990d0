// SPDX-License-Identifier: Apache-2.0
/* cli_alloc.c: drover alloc status and stop. Runs in: cli. */
#include "cli/cli_alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_list.h"
#include "cli/cli_namespace.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "cli/cli_volume.h"
#include "cli/cli_watch.h"
#include "common/mem.h"

#define ALLOCS_SHOWN 20 /* allocations on a page, unless -verbose is set */

static struct {
	bool detach, no_shutdown_delay;
} options;

const struct cli_flag cli_alloc_stop_flags[] = {
	{ "detach", CLI_FLAG_BOOL, &options.detach, NULL,
	    "return as soon as the request is accepted" },
	{ "no-shutdown-delay", CLI_FLAG_BOOL, &options.no_shutdown_delay, NULL,
	    "do not wait for shutdown_delay" },
	{ 0 },
};

const char *
cli_alloc_failure(const json_t *alloc)
{
	/* Events that only follow from a failure: they do not explain it. */
	static const char *const consequences[] = { "Killing", "Killed", "Sibling Task Failed",
		"Alloc Unhealthy", "Waiting for shutdown delay", "Not Restarting" };
	const json_t *state, *event;
	const char *task, *type;
	bool consequence;

	json_object_foreach (cli_json_get(alloc, "TaskStates"), task, state) {
		json_t *events = cli_json_get(state, "Events");

		for (size_t i = json_array_size(events);
		     cli_json_true(state, "Failed") && i-- > 0;) {
			event = json_array_get(events, i);
			type = cli_json_str(event, "Type");
			/* If neither the job nor an operator asked for the stop, the Killing event
			 * has the reason. */
			if (json_object_get(
				cli_json_get(event, "Details"), "stop_after_client_disconnect"))
				return cli_json_str(event, "DisplayMessage");
			consequence = false;
			for (size_t k = 0; k < ELEMENTSOF(consequences); k++)
				consequence |= strcmp(type, consequences[k]) == 0;
			if (!consequence)
				return cli_json_str(event, "DisplayMessage");
		}
	}
	return cli_json_str(alloc, "ClientDescription");
}

static int
compare_age(const void *a, const void *b)
{
	json_int_t time_a = cli_json_int(*(json_t *const *)a, "CreateTime");
	json_int_t time_b = cli_json_int(*(json_t *const *)b, "CreateTime");

	return time_a < time_b ? 1 : time_a > time_b ? -1 : 0;
}

/* Returns 1 for an allocation that needs attention: it is wanted, and failed or does not run. */
static int
needs_attention(const json_t *alloc)
{
	return strcmp(cli_json_str(alloc, "DesiredStatus"), "run") == 0 &&
	       strcmp(cli_json_str(alloc, "ClientStatus"), "running") != 0 &&
	       strcmp(cli_json_str(alloc, "ClientStatus"), "complete") != 0 &&
	       !*cli_json_str(alloc, "NextAllocation");
}

static int
compare_attention(const void *a, const void *b)
{
	int diff = needs_attention(*(json_t *const *)b) - needs_attention(*(json_t *const *)a);

	return diff ? diff : compare_age(a, b);
}

/* Prints the first `max` allocations in this order. */
static void
print_allocs(const struct cli *cli, const json_t *list, size_t max,
    int (*compare)(const void *a, const void *b))
{
	bool shown = cli_namespace_shown(cli, list);
	size_t n = json_array_size(list);
	cleanup_free json_t **sorted = mem_zeroed(n, sizeof(json_t *));
	char created[CLI_TIME_SIZE], modified[CLI_TIME_SIZE];
	struct cli_table *t;

	if (n == 0) {
		cli_say(cli, "None");
		return;
	}
	for (size_t i = 0; i < n; i++)
		sorted[i] = json_array_get(list, i);
	qsort(sorted, n, sizeof *sorted, compare);
	t = CLI_TABLE("ID", "Name", "Version", "Desired", "Status", "Created", "Modified");
	if (shown)
		cli_table_column(t, "Namespace");
	for (size_t i = 0; i < n && i < max; i++) {
		const json_t *alloc = sorted[i];

		cli_table_row(t);
		cli_cell(t, "%.*s", cli->id_len, cli_json_str(alloc, "ID"));
		cli_cell(t, "%s", cli_json_str(alloc, "Name"));
		cli_cell(t, "%lld", (long long)cli_json_int(alloc, "JobVersion"));
		cli_cell(t, "%s", cli_json_str(alloc, "DesiredStatus"));
		cli_cell(t, "%s", cli_json_str(alloc, "ClientStatus"));
		cli_cell(t, "%s", cli_time(cli, cli_json_time_ns(alloc, "CreateTime"), created));
		cli_cell(t, "%s", cli_time(cli, cli_json_time_ns(alloc, "ModifyTime"), modified));
		if (shown)
			cli_cell(t, "%s", cli_json_str(alloc, "Namespace"));
	}
	cli_table_print(t);
	if (n > max)
		cli_say(cli, "… and %zu more: -verbose shows all, drover alloc status lists them",
		    n - max);
}

void
cli_print_all_allocs(const struct cli *cli, const json_t *list)
{
	print_allocs(cli, list, SIZE_MAX, compare_age);
}

void
cli_print_allocs(const struct cli *cli, const json_t *list)
{
	if (cli->verbose || json_array_size(list) <= ALLOCS_SHOWN)
		print_allocs(cli, list, SIZE_MAX, compare_age);
	else
		print_allocs(cli, list, ALLOCS_SHOWN, compare_attention);
}

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
	t = CLI_TABLE("Name", "Type", "Source", "Read Only", "Access Mode", "Attachment Mode");
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

static int
show_alloc(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/allocation/%s", id);
	cleanup_free char *all_target = cli_target("/v1/client/allocation/%s/events", id);
	cleanup_json json_t *alloc = NULL, *all = NULL;
	const json_t *state;
	const char *task;
	char time[CLI_TIME_SIZE];
	int r;

	if (cli->json)
		return cli_api_print(cli, target, e);
	r = cli_api_get(cli, target, &alloc, e);
	if (r < 0)
		return r;
	/* The full history is known only for this agent's own allocations; others show their last
	 * events. */
	if (cli->verbose && cli_api_get(cli, all_target, &all, e) < 0)
		all = NULL;
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
	cli_field("Replaces", "%.*s", cli->id_len, cli_json_str(alloc, "PreviousAllocation"));
	show_next_try(cli, alloc);
	cli_field("Replaced By", "%.*s", cli->id_len, cli_json_str(alloc, "NextAllocation"));
	print_volumes(alloc);
	if (cli->verbose)
		cli_volume_print_uses_of_alloc(cli, alloc);
	json_object_foreach (cli_json_get(alloc, "TaskStates"), task, state)
		print_task(cli, alloc, task, state, all);
	return 0;
}

static int
list_allocs(struct cli *cli, struct err *e)
{
	return cli_list_show(cli, "/v1/allocations", cli_print_all_allocs, e);
}

static int
list_of_job(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/job/%s/allocations", id);

	return cli_show(cli, target, cli_print_all_allocs, e);
}

int
cli_job_allocs(struct cli *cli, int argc, char **argv)
{
	(void)argc;
	return cli_with_id(cli, &cli_kind_job, argv[0], list_of_job);
}

int
cli_alloc_status(struct cli *cli, int argc, char **argv)
{
	return cli_list_or_show(cli, &cli_kind_alloc, argc, argv, list_allocs, show_alloc);
}

/* Waits until the allocation has ended and its replacement, if the evaluation placed one, runs. */
static int
follow_stop(struct cli *cli, const char *id, const char *job_id, const char *eval_id, struct err *e)
{
	struct cli_watch_filter filter = { .alloc_id = id };
	int placed, r;

	placed = cli_watch_eval(cli, eval_id, e);
	if (placed < 0)
		return placed;
	r = cli_watch_end(cli, &filter, e);
	if (r < 0)
		return r;
	r = cli_watch_start(cli, job_id, eval_id, e);
	return r == CLI_OK ? placed : r;
}

static int
stop_alloc(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target(
	    "/v1/allocation/%s/stop?no_shutdown_delay=%s", id, cli_yes(options.no_shutdown_delay));
	cleanup_free char *alloc_target = cli_target("/v1/allocation/%s", id);
	cleanup_json json_t *alloc = NULL, *answer = NULL;
	const char *eval_id;
	int r;

	r = cli_api_get(cli, alloc_target, &alloc, e);
	cli_namespace_use(cli, alloc);
	if (r == 0)
		r = cli_api_send(cli, "PUT", target, NULL, &answer, e);
	if (r == 0 && cli->json)
		r = cli_json_print(answer, e);
	if (r < 0)
		return r;
	eval_id = cli_json_str(answer, "EvalID");
	if (!options.detach && *eval_id)
		return follow_stop(cli, id, cli_json_str(alloc, "JobID"), eval_id, e);
	cli_say(cli, "Allocation \"%.*s\" is being stopped%s%s", cli->id_len, id,
	    *eval_id ? ", evaluation " : "", eval_id);
	return CLI_OK;
}

int
cli_alloc_stop(struct cli *cli, int argc, char **argv)
{
	return cli_with_id(cli, &cli_kind_alloc, argv[0], stop_alloc);
}
