/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_stop.h: how a task is told to end, as its job says it: shutdown_delay, kill_signal,
 * kill_timeout. When, and what follows, is its runner's affair. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_STOP_H
#define DROVER_SUPERVISOR_ALLOC_TASK_STOP_H

#include <stdint.h>

struct task_runner;

/* Event Killing, where the last supervisor has not said it. */
void task_stop_say(struct task_runner *tr);
/*
 * What is left of its shutdown_delay, which may have begun under another supervisor: the event
 * says when. It is said here, before the delay.
 */
int64_t task_stop_delay_ns(struct task_runner *tr);
/* Stops its run, if there is one. */
void task_stop_run(struct task_runner *tr);
/* Its executor does the same by itself when the lease of its run passes. */
void task_stop_tell_executor(struct task_runner *tr);

#endif
