/* SPDX-License-Identifier: Apache-2.0 */
/* node_state.h: what this node is and has: identity, attributes, resources, drivers, plugins. Runs
 * in: supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_NODE_STATE_H
#define DROVER_SUPERVISOR_NODE_NODE_STATE_H

#include "model/node.h"
#include "supervisor/core/sup.h"

/* Reads or makes the id (state.db), takes the fingerprints. */
int node_state_new(struct sup *sup, struct err *e);
void node_state_free(struct sup *sup);
/* When the allocs that there are have been loaded: what of the disk is theirs (node_disk.h). */
void node_count_disk(struct sup *sup);

/* Never NULL after node_state_new(); its plugins and drivers are current. */
const struct node *node_get(struct sup *sup);
/* The address at which what its tasks serve is found; never NULL. */
const char *node_ip(struct sup *sup);
/* A driver of this node, as its fingerprint shows it. */
void node_put_driver(struct sup *sup, const char *driver, bool enabled);
/* The plugins are put anew, one after the other; then node_changed(). *info is copied. */
void node_forget_plugins(struct sup *sup);
void node_put_plugin(struct sup *sup, bool controller, const char *id, const struct csi_info *info);
/* Tells the source that what node_get() shows has changed. */
void node_changed(struct sup *sup);
/* The drain that is under way, which node_get() shows; NULL: none. 0 or -ENOMEM. */
int node_set_drain(struct sup *sup, const struct drain_strategy *drain, struct err *e);
/* The configuration's metadata with these over it: a text sets a key, null takes it away. */
void node_set_meta(struct sup *sup, const json_t *over);
/* As an operator says, without a drain: whether allocs are placed here. Outlives the agent. */
void node_set_takes_allocs(struct sup *sup, bool takes);
/* As the servers say: whether allocs are placed here. */
void node_set_eligibility(struct sup *sup, enum node_eligibility eligibility);

#endif
