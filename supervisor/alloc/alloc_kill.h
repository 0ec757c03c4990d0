/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_kill.h: how the tasks of an alloc are ended, step by step. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_KILL_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_KILL_H

struct alloc_runner;

/* Ends the tasks, all but poststop ones: called again whenever a task changes. */
void alloc_kill(struct alloc_runner *ar);
/* Ends every shutdown_delay that has begun: the group's and those of the tasks. */
void alloc_kill_hurry(struct alloc_runner *ar);
/* Ends the poststop tasks too, also before they start. */
void alloc_kill_poststop(struct alloc_runner *ar);
void alloc_kill_done(struct alloc_runner *ar);

#endif
