/* SPDX-License-Identifier: Apache-2.0 */
/*
 * services.h: registers the services of allocs at the source. The services of a group are
 * registered from before its tasks start until before they are stopped, but not while all of them
 * restart; the services of a task while it runs. After a restart of the agent they are registered
 * again. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVICE_SERVICES_H
#define DROVER_SUPERVISOR_SERVICE_SERVICES_H

#include "common/err.h"

#include "supervisor/table/alloc_table.h"

/* Registers all services of the group (task NULL) or of a task, also if they are registered
 * already. Returns 0, or -errno with *e; then none is registered. */
int services_up(struct sup *sup, struct sup_alloc *sa, const struct task *task, struct err *e);
/* Deregisters the services of the group (task NULL) or of a task, if there are any. */
void services_down(struct sup *sup, struct sup_alloc *sa, const struct task *task);
/* Deregisters all services of the alloc. */
void services_all_down(struct sup *sup, struct sup_alloc *sa);

#endif
