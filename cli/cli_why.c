// SPDX-License-Identifier: Apache-2.0
/* cli_why.c: drover alloc why explains why something stopped, restarted or waits. Runs in: cli. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "common/number.h"

#define SHOWN_MAX 12
#define TEXT_MAX  1024

static void
print_causes(const struct cli *cli, const json_t *causes)
{
	size_t n = json_array_size(causes), shown = cli->verbose || n < SHOWN_MAX ? n : SHOWN_MAX;
	struct cli_table *t = CLI_TABLE("When", "Task", "Why");
	char when[CLI_TIME_SIZE];

	for (size_t i = 0; i < shown; i++) {
		const json_t *cause = json_array_get(causes, i);
		int64_t time = cli_json_int(cause, "Time");

		cli_table_row(t);
		cli_cell(t, "%s", time ? cli_time(cli, time, when) : "now");
		cli_cell(t, "%s", cli_json_str(cause, "Task"));
		cli_cell(t, "%s", cli_json_str(cause, "Text"));
	}
	cli_table_print(t);
	if (shown < n)
		cli_say(cli, "… and %zu older ones: add -verbose to see them", n - shown);
}

static void
add_cause(json_t *causes, int64_t time_ns, const char *text)
{
	(void)json_array_append_new(causes,
	    json_pack("{s:I, s:s, s:s}", "Time", (json_int_t)time_ns, "Task", "", "Text", text));
}

/* Allocations that could not be placed. */

/* Appends "KEY: N node(s)" for each key. */
static void
append_counts(char *text, const json_t *counts, const char *fmt)
{
	const char *key;
	json_t *n;

	json_object_foreach ((json_t *)counts, key, n) {
		size_t len = strlen(text);

		(void)snprintf(
		    text + len, TEXT_MAX - len, fmt, key, (long long)json_integer_value(n));
	}
}

/* Explains as far as the evaluation says. */
static bool
some_node_takes(struct cli *cli)
{
	cleanup_json json_t *nodes = NULL;
	struct err ignored = { 0 };
	const json_t *node;
	bool takes = cli_api_get(cli, "/v1/nodes", &nodes, &ignored) < 0;
	size_t i;

	json_array_foreach (nodes, i, node)
		takes |= strcmp(cli_json_str(node, "SchedulingEligibility"), "eligible") == 0 &&
			 strcmp(cli_json_str(node, "Status"), "ready") == 0;
	return takes;
}

static void
add_group(
    struct cli *cli, json_t *causes, const json_t *eval, const char *group, const json_t *metric)
{
	bool blocked = strcmp(cli_json_str(eval, "Status"), "blocked") == 0;
	char text[TEXT_MAX], path[192];
	size_t len;

	(void)snprintf(path, sizeof path, "QueuedAllocations/%s", group);
	(void)snprintf(text, sizeof text, "Group \"%s\" %s no place for %lld of its allocations.",
	    group, blocked ? "has" : "had", (long long)cli_json_int(eval, path));
	len = strlen(text);
	append_counts(
	    text, cli_json_get(metric, "ConstraintFiltered"), " Excluded by: %s (%lld node(s)).");
	append_counts(text, cli_json_get(metric, "DimensionExhausted"),
	    " Not enough resources: %s (%lld node(s)).");
	append_counts(
	    text, cli_json_get(metric, "ClassFiltered"), " Node class %s: %lld node(s) excluded.");
	if (text[len] == '\0')
		(void)snprintf(text + len, sizeof text - len, "%s",
		    cli_json_int(metric, "NodesEvaluated") > 0 ? " The reason is not known."
		    : some_node_takes(cli)
			? " No node is in the datacenters of the job."
			: " No node is eligible: all are drained or marked ineligible.");
	add_cause(causes, blocked ? 0 : cli_json_int(eval, "ModifyTime"), text);
}

static void
add_eval(struct cli *cli, json_t *causes, const json_t *eval)
{
	const char *group, *status = cli_json_str(eval, "StatusDescription");
	char text[TEXT_MAX];
	json_t *metric;

	json_object_foreach (cli_json_get(eval, "FailedTGAllocs"), group, metric)
		add_group(cli, causes, eval, group, metric);
	if (json_array_size(causes) == 0 && *status) {
		(void)snprintf(text, sizeof text, "Evaluation %s is %s: %s.",
		    cli_json_str(eval, "ID"), cli_json_str(eval, "Status"), status);
		add_cause(causes, 0, text);
	}
}

/* Takes over causes. */
static int
print(const struct cli *cli, const char *kind, const char *id, const char *status, json_t *causes,
    struct err *e)
{
	cleanup_json json_t *all =
	    json_pack("{s:s, s:s, s:O}", "ID", id, "Status", status, "Causes", causes);
	int r = 0;

	if (cli->json) {
		r = cli_json_print(all, e);
	} else {
		cli_say(cli, "%s \"%s\" is %s", kind, id, status);
		if (json_array_size(causes) == 0)
			cli_say(cli, "Everything is placed; nothing else is known");
		else
			print_causes(cli, causes);
	}
	json_decref(causes);
	return r;
}

static int
explain_eval(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/evaluation/%s", id);
	cleanup_json json_t *eval = NULL, *next = NULL;
	json_t *causes;
	int r = cli_api_get(cli, target, &eval, e);

	if (r < 0)
		return r;
	causes = json_array();
	/* Allocations that this evaluation could not place belong to its blocked evaluation. */
	if (*cli_json_str(eval, "BlockedEval")) {
		cleanup_free char *blocked =
		    cli_target("/v1/evaluation/%s", cli_json_str(eval, "BlockedEval"));

		if (cli_api_get(cli, blocked, &next, e) == 0 &&
		    strcmp(cli_json_str(next, "Status"), "blocked") == 0)
			add_eval(cli, causes, next);
	}
	if (json_array_size(causes) == 0)
		add_eval(cli, causes, eval);
	return print(cli, "Evaluation", id, cli_json_str(eval, "Status"), causes, e);
}

/* Allocations and jobs. */

static int
get_alloc(struct cli *cli, const char *id, json_t **ret, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/client/allocation/%s/why", id);

	return cli_api_get(cli, target, ret, e);
}

static int
print_alloc(const struct cli *cli, const json_t *alloc, struct err *e)
{
	if (cli->json)
		return cli_json_print(alloc, e);
	cli_say(cli, "Allocation \"%.*s\" (%s) is %s, desired status %s", cli->id_len,
	    cli_json_str(alloc, "ID"), cli_json_str(alloc, "Name"),
	    cli_json_str(alloc, "ClientStatus"), cli_json_str(alloc, "DesiredStatus"));
	print_causes(cli, cli_json_get(alloc, "Causes"));
	return 0;
}

/* Finds the newest allocation that does not run, else the newest. */
static const json_t *
choose_alloc(const json_t *list)
{
	const json_t *item, *best = NULL;
	bool runs, best_runs = true;
	size_t i;

	json_array_foreach (list, i, item) {
		runs = strcmp(cli_json_str(item, "ClientStatus"), "running") == 0;
		if (best && (runs > best_runs ||
				(runs == best_runs && cli_json_int(item, "CreateIndex") <
							  cli_json_int(best, "CreateIndex"))))
			continue;
		best = item;
		best_runs = runs;
	}
	return best;
}

static void
add_blocked(struct cli *cli, json_t *causes, const json_t *evals)
{
	const json_t *eval;
	size_t i;

	json_array_foreach (evals, i, eval)
		if (strcmp(cli_json_str(eval, "Status"), "blocked") == 0)
			add_eval(cli, causes, eval);
}

/* Explains why a job has no allocations. */
static void
add_nothing_wanted(json_t *causes, const json_t *job)
{
	const json_t *group;
	json_int_t wanted = 0;
	size_t i;

	json_array_foreach (cli_json_get(job, "TaskGroups"), i, group)
		wanted = number_add(wanted, cli_json_int(group, "Count"));
	if (cli_json_true(job, "Stop"))
		add_cause(causes, 0, "It was stopped.");
	else if (json_is_object(cli_json_get(job, "ParameterizedJob")) &&
		 !cli_json_true(job, "Dispatched"))
		add_cause(causes, 0, "It is parameterized: dispatching it creates jobs that run.");
	else if (json_is_object(cli_json_get(job, "Periodic")))
		add_cause(causes, 0,
		    cli_json_true(job, "Periodic/Enabled")
			? "It is periodic: at its times it launches jobs that run."
			: "It is periodic but not enabled.");
	else if (wanted == 0)
		add_cause(causes, 0, "The count of all its groups is 0.");
}

/* Explains what is not placed, and which placed allocations do not run. */
static int
explain_job(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *evals_target = cli_target("/v1/job/%s/evaluations", id);
	cleanup_free char *allocs_target = cli_target("/v1/job/%s/allocations", id);
	cleanup_free char *job_target = cli_target("/v1/job/%s", id);
	cleanup_json json_t *evals = NULL, *allocs = NULL, *job = NULL, *alloc = NULL;
	const json_t *chosen;
	bool unplaced;
	json_t *causes;
	int r = cli_api_get(cli, job_target, &job, e);

	if (r == 0)
		r = cli_api_get(cli, evals_target, &evals, e);
	if (r == 0)
		r = cli_api_get(cli, allocs_target, &allocs, e);
	if (r < 0)
		return r;
	causes = json_array();
	add_blocked(cli, causes, evals);
	unplaced = json_array_size(causes) > 0;
	chosen = choose_alloc(allocs);
	if (!unplaced && !chosen)
		add_nothing_wanted(causes, job);
	if (unplaced || !chosen)
		r = print(cli, "Job", id, cli_json_str(job, "Status"), causes, e);
	else
		json_decref(causes);
	/* The output of -json is one value, so it has only what is not placed. */
	if (r < 0 || !chosen || (cli->json && unplaced))
		return r;
	r = get_alloc(cli, cli_json_str(chosen, "ID"), &alloc, e);
	return r < 0 ? r : print_alloc(cli, alloc, e);
}

static int
explain(struct cli *cli, const char *word, struct err *e)
{
	cleanup_json json_t *alloc = NULL;
	cleanup_free char *id = NULL, *other = NULL;
	int r = cli_id_resolve(cli, &cli_kind_alloc, word, &id, e);

	if (r == 0)
		r = get_alloc(cli, id, &alloc, e);
	if (r == 0)
		return print_alloc(cli, alloc, e);
	if (r != -ENOENT)
		return r;
	if (cli_id_resolve(cli, &cli_kind_eval, word, &other, e) == 0) {
		r = explain_eval(cli, other, e);
		if (r != -ENOENT)
			return r;
	} else if (e->code != -ENOENT) {
		return e->code;
	}
	free(steal_ptr(&other));
	if (cli_id_resolve(cli, &cli_kind_job, word, &other, e) == 0)
		return explain_job(cli, other, e);
	return e->code == -ENOENT
		   ? err_say(
			 e, -ENOENT, "no allocation, evaluation or job \"%s\" is known here", word)
		   : e->code;
}

int
cli_alloc_why(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };

	(void)argc;
	return explain(cli, argv[0], &e) < 0 ? cli_fail(cli, &e) : CLI_OK;
}
