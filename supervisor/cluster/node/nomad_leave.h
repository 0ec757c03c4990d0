/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_leave.h: has the servers drain this node before the agent ends. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_LEAVE_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_LEAVE_H

#include "supervisor/cluster/node/nomad.h"
#include "supervisor/source/source.h"

/* Implements source_ops.leave. */
void nomad_leave(struct source *s, const struct drain_strategy *drain, leave_cb *cb);
void nomad_leave_free(struct nomad *n);

#endif
