/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_stop.h: stops a run with shutdown_delay, kill_signal and kill_timeout of its job. Runs in:
 * supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_STOP_H
#define DROVER_SUPERVISOR_ALLOC_TASK_STOP_H

#include <stdint.h>

struct task_runner;

/* Returns the kill signal of the job, or of its driver or image; -1 if there is none of this name.
 */
int task_stop_signal(struct task_runner *tr);
/* Records event Killing, unless the last supervisor has done that. */
void task_stop_record(struct task_runner *tr);
/*
 * Returns the rest of the task's shutdown_delay. If the delay begins now, records the event by
 * whose time the next supervisor knows the rest.
 */
int64_t task_stop_delay_ns(struct task_runner *tr);
/* Stops the run, if there is one. */
void task_stop_run(struct task_runner *tr);
/* Tells the executor how to stop the run when its lease passes. */
void task_stop_tell_executor(struct task_runner *tr);

#endif
