/* SPDX-License-Identifier: Apache-2.0 */
/*
 * services.h: which services of an alloc are registered at the source: those of its group from
 * before its tasks start until before they are stopped, but not while all that run restart; those
 * of a task while it runs. After a restart of the agent what runs registers again. Runs in:
 * supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVICE_SERVICES_H
#define DROVER_SUPERVISOR_SERVICE_SERVICES_H

#include "common/err.h"

#include "supervisor/table/alloc_table.h"

/* Those of the group (task NULL) or of a task are there, or there again: all in one. 0, or -errno
 * with a sentence, and none of them is. */
int services_up(struct sup *sup, struct sup_alloc *sa, const struct task *task, struct err *e);
/* They are no more; those that never were do not matter. */
void services_down(struct sup *sup, struct sup_alloc *sa, const struct task *task);
/* All of the alloc. */
void services_all_down(struct sup *sup, struct sup_alloc *sa);

#endif
