/* SPDX-License-Identifier: Apache-2.0 */
/* api_node.h: the handlers of the paths of this node and its allocs; their routes are in
 * api_agent.c and api_alloc.c. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_API_API_NODE_H
#define DROVER_SUPERVISOR_API_API_NODE_H

#include "model/engine/field.h"
#include "supervisor/http/api.h"

/* Returns false after answering that the node is unknown. */
bool api_is_this_node(struct sup *sup, struct api_req *req);
void api_reply_node_change(struct sup *sup, struct api_req *req);
/* Appends the API's view of this node. Returns 0 or -ENOMEM. */
int api_node_print(struct sup *sup, enum model_flags flags, struct text *t);
/* api_agent.c */

#endif
