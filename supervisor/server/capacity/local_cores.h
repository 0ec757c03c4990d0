/* SPDX-License-Identifier: Apache-2.0 */
/* local_cores.h: which processors tasks have reserved. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_CAPACITY_LOCAL_CORES_H
#define DROVER_SUPERVISOR_SERVER_CAPACITY_LOCAL_CORES_H

#include "model/alloc.h"
#include "model/node.h"
#include "supervisor/node/cores.h"
#include "supervisor/server/base/local.h"

int local_cores_init(struct local *l);
void local_cores_free(struct local *l);
/* What one of the node's cores stands for, in MHz. */
int64_t local_core_mhz(const struct node *node);
/* The alloc's cores are reserved from now on, or no longer. */
void local_cores_mark(struct local *l, const struct alloc *a, bool used);
struct core_set local_cores_used(const struct local *l);
/* Chooses n cores that are not in *used and adds them to it. 0, -ENOMEM or -ENOSPC. */
int local_cores_fill(struct local *l, int64_t n, struct core_set *used, struct alloc_cpu *ret);

#endif
