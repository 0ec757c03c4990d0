// SPDX-License-Identifier: Apache-2.0
/*
 * hook_max_run.c: an alloc of a batch or sysbatch job ends when it is as old as its group's
 * max_run_duration allows, whatever its tasks are at. Runs in: supervisor.
 */
#include <systemd/sd-event.h>

#include "common/log.h"
#include "supervisor/alloc/alloc_runner.h"

/* By CLOCK_REALTIME, from its placement on; 0: it may run for ever. */
static int64_t
deadline_ns(const struct alloc_runner *ar)
{
	enum job_kind kind = ar->sa->job->job.type;
	int64_t most = ar->sa->group->max_run_duration, created = ar->sa->a.create_time, at;

	if ((kind != JOB_BATCH && kind != JOB_SYSBATCH) || most <= 0 || created <= 0)
		return 0;
	return __builtin_add_overflow(created, most, &at) ? 0 : at;
}

bool
alloc_is_overdue(const struct alloc_runner *ar)
{
	int64_t at = deadline_ns(ar);

	return at != 0 && at <= task_now_ns();
}

static int
on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct alloc_runner *ar = userdata;

	ar->max_run = sd_event_source_disable_unref(ar->max_run);
	ar->overdue = true;
	alloc_runner_stop(ar);
	return 0;
}

static void
disarm(struct alloc_runner *ar)
{
	ar->max_run = sd_event_source_disable_unref(ar->max_run);
}

static void
arm(struct alloc_runner *ar)
{
	int64_t at = deadline_ns(ar);

	disarm(ar);
	if (at != 0 && !ar->overdue && ar->phase < ALLOC_POSTRUN &&
	    sd_event_add_time(ar->sup->event, &ar->max_run, CLOCK_REALTIME, (uint64_t)at / 1000, 0,
		on_deadline, ar) < 0)
		log_error("allocation %.8s: no memory for its max_run_duration", ar->sa->a.id);
}

static void
prerun(struct alloc_runner *ar)
{
	arm(ar);
	alloc_hook_done(ar, 0, NULL);
}

static void
postrun(struct alloc_runner *ar)
{
	disarm(ar);
	alloc_hook_done(ar, 0, NULL);
}

const struct alloc_hook alloc_hook_max_run = {
	.name = "max_run_duration",
	.prerun = prerun,
	.postrun = postrun,
	.update = arm,
	.shutdown = disarm,
};
