/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_register.h: the registration of this node at the servers. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_REGISTER_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_REGISTER_H

#include "supervisor/cluster/node/nomad.h"

int nomad_register_load(struct nomad *n, struct err *e);
void nomad_register_free(struct nomad *n);

/* Register the node now, or ms from now. They do nothing while a registration is in progress. */
void nomad_register(struct nomad *n);
void nomad_register_after(struct nomad *n, uint64_t ms);
/* Registers the node soon, also if it is unchanged; the index of the answer shows how far the
 * servers' state is. */
void nomad_register_again(struct nomad *n);
/* Returns true if the error of a call says that the servers do not know this node; then the node is
 * registered again. r and e are those of the call's link_cb. */
bool nomad_register_if_unknown(struct nomad *n, int r, const struct err *e);

/* Returns the node as it is registered. It shares the memory of node_get(). */
struct node nomad_register_view(struct nomad *n);
/* Stores the identity that the servers have issued; ignores "" and NULL. */
void nomad_register_take_identity(struct nomad *n, const char *jwt);

#endif
