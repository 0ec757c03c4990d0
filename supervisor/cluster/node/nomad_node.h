/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_node.h: this node at the servers: its registration, heartbeats and events. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_NODE_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_NODE_H

#include "supervisor/cluster/node/nomad.h"

int nomad_node_load(struct nomad *n, struct err *e);
void nomad_node_start(struct nomad *n);
void nomad_node_free(struct nomad *n);
/* Returns true if a server's error says that it does not know this node; then the node is
 * registered again. */
bool nomad_node_check_unknown(struct nomad *n, int r, const struct err *e);
/* Registers the node soon, also if it is unchanged; the index of the answer shows how far the
 * servers' state is. */
void nomad_node_register_again(struct nomad *n);
/* Registers the node again soon, because it has changed. */
void nomad_node_changed(struct nomad *n);
void nomad_node_event(struct nomad *n, const char *subsystem, const char *message, const char *key,
    const char *value);
extern const struct link_events nomad_link_events;

#endif
