/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_stop.h: how a task is told to end, as its job says it: shutdown_delay, kill_signal,
 * kill_timeout. The task runner decides when. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_STOP_H
#define DROVER_SUPERVISOR_ALLOC_TASK_STOP_H

#include <stdint.h>

struct task_runner;

/* Records event Killing, unless the last supervisor has. */
void task_stop_record(struct task_runner *tr);
/*
 * The rest of its shutdown_delay, which may have begun under another supervisor: the time of its
 * event says when. Records that event when the delay begins.
 */
int64_t task_stop_delay_ns(struct task_runner *tr);
/* Stops its run, if there is one. */
void task_stop_run(struct task_runner *tr);
/* Tells its executor how to stop the run by itself when its lease passes. */
void task_stop_tell_executor(struct task_runner *tr);

#endif
