/* SPDX-License-Identifier: Apache-2.0 */
/* task_runner.h: the life of one task: starts, restarts, stops, its events. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_RUNNER_H
#define DROVER_SUPERVISOR_ALLOC_TASK_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

#include "model/alloc.h"
#include "supervisor/alloc/coordinator.h"
#include "supervisor/alloc/restart_tracker.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/alloc/task_phase.h"
#include "supervisor/driver/run.h"

struct alloc_runner;
struct sd_event_source;
struct plugin_task;
struct run_usage;
struct task_files;

struct task_runner {
	struct alloc_runner *ar;
	const struct task *task;
	enum task_stage stage;
	enum task_phase phase;
	struct restart_tracker tracker;
	struct run *run; /* NULL when none is on its way or alive */
	struct sd_event_source *timer;
	int64_t delay_ns;     /* of DELAYING or BACKOFF */
	unsigned lost_starts; /* in a row, by the agent's own fault */
	bool gate_open;
	bool killed;                /* it must not run any more */
	bool services_on;           /* its own are registered */
	struct plugin_task *plugin; /* volume/plugin_task.c; NULL: not a CSI plugin */
	struct run_usage *usage;    /* driver/run_usage.h; NULL: nobody has asked */
	struct task_files *files;   /* alloc_identity.c: new tokens that are being written */
};

void task_runner_init(struct task_runner *tr, struct alloc_runner *ar, const struct task *task);
void task_runner_done(struct task_runner *tr);
/* Takes up a run that the last supervisor left. alloc_done: that one had nothing left to do for the
 * alloc. */
void task_runner_restore(struct task_runner *tr, bool alloc_done);
/* May it start? Closing stops nothing that runs. */
void task_runner_set_gate(struct task_runner *tr, bool open);
/* Adds it to its stage. */
void task_runner_count(struct task_runner *tr, struct stage_count stages[STAGES]);
/* A new version of the job, in place: *task has changed, and its executor must not stop it by the
 * old one. */
void task_runner_update(struct task_runner *tr, const struct task *task);
/* A run of this alloc is reaped: it may be what a start waits for. */
void task_runner_run_gone(struct task_runner *tr);
/* Ends it for good. ev (may be NULL) is told first; its contents are taken. */
void task_runner_kill(struct task_runner *tr, struct task_event *ev);
/* Waits no longer for its shutdown_delay. */
void task_runner_hurry(struct task_runner *tr);
/* The alloc could not be set up: the task is dead and failed with this sentence. */
void task_runner_fail_setup(struct task_runner *tr, const char *sentence);
/* Stops what runs, after the delay, and starts it again, by the restart policy when failure is set.
 * -EINVAL: it does not run. */
int task_runner_restart(struct task_runner *tr, const char *reason, bool failure, int64_t delay_ns);
/* Would that succeed? */
bool task_runner_can_restart(const struct task_runner *tr);
/* The same, with all others, for a task that starts, and for one that is over; not counted.
 * -EINVAL: it waits to start, or must not any more. */
int task_runner_begin_anew(struct task_runner *tr, int64_t delay_ns);
bool task_runner_can_begin_anew(struct task_runner *tr);
/* text: the event's, NULL for one of its own. by: who asked; NULL: nobody did. -EINVAL: it does not
 * run. */
int task_runner_signal(struct task_runner *tr, int signo, const char *text, const char *by);

#endif
