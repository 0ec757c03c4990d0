/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_needs.h: what an alloc needs of this node. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_NEEDS_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_NEEDS_H

#include "supervisor/cluster/node/nomad.h"

/* Checks whether this node supports the alloc's group. Returns 0, or -EINVAL with a
 * sentence. */
int nomad_check(struct source *s, const struct sup_alloc *sa, struct err *e);

#endif
