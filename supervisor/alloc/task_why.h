/* SPDX-License-Identifier: Apache-2.0 */
/* task_why.h: why a task ended, was restarted, or was not. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_WHY_H
#define DROVER_SUPERVISOR_ALLOC_TASK_WHY_H

#include "supervisor/alloc/causes.h"
#include "supervisor/table/alloc_table.h"

/* Adds the causes in the events of a task; *past has them, the oldest first. */
void task_why(const struct sup_alloc *sa, const struct task *task, const struct task_state *past,
    struct causes *c);

#endif
