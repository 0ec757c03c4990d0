/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_hooks.h: callbacks of hooks at the steps of one task. Each function calls all hooks that
 * have the callback of its name. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_HOOKS_H
#define DROVER_SUPERVISOR_ALLOC_TASK_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

struct alloc_hook;
struct exe_hello;
struct spec_writer;
struct task_event;
struct task_runner;

/* A member of struct alloc_hook. All callbacks are optional and are complete when they return. */
struct task_hook {
	size_t state_size; /* of task_hook_state() */

	/* Adds files to the start of a run. 0, or -EINVAL with *e. */
	int (*fill)(struct task_runner *tr, struct spec_writer *spec, struct err *e);
	/* The run was started with the files that fill() added. */
	void (*filled)(struct task_runner *tr);
	/* The executor has reported the state of the run. */
	void (*reported)(struct task_runner *tr, const struct exe_hello *hello);
	/* The run has started, and event Started was recorded. */
	void (*started)(struct task_runner *tr);
	/* The task is running: called after started(), and again after a restart of the agent.
	 * Hooks are called in reverse order, because hook_identity.c may restart the task. */
	void (*runs)(struct task_runner *tr);
	/* The templates of a running task were rendered for the first time since the agent was
	 * restarted, so the variables that they make are known, which state.db did not have. */
	void (*knows_env)(struct task_runner *tr);
	/* The task is to stop or has ended, or a run of its ended alloc was reaped. May be called
	 * more than once. */
	void (*ends)(struct task_runner *tr);
	/* The run is being freed, because it has ended or this process ends. */
	void (*released)(struct task_runner *tr);
	/* True: the task cannot start yet. The hook calls alloc_step_soon() when it can. */
	bool (*delays_start)(const struct task_runner *tr);
	/* True: the task must not be restarted, and *ev is the event Not Restarting. */
	bool (*bars_restart)(struct task_runner *tr, struct task_event *ev);
};

int task_hooks_fill(struct task_runner *tr, struct spec_writer *spec, struct err *e);
void task_hooks_filled(struct task_runner *tr);
void task_hooks_reported(struct task_runner *tr, const struct exe_hello *hello);
void task_hooks_started(struct task_runner *tr);
void task_hooks_runs(struct task_runner *tr);
void task_hooks_know_env(struct task_runner *tr);
void task_hooks_ends(struct task_runner *tr);
void task_hooks_released(struct task_runner *tr);
bool task_hooks_delay_start(const struct task_runner *tr);
bool task_hooks_bar_restart(struct task_runner *tr, struct task_event *ev);

#endif
