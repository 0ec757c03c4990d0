/* SPDX-License-Identifier: Apache-2.0 */
/* api_routes.h: the handlers of every agent, and the routes of one agent. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_API_API_ROUTES_H
#define DROVER_SUPERVISOR_API_API_ROUTES_H

#include "supervisor/source/source_api.h"

#define API_PATH(method, pattern, durable, need, index, agent, ...) api_handler agent;
#include "supervisor/http/api_paths.def"
#undef API_PATH

/* Returns each path of api_paths.def with the source's handler, or else the agent's; the last has
 * no method. The caller frees the array. */
struct api_route *api_routes_make(const struct source_api *source);

#endif
