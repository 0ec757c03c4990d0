/* SPDX-License-Identifier: Apache-2.0 */
/* api_orders.h: /v1/client/allocation/:id/restart, signal and gc, /v1/client/gc. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_API_API_ORDERS_H
#define DROVER_SUPERVISOR_API_API_ORDERS_H

#include "supervisor/http/api.h"

void api_restart_alloc(struct sup *sup, struct api_req *req);
void api_signal_alloc(struct sup *sup, struct api_req *req);
void api_collect_alloc(struct sup *sup, struct api_req *req);
void api_collect_all(struct sup *sup, struct api_req *req);

#endif
