/* SPDX-License-Identifier: Apache-2.0 */
/* api_stats.h: the handlers of statistics; their routes are in api_agent.c. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_API_API_STATS_H
#define DROVER_SUPERVISOR_API_API_STATS_H

#include "supervisor/http/api.h"

void api_get_host_stats(struct sup *sup, struct api_req *req);
void api_get_alloc_stats(struct sup *sup, struct api_req *req);

#endif
