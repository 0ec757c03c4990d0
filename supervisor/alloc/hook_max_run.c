// SPDX-License-Identifier: Apache-2.0
/*
 * hook_max_run.c: stops an alloc of a batch or sysbatch job when its age exceeds max_run_duration
 * of its group. Runs in: supervisor.
 */
#include "common/clock.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/core/sup_timer.h"

struct max_run {
	struct sup_timer timer;
	bool overdue;
};

static struct max_run *
state_of(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_max_run);
}

/* Returns the end of max_run_duration, which begins with the placement, by CLOCK_REALTIME; 0: there
 * is no limit. */
static int64_t
deadline_ns(const struct alloc_runner *ar)
{
	enum job_kind kind = ar->sa->job->job.type;
	int64_t most = ar->sa->group->max_run_duration, created = ar->sa->a.create_time, at;

	if ((kind != JOB_BATCH && kind != JOB_SYSBATCH) || most <= 0 || created <= 0)
		return 0;
	return __builtin_add_overflow(created, most, &at) ? 0 : at;
}

/* Stops the alloc. Its poststop tasks do not run. */
static void
end_overdue(struct alloc_runner *ar)
{
	state_of(ar)->overdue = true;
	ar->stop_reason = "allocation exceeded max_run_duration";
	ar->starts_nothing = true;
	alloc_stop_soon(ar);
}

static void
end_if_overdue(struct alloc_runner *ar, const struct alloc_record *kept)
{
	int64_t at = deadline_ns(ar);

	if (ar->restored && !alloc_client_terminal(&ar->sa->a) && at != 0 && at <= clock_real_ns())
		end_overdue(ar);
}

static void
on_deadline(void *arg)
{
	struct alloc_runner *ar = arg;

	end_overdue(ar);
}

static void
disarm_deadline(struct alloc_runner *ar)
{
	struct max_run *m = state_of(ar);

	sup_timer_cancel(&m->timer);
}

static void
arm_deadline(struct alloc_runner *ar)
{
	struct max_run *m = state_of(ar);
	int64_t at = deadline_ns(ar);

	disarm_deadline(ar);
	if (at != 0 && !m->overdue && ar->phase < ALLOC_POSTRUN)
		sup_timer_set_at(
		    ar->sup, &m->timer, CLOCK_REALTIME, (uint64_t)at / 1000, on_deadline, ar);
}

static void
begin_watch(struct alloc_runner *ar)
{
	arm_deadline(ar);
	alloc_hook_done(ar, 0, NULL);
}

static void
end_watch(struct alloc_runner *ar)
{
	disarm_deadline(ar);
	alloc_hook_done(ar, 0, NULL);
}

ALLOC_HOOK(max_run, "max_run_duration", sizeof(struct max_run), .init = end_if_overdue,
    .prerun = begin_watch, .postrun = end_watch, .update = arm_deadline,
    .shutdown = disarm_deadline);
