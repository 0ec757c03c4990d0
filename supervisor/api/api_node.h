/* SPDX-License-Identifier: Apache-2.0 */
/* api_node.h: what handlers of the two sources need of the node's paths. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_API_API_NODE_H
#define DROVER_SUPERVISOR_API_API_NODE_H

#include "model/engine/field.h"
#include "supervisor/http/api.h"

/* Returns true if the path names this node; otherwise answers that the node is unknown. */
bool api_is_this_node(struct sup *sup, struct api_req *req);
/* Answers a change of the node: its index, and no evaluations. */
void api_reply_node_change(struct sup *sup, struct api_req *req);
/* Appends the API's view of this node. */
void api_node_print(struct sup *sup, enum model_flags flags, struct text *t);

#endif
