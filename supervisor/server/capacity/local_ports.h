/* SPDX-License-Identifier: Apache-2.0 */
/* local_ports.h: which alloc has which port of which address of the node. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_CAPACITY_LOCAL_PORTS_H
#define DROVER_SUPERVISOR_SERVER_CAPACITY_LOCAL_PORTS_H

#include "model/alloc.h"
#include "model/job.h"
#include "supervisor/server/base/local.h"
#include "supervisor/server/capacity/local_shortage.h"
#include "supervisor/table/alloc_table.h"

int local_ports_init(struct local *l);
void local_ports_free(struct local *l);
/* The alloc has its ports from now on, or no longer. */
void local_ports_take(struct local *l, struct sup_alloc *sa);
void local_ports_give_back(struct local *l, struct sup_alloc *sa);
/*
 * Chooses ports for a group. 0; -ENOENT: the node has no such host network; -EADDRINUSE: a static
 * port is taken, or no dynamic one is free: *shortage (may be NULL) says which; -ENOMEM.
 */
int local_ports_fill(struct local *l, struct alloc_shared_resources *shared,
    const struct task_group *group, struct local_shortage *shortage, struct err *e);
/* The alloc that has the port that *shortage is about. NULL: it is free, or the shortage is of
 * dynamic ports. */
const struct sup_alloc *local_port_holder(const struct local_shortage *shortage);
/* Adds a warning for each group whose canaries will find their static port taken. */
void local_ports_warn(const struct job *job, struct problems *p);

#endif
