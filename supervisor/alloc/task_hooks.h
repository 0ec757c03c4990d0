/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_hooks.h: what the hooks of an alloc do at the steps of one task. task_runner.c calls these
 * functions; each calls the hooks that have the callback of its name. Runs in: supervisor.
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

/* In struct alloc_hook. All callbacks are optional and are complete when they return. */
struct task_hook {
	size_t state_size; /* of task_hook_state() */

	/* A start is being made: adds files to it. 0, or -EINVAL with *e. */
	int (*fill)(struct task_runner *tr, struct spec_writer *spec, struct err *e);
	/* The start was made, with what fill() added. */
	void (*filled)(struct task_runner *tr);
	/* The run's executor reports the state of the run. */
	void (*reported)(struct task_runner *tr, const struct exe_hello *hello);
	/* The run has started: event Started is recorded. */
	void (*started)(struct task_runner *tr);
	/* The task runs: after started(), and once more after a restart of the agent. Hooks are
	 * called in reverse order: hook_identity.c may restart the task. */
	void (*runs)(struct task_runner *tr);
	/* The task is to end or has ended; may be called again. */
	void (*ends)(struct task_runner *tr);
	/* The run has ended, or this process ends: nothing may refer to the run any more. */
	void (*released)(struct task_runner *tr);
	/* True: the task must not be restarted; *ev is the event that says why. */
	bool (*bars_restart)(struct task_runner *tr, struct task_event *ev);
};

int task_hooks_fill(struct task_runner *tr, struct spec_writer *spec, struct err *e);
void task_hooks_filled(struct task_runner *tr);
void task_hooks_reported(struct task_runner *tr, const struct exe_hello *hello);
void task_hooks_started(struct task_runner *tr);
void task_hooks_runs(struct task_runner *tr);
void task_hooks_ends(struct task_runner *tr);
void task_hooks_released(struct task_runner *tr);
bool task_hooks_bar_restart(struct task_runner *tr, struct task_event *ev);

#endif
