// SPDX-License-Identifier: Apache-2.0
/* alloc_orders.c: restarts and signals of tasks, requested by operators and servers. Runs in:
 * supervisor. */
#include "supervisor/alloc/alloc_orders.h"

#include <errno.h>

#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/task_runner.h"
#include "supervisor/driver/signal_name.h"

/* task: the name of one task, or "" for all. */
static bool
is_meant(const struct task_runner *tr, const char *task)
{
	return !*task || str_eq(task, tr->task->name);
}

static bool
has_task(const struct sup_alloc *sa, const char *task)
{
	return !*task || alloc_task(sa, task);
}

unsigned
alloc_restart_running(struct alloc_runner *ar, const char *reason, bool failure)
{
	int64_t delay_ns = alloc_shutdown_delay_ns(ar);
	unsigned n = 0;

	for (unsigned i = 0; i < ar->n_tasks; i++)
		n += task_runner_can_restart(&ar->tasks[i]);
	if (n == 0) /* without the hooks: services stay registered */
		return 0;
	alloc_hooks_pre_task_restart(ar);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		(void)task_runner_restart(&ar->tasks[i], reason, failure, delay_ns);
	return n;
}

static bool
begins_anew(const struct task_runner *tr, bool ended)
{
	return !ended || tr->stage == STAGE_POSTSTOP;
}

/* Closes the gates first, so that no task starts again before all have ended. If all tasks except
 * poststop tasks have ended, only the poststop tasks are restarted. */
static unsigned
restart_all(struct alloc_runner *ar)
{
	int64_t delay_ns = alloc_shutdown_delay_ns(ar);
	bool ended = ar->coordinator == COORDINATOR_POSTSTOP;
	unsigned n = 0;

	for (unsigned i = 0; i < ar->n_tasks; i++)
		n += begins_anew(&ar->tasks[i], ended) && task_runner_can_begin_anew(&ar->tasks[i]);
	if (n == 0)
		return 0;
	alloc_hooks_pre_task_restart(ar);
	if (!ended)
		ar->coordinator = COORDINATOR_INIT;
	for (unsigned i = 0; i < ar->n_tasks; i++) {
		if (!begins_anew(&ar->tasks[i], ended))
			continue;
		task_runner_set_gate(&ar->tasks[i], false);
		(void)task_runner_begin_anew(&ar->tasks[i], delay_ns);
	}
	/* If all tasks wait for their start, no event follows that would open the gates. */
	alloc_step_soon(ar);
	return n;
}

int
alloc_restart(struct sup_alloc *sa, const char *task, bool all, struct err *e)
{
	struct alloc_runner *ar = sa->runner;
	unsigned n;

	if (all && *task)
		return err_say(e, -EINVAL, "task name cannot be set when restarting all tasks");
	if (!has_task(sa, task))
		return err_say(e, -ENOENT, "Could not find task runner for task: %.128s", task);
	if (!ar || alloc_terminal(&sa->a) || ar->stopping || ar->kill.step != KILL_NOT)
		return err_say(e, -EINVAL, "restart of an alloc that should not run");
	if (*task)
		n = task_runner_restart(
			alloc_find_task(sa, task), "User requested task to restart", false, 0) == 0;
	else if (all)
		n = restart_all(ar);
	else
		n = alloc_restart_running(ar, "User requested running tasks to restart", false);
	if (n == 0)
		return err_say(e, -EINVAL, "Task not running");
	return 0;
}

int
alloc_signal(
    struct sup_alloc *sa, const char *task, const char *signal, const char *by, struct err *e)
{
	struct alloc_runner *ar = sa->runner;
	int signo = signal_from_name(signal);
	unsigned n = 0;

	if (signo < 0)
		return err_say(
		    e, -EINVAL, "Failed to signal task: unknown signal \"%.32s\"", signal);
	if (!has_task(sa, task))
		return err_say(e, -ENOENT, "Task not found");
	for (unsigned i = 0; ar && i < ar->n_tasks; i++)
		n += is_meant(&ar->tasks[i], task) &&
		     task_runner_signal(&ar->tasks[i], signo, NULL, by) == 0;
	return n > 0 ? 0 : err_say(e, -EINVAL, "Task not running");
}
