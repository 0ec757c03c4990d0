/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_history.h: the events of tasks that are older than the last ten, which are with the alloc.
 * They are in state.db alone. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_HISTORY_H
#define DROVER_SUPERVISOR_ALLOC_TASK_HISTORY_H

#include "supervisor/table/alloc_table.h"

/* Takes over *ev's contents. Its row is written this turn. */
void task_history_add(
    struct sup *sup, const struct id *alloc, const char *task, struct task_event *ev);
/* All of them, the oldest first, into ret->events. */
int task_history_read(struct sup *sup, const struct sup_alloc *sa, const char *task,
    struct task_state *ret, struct err *e);
/* Appends all events of the task, the oldest first, each followed by a comma, but the last. */
int task_history_print(struct sup *sup, const struct sup_alloc *sa, const char *task,
    struct text *json, struct err *e);

#endif
