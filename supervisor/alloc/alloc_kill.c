// SPDX-License-Identifier: Apache-2.0
/*
 * alloc_kill.c: stops the tasks of an alloc: after the group's shutdown_delay, and after a CSI
 * plugin has unmounted the volumes of other allocs that end, the leader, then the other tasks, then
 * the sidecars; poststop tasks run after them. Runs in: supervisor.
 */
#include "supervisor/alloc/alloc_kill.h"

#include "common/clock.h"
#include "common/number.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/task_runner.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/volume/plugin_leave.h"

/* How often it is looked whether a plugin is still needed; how long volumes of allocs that have
 * ended are waited for, because a plugin that cannot unmount them must not run for ever; and how
 * long it waits at all, because two plugins may use volumes of each other. */
#define VOLUMES_LOOK_USEC 200000
#define VOLUMES_ENDED_MS  60000
#define VOLUMES_MAX_MS    600000

/* Returns the step that stops this task; KILL_OVER: no step does. */
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

/* Stops the tasks of this step. True: at least one is not dead yet. */
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

static void
end_delay(struct alloc_runner *ar)
{
	sup_timer_cancel(&ar->kill.timer);
	alloc_step_soon(ar);
}

static void
on_delay_over(void *arg)
{
	end_delay(arg);
}

/* Returns the rest of the group's shutdown_delay, which may have begun under the last supervisor.
 */
static int64_t
delay_left_ns(struct alloc_runner *ar)
{
	int64_t delay = alloc_shutdown_delay_ns(ar), now = clock_real_ns(), left;

	if (delay == 0 || !has_run(ar))
		return 0;
	if (ar->kill.after_ns == 0) {
		ar->kill.after_ns = number_add(now, delay);
		alloc_save_soon(ar);
	}
	left = ar->kill.after_ns - now;
	return left < delay ? left : delay;
}

static enum plugin_leave
volumes_left(const struct alloc_runner *ar)
{
	enum plugin_leave most = PLUGIN_LEAVE_FREE;

	for (unsigned i = 0; i < ar->n_tasks; i++) {
		const struct csi_plugin_block *b = ar->tasks[i].task->csi_plugin;
		enum plugin_leave left = PLUGIN_LEAVE_FREE;

		if (b && b->type != CSI_PLUGIN_CONTROLLER && ar->tasks[i].run)
			left = plugin_leave(ar->sup, str(b->id), &ar->sa->id);
		if (left > most)
			most = left;
	}
	return most;
}

/* Returns whether a plugin is still needed; it is looked again soon. */
static bool
volumes_wait(struct alloc_runner *ar)
{
	enum plugin_leave left = alloc_skips_delay(ar) ? PLUGIN_LEAVE_FREE : volumes_left(ar);

	if (left != PLUGIN_LEAVE_ENDED)
		ar->kill.waits_since_ms = 0;
	else if (ar->kill.waits_since_ms == 0)
		ar->kill.waits_since_ms = clock_ms();
	if (ar->kill.begun_ms == 0)
		ar->kill.begun_ms = clock_ms();
	if (left == PLUGIN_LEAVE_FREE || clock_ms() - ar->kill.begun_ms > VOLUMES_MAX_MS ||
	    (left == PLUGIN_LEAVE_ENDED && clock_ms() - ar->kill.waits_since_ms > VOLUMES_ENDED_MS))
		return false;
	sup_timer_set(
	    ar->sup, &ar->kill.timer, CLOCK_MONOTONIC, VOLUMES_LOOK_USEC, on_delay_over, ar);
	return true;
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
			sup_timer_set(ar->sup, &ar->kill.timer, CLOCK_BOOTTIME,
			    (uint64_t)left / 1000, on_delay_over, ar);
	}
	if (sup_timer_is_set(&ar->kill.timer) && has_run(ar))
		return;
	sup_timer_cancel(&ar->kill.timer);
	while (ar->kill.step < KILL_OVER) {
		if (ar->kill.step == KILL_VOLUMES ? volumes_wait(ar)
						  : step_waits(ar, ar->kill.step))
			return;
		ar->kill.step++;
	}
}

void
alloc_kill_hurry(struct alloc_runner *ar)
{
	end_delay(ar);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_runner_hurry(&ar->tasks[i]);
}

void
alloc_kill_done(struct alloc_runner *ar)
{
	sup_timer_cancel(&ar->kill.timer);
}

void
alloc_kill_poststop(struct alloc_runner *ar)
{
	for (unsigned i = 0; i < ar->n_tasks; i++)
		if (ar->tasks[i].stage == STAGE_POSTSTOP)
			task_runner_kill(&ar->tasks[i], NULL);
}
