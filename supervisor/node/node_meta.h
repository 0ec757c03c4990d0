/* SPDX-License-Identifier: Apache-2.0 */
/* node_meta.h: the changes that operators made to the node's metadata while the agent ran. They
 * override the configuration and outlive the agent. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_NODE_META_H
#define DROVER_SUPERVISOR_NODE_NODE_META_H

#include <jansson.h>

#include "model/node_answers.h"
#include "supervisor/core/sup.h"

/* Reads the changes from state.db and applies them to the node; called after node_state_new(). */
int node_meta_new(struct sup *sup, struct err *e);
void node_meta_free(struct sup *sup);

/*
 * Applies changes, an object of keys to texts, and notifies the source. null deletes a key, also
 * one of the configuration. Returns 0, or -EINVAL with *e if a key or value is invalid; then
 * nothing has changed.
 */
int node_meta_apply(struct sup *sup, const json_t *changes, struct err *e);
/* Sets *ret to the metadata, the changes and the configuration's metadata. It shares memory with
 * the node; the caller ends it with node_meta_unshow(). */
void node_meta_show(struct sup *sup, struct rpc_meta_apply_rep *ret);
void node_meta_unshow(struct rpc_meta_apply_rep *rep);

#endif
