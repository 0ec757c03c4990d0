// SPDX-License-Identifier: Apache-2.0
/* cli_restart.c: restarts or replaces one batch of a job's allocations. Runs in: cli. */
#include "cli/cli_restart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_watch.h"
#include "common/clock.h"
#include "common/mem.h"

/* One allocation of the batch. */
struct restarted {
	const char *id;     /* of the allocation that is restarted */
	char *current;      /* of the allocation that is followed: its replacement, or itself */
	char *eval_id;      /* of the evaluation that places a replacement; "": none */
	const json_t *stub; /* as it was before */
	bool done;
};

struct batch {
	const struct cli_restart *r;
	struct restarted *allocs;
	size_t n;
	struct cli_restart_result result;
};

static void
report(struct batch *b, struct restarted *a, const struct err *e)
{
	struct err whole = { 0 };

	(void)err_say(&whole, e->code, "allocation \"%.*s\": %s", b->r->cli->id_len, a->id, e->msg);
	(void)cli_fail(b->r->cli, &whole);
	b->result.failed++;
	a->done = true;
}

/* Returns when the task was last started; 0 if its events do not say. */
static json_int_t
last_start(const json_t *alloc, const char *task)
{
	const json_t *state = json_object_get(cli_json_get(alloc, "TaskStates"), task), *event;
	json_int_t last = 0;
	size_t i;

	json_array_foreach (cli_json_get(state, "Events"), i, event) {
		json_int_t time = cli_json_int(event, "Time");

		if (strcmp(cli_json_str(event, "Type"), "Started") == 0 && time > last)
			last = time;
	}
	return last;
}

/* Returns whether this task was to be restarted. */
static bool
is_meant(const struct cli_restart *r, const char *task, const json_t *before)
{
	if (r->tasks.n > 0)
		return strings_has(&r->tasks, task);
	return r->all_tasks || strcmp(cli_json_str(before, "State"), "running") == 0;
}

/* Returns whether each task that was to be restarted was started again. */
static bool
runs_again(const struct cli_restart *r, const json_t *before, const json_t *now)
{
	const json_t *state;
	const char *task;

	json_object_foreach (cli_json_get(before, "TaskStates"), task, state) {
		const json_t *is = json_object_get(cli_json_get(now, "TaskStates"), task);

		if (is_meant(r, task, state) &&
		    (last_start(now, task) <= last_start(before, task) ||
			strcmp(cli_json_str(is, "State"), "pending") == 0))
			return false;
	}
	return true;
}

/* Restarts one task, or those that run ("") or all. */
static int
restart_task(const struct cli_restart *r, const char *id, const char *task, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/client/allocation/%s/restart", id);

	return cli_api_send_new(r->cli, "PUT", target,
	    json_pack("{s:s, s:b}", "TaskName", task, "AllTasks", r->all_tasks), NULL, e);
}

static int
restart_in_place(const struct cli_restart *r, struct restarted *a, struct err *e)
{
	const json_t *states = cli_json_get(a->stub, "TaskStates");
	int ret = 0;

	if (r->tasks.n == 0)
		return restart_task(r, a->id, "", e);
	for (size_t i = 0; i < r->tasks.n && ret == 0; i++)
		if (json_object_get(states, r->tasks.v[i]))
			ret = restart_task(r, a->id, r->tasks.v[i], e);
	return ret;
}

/* Servers place no replacement for a stopped allocation of a system job until it is evaluated. */
static int
evaluate_system_job(const struct cli_restart *r, struct err *e)
{
	const char *id = cli_json_str(r->job, "ID");
	cleanup_free char *target = cli_target("/v1/job/%s/evaluate", id);

	if (strcmp(cli_json_str(r->job, "Type"), "system") != 0)
		return 0;
	return cli_api_send_new(r->cli, "PUT", target,
	    json_pack("{s:s, s:{s:b}}", "JobID", id, "EvalOptions", "ForceReschedule", 1), NULL, e);
}

static int
stop_alloc(const struct cli_restart *r, struct restarted *a, struct err *e)
{
	cleanup_free char *target = cli_target(
	    "/v1/allocation/%s/stop?no_shutdown_delay=%s", a->id, cli_yes(r->no_shutdown_delay));
	cleanup_json json_t *answer = NULL;
	int ret = cli_api_send(r->cli, "PUT", target, NULL, &answer, e);

	if (ret < 0)
		return ret;
	free(a->eval_id);
	a->eval_id = mem_strdup(cli_json_str(answer, "EvalID"));
	return evaluate_system_job(r, e);
}

static void
begin(struct batch *b, struct restarted *a)
{
	const struct cli_restart *r = b->r;
	struct err e = { 0 };
	int ret;

	cli_say(r->cli, "    %s allocation \"%.*s\" (%s)",
	    r->reschedule  ? "Replacing"
	    : r->all_tasks ? "Restarting all tasks of"
	    : r->tasks.n   ? "Restarting the given tasks of"
			   : "Restarting the running tasks of",
	    r->cli->id_len, a->id, cli_json_str(a->stub, "Name"));
	ret = r->reschedule ? stop_alloc(r, a, &e) : restart_in_place(r, a, &e);
	if (ret < 0)
		report(b, a, &e);
}

/* Reports that the replacement cannot be placed, if the evaluation says so. */
static int
check_placement(struct batch *b, struct restarted *a, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/evaluation/%s", a->eval_id);
	cleanup_json json_t *eval = NULL;
	const char *group = cli_json_str(a->stub, "TaskGroup");
	int r = *a->eval_id ? cli_api_get(b->r->cli, target, &eval, e) : 0;

	if (r < 0 || !json_object_get(cli_json_get(eval, "FailedTGAllocs"), group))
		return r;
	cli_watch_say_failed(b->r->cli, cli_json_get(eval, "FailedTGAllocs"));
	b->result.hopeless = true;
	return err_say(e, -ENOSPC, "it is stopped, but its replacement cannot be placed");
}

/* Follows the allocation to its replacement. Returns 0 or -errno. */
static int
check_replaced(struct batch *b, struct restarted *a, const json_t *now, struct err *e)
{
	const char *next = cli_json_str(now, "NextAllocation");
	struct cli *cli = b->r->cli;

	if (*next) {
		cli_say(cli, "    Allocation \"%.*s\" is replaced by \"%.*s\"", cli->id_len,
		    a->current, cli->id_len, next);
		free(a->current);
		a->current = mem_strdup(next);
		return 0;
	}
	if (strcmp(a->current, a->id) == 0)
		return check_placement(b, a, e);
	a->done =
	    cli_alloc_has_ended(now) || strcmp(cli_json_str(now, "ClientStatus"), "running") == 0;
	return a->done && cli_alloc_has_failed(now)
		   ? err_say(e, -EIO, "its replacement \"%.*s\" failed", cli->id_len, a->current)
		   : 0;
}

static int
check_restarted(struct batch *b, struct restarted *a, const json_t *now, struct err *e)
{
	if (cli_alloc_has_failed(now))
		return err_say(
		    e, -EIO, "it failed: drover alloc why %.*s", b->r->cli->id_len, a->id);
	a->done = cli_alloc_has_ended(now) || runs_again(b->r, a->stub, now);
	return 0;
}

static void
check(struct batch *b, struct restarted *a)
{
	cleanup_free char *target = cli_target("/v1/allocation/%s", a->current);
	cleanup_json json_t *now = NULL;
	struct cli *cli = b->r->cli;
	struct err e = { 0 };
	int r = cli_api_get(cli, target, &now, &e);

	if (r == 0)
		r = b->r->reschedule ? check_replaced(b, a, now, &e)
				     : check_restarted(b, a, now, &e);
	if (r < 0)
		report(b, a, &e);
	else if (a->done)
		cli_say(cli, "    Allocation \"%.*s\" is %s", cli->id_len, a->current,
		    cli_json_str(now, "ClientStatus"));
}

/* Waits until nothing is to be done any more for an allocation of the batch. */
static void
wait_for_all(struct batch *b)
{
	uint64_t said_ms = clock_ms();
	unsigned step_ms = 0;
	size_t left;

	for (;;) {
		left = 0;
		for (size_t i = 0; i < b->n; i++) {
			if (!b->allocs[i].done)
				check(b, &b->allocs[i]);
			left += !b->allocs[i].done;
		}
		if (left == 0)
			return;
		if (clock_ms() - said_ms > CLI_WATCH_STILL_MS) {
			cli_say(b->r->cli, "    Still waiting for %zu allocation(s)", left);
			said_ms = clock_ms();
		}
		cli_watch_pause(&step_ms);
	}
}

struct cli_restart_result
cli_restart_batch(const struct cli_restart *r, json_t *const *allocs, size_t n)
{
	cleanup_free struct restarted *all = mem_zeroed(n, sizeof *all);
	struct batch b = { .r = r, .allocs = all, .n = n };

	for (size_t i = 0; i < n; i++) {
		const char *id = cli_json_str(allocs[i], "ID");

		all[i] = (struct restarted){ .id = id, .stub = allocs[i] };
		all[i].current = mem_strdup(id);
		all[i].eval_id = mem_strdup("");
		begin(&b, &all[i]);
	}
	wait_for_all(&b);
	for (size_t i = 0; i < n; i++) {
		free(all[i].current);
		free(all[i].eval_id);
	}
	return b.result;
}
