/* SPDX-License-Identifier: Apache-2.0 */
/* local_cores.h: which cores of the node are reserved by tasks. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_CAPACITY_LOCAL_CORES_H
#define DROVER_SUPERVISOR_SERVER_CAPACITY_LOCAL_CORES_H

#include "model/alloc.h"
#include "model/node.h"
#include "supervisor/node/cores.h"
#include "supervisor/server/base/local.h"

void local_cores_init(struct local *l);
void local_cores_free(struct local *l);
/* Returns the MHz that one of the node's cores counts. */
int64_t local_core_mhz(const struct node *node);
/* Marks the alloc's cores as reserved, or as free. */
void local_cores_mark(struct local *l, const struct alloc *a, bool used);
struct core_set local_cores_used(const struct local *l);
/* Chooses n cores that are not in *used and adds them to it. Returns false if there are fewer. */
bool local_cores_fill(struct local *l, int64_t n, struct core_set *used, struct alloc_cpu *ret);

#endif
