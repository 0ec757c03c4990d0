/* SPDX-License-Identifier: Apache-2.0 */
/* api_routes.h: the routes of an agent that do not depend on its source of work. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_API_API_ROUTES_H
#define DROVER_SUPERVISOR_API_API_ROUTES_H

#include "supervisor/http/api.h"

/* Each table is defined in the file of its name. */
extern const struct api_route api_agent_routes[], api_alloc_routes[], api_exec_routes[],
    api_fs_routes[];

#endif
