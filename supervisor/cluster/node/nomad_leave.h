/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_leave.h: has the servers drain this node before the agent ends. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_LEAVE_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_LEAVE_H

#include "supervisor/cluster/node/nomad.h"
#include "supervisor/source/source.h"

/* Implements source_ops.leave. */
/* Implement source_ops.leave, .deregister and .come_back. */
void nomad_leave(
    struct source *s, const struct drain_strategy *drain, const char *message, leave_cb *cb);
void nomad_deregister(struct source *s, const char *token, leave_cb *cb);
void nomad_come_back(struct source *s, bool eligible, leave_cb *cb);
/* The servers do not know this node, which retires, any more. */
void nomad_leave_unknown(struct nomad *n, const struct err *e);
void nomad_leave_free(struct nomad *n);

#endif
