/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_orders.h: restarts and signals of tasks, requested by operators and servers. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_ORDERS_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_ORDERS_H

#include "supervisor/table/alloc_table.h"

struct alloc_runner;

/*
 * Restarts one task, or all running tasks (task ""), or all tasks (all), including those that have
 * ended, in the order of their lifecycle. The restart policy does not count it. 0; -ENOENT: there
 * is no such task; -EINVAL: no task can be restarted.
 */
int alloc_restart(struct sup_alloc *sa, const char *task, bool all, struct err *e);
/* Restarts all running tasks; failure: the restart policy counts it. Returns how many. */
unsigned alloc_restart_running(struct alloc_runner *ar, const char *reason, bool failure);
/* Sends a signal to one task, or to all running tasks (task ""). by: the user who requests it. 0;
 * -ENOENT: there is no such task; -EINVAL: there is no such signal, or the task does not run. */
int alloc_signal(
    struct sup_alloc *sa, const char *task, const char *signal, const char *by, struct err *e);

#endif
