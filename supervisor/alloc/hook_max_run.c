// SPDX-License-Identifier: Apache-2.0
/*
 * hook_max_run.c: an alloc of a batch or sysbatch job ends when it is as old as its group's
 * max_run_duration allows, whatever its tasks are at. Runs in: supervisor.
 */
#include "supervisor/alloc/hook_max_run.h"

#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/log.h"
#include "supervisor/alloc/alloc_runner.h"

struct max_run {
	struct sd_event_source *timer;
	bool overdue;
};

static struct max_run *
state_of(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_max_run);
}

/* By CLOCK_REALTIME, counted from its placement; 0: no limit. */
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
	return state_of(ar)->overdue;
}

/* Not even its poststop tasks run. */
static void
end_overdue(struct alloc_runner *ar)
{
	state_of(ar)->overdue = true;
	ar->starts_nothing = ar->stopping = true;
}

static int
init(struct alloc_runner *ar, const json_t *kept)
{
	int64_t at = deadline_ns(ar);

	if (ar->restored && !alloc_client_terminal(&ar->sa->a) && at != 0 && at <= clock_real_ns())
		end_overdue(ar);
	return 0;
}

static int
on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct alloc_runner *ar = userdata;

	state_of(ar)->timer = sd_event_source_disable_unref(source);
	end_overdue(ar);
	alloc_runner_stop(ar);
	return 0;
}

static void
disarm(struct alloc_runner *ar)
{
	struct max_run *m = state_of(ar);

	m->timer = sd_event_source_disable_unref(m->timer);
}

static void
arm(struct alloc_runner *ar)
{
	struct max_run *m = state_of(ar);
	int64_t at = deadline_ns(ar);

	disarm(ar);
	if (at != 0 && !m->overdue && ar->phase < ALLOC_POSTRUN &&
	    sd_event_add_time(ar->sup->event, &m->timer, CLOCK_REALTIME, (uint64_t)at / 1000, 0,
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
	.state_size = sizeof(struct max_run),
	.init = init,
	.prerun = prerun,
	.postrun = postrun,
	.update = arm,
	.shutdown = disarm,
};
