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
#include "cli/cli_watch.h"
#include "common/mem.h"

#define ALLOCS_SHOWN 20 /* allocations on a page, unless -verbose is set */

static struct {
	bool detach, no_shutdown_delay, all;
} options;

const struct cli_flag cli_job_allocs_flags[] = {
	{ "all", CLI_FLAG_BOOL, &options.all, NULL,
	    "also those of an earlier job with the same id" },
	{ 0 },
};

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
	t = CLI_TABLE("ID", "Name", "?Version", "?Desired", "Status", "Created", "?Modified");
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

static int
list_allocs(struct cli *cli, struct err *e)
{
	return cli_list_show(cli, "/v1/allocations", cli_print_all_allocs, e);
}

static int
list_of_job(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target =
	    cli_target("/v1/job/%s/allocations?all=%s", id, cli_yes(options.all));

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
	return cli_list_or_show(cli, &cli_kind_alloc, argc, argv, list_allocs, cli_alloc_show);
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
