// SPDX-License-Identifier: Apache-2.0
/* task_hooks.c: calls what the hooks of an alloc do at the steps of one task. Runs in: supervisor.
 */
#include "supervisor/alloc/task_hooks.h"

#include "supervisor/alloc/alloc_hooks.h"

int
task_hooks_fill(struct task_runner *tr, struct spec_writer *spec, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ALLOC_HOOKS_N; i++)
		if (alloc_hook_list[i]->task.fill)
			r = alloc_hook_list[i]->task.fill(tr, spec, e);
	return r;
}

void
task_hooks_filled(struct task_runner *tr)
{
	hook_foreach (hook, task.filled)
		hook->task.filled(tr);
}

void
task_hooks_reported(struct task_runner *tr, const struct exe_hello *hello)
{
	hook_foreach (hook, task.reported)
		hook->task.reported(tr, hello);
}

void
task_hooks_started(struct task_runner *tr)
{
	hook_foreach (hook, task.started)
		hook->task.started(tr);
}

void
task_hooks_runs(struct task_runner *tr)
{
	for (size_t i = ALLOC_HOOKS_N; i-- > 0;)
		if (alloc_hook_list[i]->task.runs)
			alloc_hook_list[i]->task.runs(tr);
}

void
task_hooks_know_env(struct task_runner *tr)
{
	hook_foreach (hook, task.knows_env)
		hook->task.knows_env(tr);
}

void
task_hooks_ends(struct task_runner *tr)
{
	hook_foreach (hook, task.ends)
		hook->task.ends(tr);
}

void
task_hooks_released(struct task_runner *tr)
{
	hook_foreach (hook, task.released)
		hook->task.released(tr);
}

bool
task_hooks_delay_start(const struct task_runner *tr)
{
	hook_foreach (hook, task.delays_start)
		if (hook->task.delays_start(tr))
			return true;
	return false;
}

bool
task_hooks_bar_restart(struct task_runner *tr, struct task_event *ev)
{
	for (size_t i = 0; i < ALLOC_HOOKS_N; i++)
		if (alloc_hook_list[i]->task.bars_restart &&
		    alloc_hook_list[i]->task.bars_restart(tr, ev))
			return true;
	return false;
}
