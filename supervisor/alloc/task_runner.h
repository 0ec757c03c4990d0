/* SPDX-License-Identifier: Apache-2.0 */
/* task_runner.h: starts, restarts and stops one task. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_RUNNER_H
#define DROVER_SUPERVISOR_ALLOC_TASK_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

#include "supervisor/alloc/alloc_state.h"

struct task_event;

void task_runner_init(struct task_runner *tr, struct alloc_runner *ar, const struct task *task);
void task_runner_done(struct task_runner *tr);
/* Restores the task and follows its run. alloc_done: the last supervisor had completed the alloc.
 */
void task_runner_restore(struct task_runner *tr, bool alloc_done);
/* Opens or closes its gate: a closed gate prevents a start, but does not stop a running task. */
void task_runner_set_gate(struct task_runner *tr, bool open);
/* Adds the task to the counts of its stage. */
void task_runner_count(struct task_runner *tr, struct stage_count stages[STAGES]);
/* The job was updated in place: the task and its executor use the new version. */
void task_runner_update(struct task_runner *tr, const struct task *task);
/* A run of this alloc was reaped: a start may have waited for that. */
void task_runner_run_gone(struct task_runner *tr);
/* Stops the task, which does not start again. ev: the event, whose contents move from *ev; NULL:
 * event Killing. */
void task_runner_kill(struct task_runner *tr, struct task_event *ev);
/* Ends its shutdown_delay if one has begun. */
void task_runner_hurry(struct task_runner *tr);
/* The setup of the alloc failed: the task fails with this sentence. */
void task_runner_fail_setup(struct task_runner *tr, const char *sentence);
/* Stops the run after the delay, then starts the task again. failure: the restart policy counts it.
 * -EINVAL: the task does not run. */
int task_runner_restart(struct task_runner *tr, const char *reason, bool failure, int64_t delay_ns);
/* Returns true if task_runner_restart() would succeed. */
bool task_runner_can_restart(const struct task_runner *tr);
/* Restarts the task as a part of its alloc: also while it starts or after it has ended. The restart
 * policy does not count it. -EINVAL: the task waits for its start, or was killed. */
int task_runner_begin_anew(struct task_runner *tr, int64_t delay_ns);
bool task_runner_can_begin_anew(const struct task_runner *tr);
/* Sends a signal. text: of the event; NULL: its default. by: the user who requests it; NULL: the
 * agent itself. -EINVAL: the task does not run. */
int task_runner_signal(struct task_runner *tr, int signo, const char *text, const char *by);

#endif
