/* SPDX-License-Identifier: Apache-2.0 */
/* api_why.h: the handler of /v1/client/allocation/:id/why; its route is in api_alloc.c. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_API_API_WHY_H
#define DROVER_SUPERVISOR_API_API_WHY_H

#include "supervisor/http/api.h"

void api_get_alloc_why(struct sup *sup, struct api_req *req);

#endif
