/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_node.h: this node at the servers: when it is registered, and its heartbeats. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_NODE_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_NODE_H

#include "supervisor/cluster/node/nomad.h"

/* The client has restored its allocs: registers the node. */
void nomad_node_start(struct nomad *n);
/* Registers the node again soon if it has changed. */
void nomad_node_changed(struct nomad *n);
void nomad_node_free(struct nomad *n);

extern const struct link_events nomad_link_events;

#endif
