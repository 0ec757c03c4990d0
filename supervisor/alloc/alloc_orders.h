/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_orders.h: what operators and servers ask of the tasks of an alloc. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_ORDERS_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_ORDERS_H

#include "supervisor/table/alloc_table.h"

/*
 * Restarts one task, or (task "") those that run, or with all every one, also what is over, stage
 * by stage as at the beginning. Not counted by the restart policy. 0; -ENOENT no such task, -EINVAL
 * nothing of it can be restarted.
 */
int alloc_restart(struct sup_alloc *sa, const char *task, bool all, struct err *e);
/* Those that run; failure: by the restart policy. Returns how many. */
unsigned alloc_restart_running(struct alloc_runner *ar, const char *reason, bool failure);
/* Signals one task, or (task "") those that run. 0; -ENOENT no such task, -EINVAL no such signal or
 * not running. by: who asks. */
int alloc_signal(
    struct sup_alloc *sa, const char *task, const char *signal, const char *by, struct err *e);

#endif
