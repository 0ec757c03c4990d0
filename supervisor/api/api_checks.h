/* SPDX-License-Identifier: Apache-2.0 */
/* api_checks.h: a handler that two route tables share. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_API_API_CHECKS_H
#define DROVER_SUPERVISOR_API_API_CHECKS_H

#include "supervisor/http/api.h"

void api_get_alloc_checks(struct sup *sup, struct api_req *req);

#endif
