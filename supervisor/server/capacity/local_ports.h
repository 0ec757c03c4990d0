/* SPDX-License-Identifier: Apache-2.0 */
/* local_ports.h: which alloc has which port of which address of the node. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_CAPACITY_LOCAL_PORTS_H
#define DROVER_SUPERVISOR_SERVER_CAPACITY_LOCAL_PORTS_H

#include "model/alloc.h"
#include "model/job.h"
#include "supervisor/server/base/local.h"
#include "supervisor/server/capacity/local_shortage.h"
#include "supervisor/table/alloc_table.h"

void local_ports_init(struct local *l);
void local_ports_free(struct local *l);
/* Reserve and release the ports that were chosen for the alloc. */
void local_ports_reserve(struct local *l, struct sup_alloc *sa);
void local_ports_release(struct local *l, struct sup_alloc *sa);
/* Chooses ports for the networks of a group and of its tasks, and adds them to *ret. Returns 0;
 * -ENOENT if the node has no such host network; -EADDRINUSE if a static port is taken or no dynamic
 * port is free; *shortage (may be NULL) says which. */
int local_ports_fill(struct local *l, struct alloc_resources *ret, const struct task_group *group,
    struct local_shortage *shortage, struct err *e);
/* Returns the alloc that has the static port of *shortage; NULL if the port is free, or the
 * shortage is another. */
const struct sup_alloc *local_port_holder(const struct local_shortage *shortage);
/* Adds a warning for each group whose canaries would find their static port taken. */
void local_ports_warn(const struct job *job, struct problems *p);

#endif
