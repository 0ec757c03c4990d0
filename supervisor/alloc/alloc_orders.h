/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_orders.h: what operators and servers ask of the tasks of an alloc. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_ORDERS_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_ORDERS_H

#include "supervisor/table/alloc_table.h"

struct alloc_runner;

/*
 * Restarts one task, or (task "") those that run, or (all) every task, also those that have ended,
 * stage by stage as at the beginning. The restart policy does not count it. 0; -ENOENT: no such
 * task; -EINVAL: no task can be restarted.
 */
int alloc_restart(struct sup_alloc *sa, const char *task, bool all, struct err *e);
/* Restarts the tasks that run; failure: the restart policy counts it. Returns how many. */
unsigned alloc_restart_running(struct alloc_runner *ar, const char *reason, bool failure);
/* Signals one task, or (task "") those that run. by: the user who asks. 0; -ENOENT: no such task;
 * -EINVAL: no such signal, or the task does not run. */
int alloc_signal(
    struct sup_alloc *sa, const char *task, const char *signal, const char *by, struct err *e);

#endif
