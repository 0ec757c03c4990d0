/* SPDX-License-Identifier: Apache-2.0 */
/* node_meta.h: what an operator changed of the node's metadata while the agent runs, over that of
 * its configuration; it outlives the agent. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_NODE_META_H
#define DROVER_SUPERVISOR_NODE_NODE_META_H

#include <jansson.h>

#include "model/node_answers.h"
#include "supervisor/core/sup.h"

/* After node_state_new(): reads it from state.db and gives it to the node. */
int node_meta_new(struct sup *sup, struct err *e);
void node_meta_free(struct sup *sup);

/*
 * Keys to texts; null takes a key away for good, also one of the configuration. 0; -EINVAL with the
 * sentence: one of them is no key, or no value, and nothing has changed; -ENOMEM. The source is
 * told.
 */
int node_meta_apply(struct sup *sup, const json_t *changes, struct err *e);
/* All of it: as it is, what was changed, the configuration's. *ret shares with the node, and is
 * ended with node_meta_unshow(). */
void node_meta_show(struct sup *sup, struct rpc_meta_apply_rep *ret);
void node_meta_unshow(struct rpc_meta_apply_rep *rep);

#endif
