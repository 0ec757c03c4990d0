/* SPDX-License-Identifier: Apache-2.0 */
/* local_retry.h: slots that were not placed are tried again. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_RETRY_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_RETRY_H

#include "supervisor/server/base/local.h"

/* Places what waits for resources or a port that are there now. all: also what waits for anything
 * else. */
void local_retry_run(struct local *l, bool all);

#endif
