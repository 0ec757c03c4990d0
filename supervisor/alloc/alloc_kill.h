/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_kill.h: stops the tasks of an alloc, step by step. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_KILL_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_KILL_H

struct alloc_runner;

/* Stops the tasks except poststop tasks. Called again whenever a task has changed, for the next
 * step. */
void alloc_kill(struct alloc_runner *ar);
/* Ends every shutdown_delay that has begun: the group's and those of the tasks. */
void alloc_kill_hurry(struct alloc_runner *ar);
/* Stops the poststop tasks, also before they start. */
void alloc_kill_poststop(struct alloc_runner *ar);
void alloc_kill_done(struct alloc_runner *ar);

#endif
