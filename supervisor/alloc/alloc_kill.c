// SPDX-License-Identifier: Apache-2.0
/*
 * alloc_kill.c: how the tasks of an alloc are ended: the group's shutdown_delay, then the leader,
 * then the others, then the sidecars; poststop tasks run after them. Runs in: supervisor.
 */
#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/number.h"
#include "supervisor/alloc/alloc_runner.h"

/* The step that ends this task; KILL_OVER: none does. */
static enum kill_step
step_of(const struct task_runner *tr)
{
	const struct lifecycle *l = tr->task->lifecycle;

	if (tr->stage == STAGE_POSTSTOP)
		return KILL_OVER;
	if (tr->task->leader)
		return KILL_LEADER;
	return l && l->sidecar ? KILL_SIDECARS : KILL_OTHERS;
}

/* Tells the tasks of this step to end. True: at least one is not dead yet. */
static bool
step_waits(struct alloc_runner *ar, enum kill_step step)
{
	bool waits = false;

	for (unsigned i = 0; i < ar->n_tasks; i++) {
		struct task_runner *tr = &ar->tasks[i];

		if (step_of(tr) != step || tr->phase == TASK_DEAD)
			continue;
		task_runner_kill(tr, NULL);
		waits |= tr->phase != TASK_DEAD;
	}
	return waits;
}

static bool
has_run(const struct alloc_runner *ar)
{
	for (unsigned i = 0; i < ar->n_tasks; i++)
		if (ar->tasks[i].run && ar->tasks[i].stage != STAGE_POSTSTOP)
			return true;
	return false;
}

static int
on_delay_over(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct alloc_runner *ar = userdata;

	alloc_kill_hurry(ar);
	return 0;
}

bool
alloc_skips_delay(const struct alloc_runner *ar)
{
	return ar->disk_exceeded || ar->sa->a.desired_transition.no_shutdown_delay == OPT_TRUE;
}

int64_t
alloc_shutdown_delay_ns(const struct alloc_runner *ar)
{
	int64_t delay = ar->sa->group->shutdown_delay;

	return delay > 0 && !alloc_skips_delay(ar) ? delay : 0;
}

/* The rest of the group's delay, which may have begun under another supervisor. */
static int64_t
delay_left_ns(struct alloc_runner *ar)
{
	int64_t delay = alloc_shutdown_delay_ns(ar), now = clock_real_ns(), left;

	if (delay == 0 || !has_run(ar))
		return 0;
	if (ar->kill.after_ns == 0) {
		ar->kill.after_ns = number_add(now, delay);
		alloc_client_save(ar);
	}
	left = ar->kill.after_ns - now;
	return left < delay ? left : delay;
}

void
alloc_kill(struct alloc_runner *ar)
{
	int64_t left;

	if (ar->kill.step == KILL_NOT) {
		alloc_hooks_pre_kill(ar);
		left = delay_left_ns(ar);
		ar->kill.step = KILL_DELAY;
		if (left > 0)
			(void)sd_event_add_time_relative(ar->sup->event, &ar->kill.timer,
			    CLOCK_BOOTTIME, (uint64_t)left / 1000, 0, on_delay_over, ar);
	}
	if (ar->kill.timer && has_run(ar))
		return;
	ar->kill.timer = sd_event_source_disable_unref(ar->kill.timer);
	while (ar->kill.step < KILL_OVER && !step_waits(ar, ar->kill.step))
		ar->kill.step++;
}

void
alloc_kill_hurry(struct alloc_runner *ar)
{
	ar->kill.timer = sd_event_source_disable_unref(ar->kill.timer);
	turn_defer(ar->sup, &ar->step);
}

void
alloc_kill_done(struct alloc_runner *ar)
{
	ar->kill.timer = sd_event_source_disable_unref(ar->kill.timer);
}

void
alloc_kill_poststop(struct alloc_runner *ar)
{
	for (unsigned i = 0; i < ar->n_tasks; i++)
		if (ar->tasks[i].stage == STAGE_POSTSTOP)
			task_runner_kill(&ar->tasks[i], NULL);
}
