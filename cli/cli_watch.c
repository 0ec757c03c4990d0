// SPDX-License-Identifier: Apache-2.0
/* cli_watch.c: follows evaluations and allocations until they are done. Runs in: cli. */
#include "cli/cli_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_screen.h"
#include "common/clock.h"
#include "common/number.h"

#define EVENTS_OF_AT_MOST                                                                          \
	5 /* if there are more allocations than this, only their states are printed */

void
cli_watch_pause(unsigned *step_ms)
{
	if (*step_ms < CLI_WATCH_FAST_MS)
		*step_ms = CLI_WATCH_FAST_MS;
	cli_sleep_ms(*step_ms);
	*step_ms += *step_ms / 4;
	if (*step_ms > CLI_WATCH_SLOW_MS)
		*step_ms = CLI_WATCH_SLOW_MS;
}

bool
cli_alloc_has_failed(const json_t *alloc)
{
	const char *status = cli_json_str(alloc, "ClientStatus");

	return strcmp(status, "failed") == 0 || strcmp(status, "lost") == 0;
}

bool
cli_alloc_has_ended(const json_t *alloc)
{
	return cli_alloc_has_failed(alloc) ||
	       strcmp(cli_json_str(alloc, "ClientStatus"), "complete") == 0;
}

/* Prints why the group could not be placed, one line per reason. */
static void
say_metric(const struct cli *cli, const char *group, const json_t *metric)
{
	static const char *const maps[][2] = { { "ClassFiltered",
						   "Class \"%s\" filtered %lld node(s)" },
		{ "ConstraintFiltered", "Constraint \"%s\" filtered %lld node(s)" },
		{ "ClassExhausted", "Class \"%s\" exhausted on %lld node(s)" },
		{ "DimensionExhausted", "Dimension \"%s\" exhausted on %lld node(s)" } };
	long long failures = number_add(cli_json_int(metric, "CoalescedFailures"), 1);
	const json_t *count;
	const char *name;
	char line[512];

	cli_say(
	    cli, "    Task Group \"%s\" (failed to place %lld allocation(s)):", group, failures);
	if (cli_json_int(metric, "NodesEvaluated") == 0)
		cli_say(cli, "      * No nodes were eligible for evaluation");
	for (size_t i = 0; i < ELEMENTSOF(maps); i++) {
		json_object_foreach (cli_json_get(metric, maps[i][0]), name, count) {
			(void)snprintf(line, sizeof line, maps[i][1], name,
			    (long long)json_integer_value(count));
			cli_say(cli, "      * %s", line);
		}
	}
}

void
cli_watch_say_failed(const struct cli *cli, const json_t *failed)
{
	const json_t *metric;
	const char *group;

	json_object_foreach ((json_t *)failed, group, metric)
		say_metric(cli, group, metric);
}

static int
say_eval_end(const struct cli *cli, const char *eval_id, const json_t *eval)
{
	const json_t *failed = cli_json_get(eval, "FailedTGAllocs");
	const char *status = cli_json_str(eval, "Status"),
		   *why = cli_json_str(eval, "StatusDescription");
	const char *blocked = cli_json_str(eval, "BlockedEval");

	if (strcmp(status, "complete") != 0) {
		cli_say(cli, "==> Evaluation \"%.*s\" finished with status \"%s\"%s%s", cli->id_len,
		    eval_id, status, *why ? ": " : "", why);
		if (strcmp(status, "blocked") != 0 && json_object_size(failed) == 0)
			return CLI_UNPLACED;
	} else {
		cli_say(cli, "==> Evaluation \"%.*s\" finished with status \"complete\"%s",
		    cli->id_len, eval_id,
		    json_object_size(failed) ? " but could not place everything:" : "");
	}
	cli_watch_say_failed(cli, failed);
	if (*blocked)
		cli_say(cli,
		    "    Evaluation \"%.*s\" is blocked until there are resources for the rest",
		    cli->id_len, blocked);
	return strcmp(status, "complete") != 0 || json_object_size(failed) ? CLI_UNPLACED : CLI_OK;
}

int
cli_watch_eval(struct cli *cli, const char *eval_id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/evaluation/%s", eval_id);
	uint64_t said_ms = clock_ms();
	unsigned step_ms = 0;
	int r;

	cli_say(cli, "==> Monitoring evaluation \"%.*s\"", cli->id_len, eval_id);
	for (;;) {
		cleanup_json json_t *eval = NULL;

		r = cli_api_get(cli, target, &eval, e);
		if (r < 0)
			return r;
		if (strcmp(cli_json_str(eval, "Status"), "pending") != 0)
			return say_eval_end(cli, eval_id, eval);
		cli_progress("The evaluation is pending");
		if (clock_ms() - said_ms > CLI_WATCH_STILL_MS) {
			cli_say(cli, "    The evaluation is still pending");
			said_ms = clock_ms();
		}
		cli_watch_pause(&step_ms);
	}
}

/* What was printed so far: the state of each allocation, and the time of the last event of each
 * task. */
struct watch {
	struct cli *cli;
	json_t *said;
	uint64_t said_ms;
	bool events;
};

static json_t *
said_of(struct watch *w, const char *alloc_id)
{
	json_t *said = json_object_get(w->said, alloc_id);

	if (said)
		return said;
	said = json_object();
	(void)json_object_set_new(w->said, alloc_id, said);
	return said;
}

/* Returns the index of the first event that was not printed yet. An executor may report the end of
 * a run with a time before that of its start, so events have no order but that of the list. */
static size_t
first_new_event(const json_t *events, json_int_t last)
{
	for (size_t i = json_array_size(events); i-- > 0;)
		if (cli_json_int(json_array_get(events, i), "Time") == last)
			return i + 1;
	return 0;
}

/* Prints the events of one task after the last printed one. */
static void
say_events(
    struct watch *w, const json_t *alloc, const char *task, const json_t *state, json_t *said)
{
	const json_t *events = cli_json_get(state, "Events"), *event;
	char key[160];
	json_int_t last;

	(void)snprintf(key, sizeof key, "task %s", task);
	last = cli_json_int(said, key);
	for (size_t i = first_new_event(events, last); i < json_array_size(events); i++) {
		event = json_array_get(events, i);
		last = cli_json_int(event, "Time");
		cli_say(w->cli, "    Allocation \"%.*s\" task \"%s\": %s: %s", w->cli->id_len,
		    cli_json_str(alloc, "ID"), task, cli_json_str(event, "Type"),
		    cli_json_str(event, "DisplayMessage"));
		w->said_ms = clock_ms();
	}
	(void)json_object_set_new(said, key, json_integer(last));
}

static void
say_changes(struct watch *w, const json_t *alloc)
{
	const char *status = cli_json_str(alloc, "ClientStatus"), *id = cli_json_str(alloc, "ID");
	const char *why = cli_json_str(alloc, "ClientDescription"), *task;
	json_t *said = said_of(w, id), *state;

	if (!said)
		return;
	if (!json_object_get(said, "status"))
		cli_say(w->cli, "    Allocation \"%.*s\" (%s) on node \"%s\"", w->cli->id_len, id,
		    cli_json_str(alloc, "Name"), cli_json_str(alloc, "NodeName"));
	if (w->events) {
		json_object_foreach (cli_json_get(alloc, "TaskStates"), task, state)
			say_events(w, alloc, task, state, said);
	}
	if (strcmp(cli_json_str(said, "status"), status) == 0)
		return;
	if (strcmp(status, "pending") != 0)
		cli_say(w->cli, "    Allocation \"%.*s\" is %s%s%s", w->cli->id_len, id, status,
		    cli_alloc_has_failed(alloc) && *why ? ": " : "",
		    cli_alloc_has_failed(alloc) ? why : "");
	(void)json_object_set_new(said, "status", json_string(status));
	w->said_ms = clock_ms();
}

/* Prints the last three events of each failed task, if they were not printed as they came. */
static void
say_failure(struct watch *w, const json_t *alloc)
{
	const json_t *state, *events;
	const char *task, *id = cli_json_str(alloc, "ID");
	size_t n;

	json_object_foreach (cli_json_get(alloc, "TaskStates"), task, state) {
		events = cli_json_get(state, "Events");
		n = json_array_size(events);
		for (size_t i = n > 3 ? n - 3 : 0;
		     cli_json_true(state, "Failed") && !w->events && i < n; i++) {
			const json_t *event = json_array_get(events, i);

			cli_say(w->cli, "    Allocation \"%.*s\" task \"%s\": %s: %s",
			    w->cli->id_len, id, task, cli_json_str(event, "Type"),
			    cli_json_str(event, "DisplayMessage"));
		}
	}
	cli_say(w->cli, "    More: drover alloc status %.*s; drover alloc logs -stderr %.*s",
	    w->cli->id_len, id, w->cli->id_len, id);
}

struct tally {
	size_t total, running, ended, failed;
};

static struct tally
count_allocs(struct watch *w, const json_t *list, const char *eval_id)
{
	struct tally t = { 0 };
	const json_t *alloc;
	size_t i;

	json_array_foreach (list, i, alloc)
		t.total += strcmp(cli_json_str(alloc, "EvalID"), eval_id) == 0 &&
			   strcmp(cli_json_str(alloc, "DesiredStatus"), "run") == 0;
	w->events = t.total <= EVENTS_OF_AT_MOST;
	t.total = 0;
	json_array_foreach (list, i, alloc) {
		const char *status = cli_json_str(alloc, "ClientStatus");
		bool failed = cli_alloc_has_failed(alloc);

		if (strcmp(cli_json_str(alloc, "EvalID"), eval_id) != 0)
			continue;
		/* A failed allocation counts even if it is to be stopped by now: its replacement is
		 * being placed. */
		if (strcmp(cli_json_str(alloc, "DesiredStatus"), "run") != 0 && !failed)
			continue;
		say_changes(w, alloc);
		t.total++;
		t.running += strcmp(status, "running") == 0;
		t.ended += cli_alloc_has_ended(alloc);
		t.failed += failed;
	}
	return t;
}

static int
end_start(struct watch *w, const json_t *list, const char *job_id, const char *eval_id,
    const struct tally *t)
{
	const json_t *alloc;
	size_t i;

	if (t->total > 0 && t->ended == t->total && !t->failed)
		cli_say(w->cli, "==> Job \"%s\": %zu allocation(s) complete", job_id, t->total);
	else if (t->total > 0)
		cli_say(w->cli, "==> Job \"%s\": %zu of %zu allocation(s) running%s", job_id,
		    t->running, t->total,
		    t->failed              ? ", some failed"
		    : t->ended > t->failed ? ", the others are complete"
					   : "");
	json_array_foreach (list, i, alloc) {
		if (strcmp(cli_json_str(alloc, "EvalID"), eval_id) == 0 &&
		    cli_alloc_has_failed(alloc))
			say_failure(w, alloc);
	}
	return t->failed ? CLI_FAILED : CLI_OK;
}

int
cli_watch_start(struct cli *cli, const char *job_id, const char *eval_id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/job/%s/allocations", job_id);
	cleanup_json json_t *said = json_object();
	struct watch w = { .cli = cli, .said = said, .said_ms = clock_ms() };
	unsigned step_ms = 0;
	int r;

	for (;;) {
		cleanup_json json_t *list = NULL;
		struct tally t;

		r = cli_api_get(cli, target, &list, e);
		if (r < 0)
			return r;
		t = count_allocs(&w, list, eval_id);
		if (t.running + t.ended == t.total)
			return end_start(&w, list, job_id, eval_id, &t);
		cli_progress("%zu of %zu allocation(s) running", t.running, t.total);
		if (clock_ms() - w.said_ms > CLI_WATCH_STILL_MS) {
			cli_say(cli, "    Still waiting: %zu of %zu allocation(s) running",
			    t.running, t.total);
			w.said_ms = clock_ms();
		}
		cli_watch_pause(&step_ms);
	}
}

static bool
is_meant(const struct cli_watch_filter *f, const json_t *alloc)
{
	if (f->alloc_id && strcmp(cli_json_str(alloc, "ID"), f->alloc_id) != 0)
		return false;
	if (f->job_id && strcmp(cli_json_str(alloc, "JobID"), f->job_id) != 0)
		return false;
	if (f->node_id && strcmp(cli_json_str(alloc, "NodeID"), f->node_id) != 0)
		return false;
	return !f->no_system || strncmp(cli_json_str(alloc, "JobType"), "sys", 3) != 0;
}

/* A single allocation is requested by its id: its job may already be purged. */
static int
list_meant(struct cli *cli, const struct cli_watch_filter *f, json_t **ret, struct err *e)
{
	cleanup_free char *target = NULL;
	json_t *one = NULL;
	int r;

	if (!f->alloc_id)
		return cli_api_get(cli, "/v1/allocations", ret, e);
	target = cli_target("/v1/allocation/%s", f->alloc_id);
	r = cli_api_get(cli, target, &one, e);
	if (r < 0 && r != -ENOENT)
		return r;
	*ret = json_array();
	if (r == 0)
		(void)json_array_append_new(*ret, one);
	return 0;
}

static size_t
count_alive(struct watch *w, const struct cli_watch_filter *f, const json_t *list)
{
	const json_t *alloc;
	size_t i, alive = 0;

	json_array_foreach (list, i, alloc) {
		const char *id = cli_json_str(alloc, "ID");
		bool ended = cli_alloc_has_ended(alloc);

		if (!is_meant(f, alloc))
			continue;
		if (!ended) {
			alive++;
			(void)json_object_set_new(w->said, id, json_true());
		} else if (f->alloc_id ? !json_is_false(json_object_get(w->said, id))
				       : json_is_true(json_object_get(w->said, id))) {
			cli_say(w->cli, "    Allocation \"%.*s\" (%s) has ended: %s",
			    w->cli->id_len, id, cli_json_str(alloc, "Name"),
			    cli_json_str(alloc, "ClientStatus"));
			(void)json_object_set_new(w->said, id, json_false());
			w->said_ms = clock_ms();
		}
	}
	return alive;
}

int
cli_watch_end(struct cli *cli, const struct cli_watch_filter *filter, struct err *e)
{
	cleanup_json json_t *said = json_object();
	struct watch w = { .cli = cli, .said = said, .said_ms = clock_ms() };
	unsigned step_ms = 0;
	size_t alive;
	int r;

	for (;;) {
		cleanup_json json_t *list = NULL;

		r = list_meant(cli, filter, &list, e);
		if (r < 0)
			return r;
		alive = count_alive(&w, filter, list);
		if (alive == 0)
			return (int)json_object_size(said);
		cli_progress("Waiting for %zu allocation(s) to end", alive);
		if (clock_ms() - w.said_ms > CLI_WATCH_STILL_MS) {
			cli_say(cli, "    Still waiting for %zu allocation(s) to end", alive);
			w.said_ms = clock_ms();
		}
		cli_watch_pause(&step_ms);
	}
}
