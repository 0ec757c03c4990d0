/* SPDX-License-Identifier: Apache-2.0 */
/* task_runner.h: the life of one task: starts, restarts, stops, its events. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_RUNNER_H
#define DROVER_SUPERVISOR_ALLOC_TASK_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

#include "supervisor/alloc/alloc_state.h"

struct task_event;

void task_runner_init(struct task_runner *tr, struct alloc_runner *ar, const struct task *task);
void task_runner_done(struct task_runner *tr);
/* Follows a run that the last supervisor left. alloc_done: that one had completed the alloc. */
void task_runner_restore(struct task_runner *tr, bool alloc_done);
/* Lets it start, or not; a task that runs is not stopped. */
void task_runner_set_gate(struct task_runner *tr, bool open);
/* Adds it to the counts of its stage. */
void task_runner_count(struct task_runner *tr, struct stage_count stages[STAGES]);
/* The job was updated in place: the task and its executor follow the new version. */
void task_runner_update(struct task_runner *tr, const struct task *task);
/* A run of this alloc was reaped: a start may have waited for that. */
void task_runner_run_gone(struct task_runner *tr);
/* Ends it for good. ev: the event, whose contents are taken; NULL: event Killing. */
void task_runner_kill(struct task_runner *tr, struct task_event *ev);
/* Ends its shutdown_delay now. */
void task_runner_hurry(struct task_runner *tr);
/* The alloc could not be set up: the task fails with this sentence and ends. */
void task_runner_fail_setup(struct task_runner *tr, const char *sentence);
/* Stops its run after the delay and starts it again; failure: the restart policy counts it.
 * -EINVAL: it does not run. */
int task_runner_restart(struct task_runner *tr, const char *reason, bool failure, int64_t delay_ns);
/* task_runner_restart() would not fail. */
bool task_runner_can_restart(const struct task_runner *tr);
/* As task_runner_restart(), for a restart of the whole alloc: also while the task starts or after
 * it ended; does not count against the policy. -EINVAL: it waits to start, or was killed. */
int task_runner_begin_anew(struct task_runner *tr, int64_t delay_ns);
bool task_runner_can_begin_anew(const struct task_runner *tr);
/* text: of the event; NULL: its default. by: the user who asked; NULL: the agent itself. -EINVAL:
 * it does not run. */
int task_runner_signal(struct task_runner *tr, int signo, const char *text, const char *by);

#endif
