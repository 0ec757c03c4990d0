/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_history.h: the events of a task that are older than its last ten. They are only in state.db;
 * the last ten are in the alloc. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_HISTORY_H
#define DROVER_SUPERVISOR_ALLOC_TASK_HISTORY_H

#include "supervisor/table/alloc_table.h"

/* Adds an event, which is older than those of the alloc. Its row is written in this turn. */
void task_history_add(
    struct sup *sup, const struct id *alloc, const char *task, const struct task_event *ev);
/* Reads all events of the task, the oldest first, into ret->events. 0 or -errno with *e. */
int task_history_read(struct sup *sup, const struct sup_alloc *sa, const char *task,
    struct task_state *ret, struct err *e);
/* Appends all events of the task as JSON, the oldest first, with commas between them. */
int task_history_print(struct sup *sup, const struct sup_alloc *sa, const char *task,
    struct text *json, struct err *e);

#endif
