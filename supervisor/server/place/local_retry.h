/* SPDX-License-Identifier: Apache-2.0 */
/* local_retry.h: tries again to place slots that could not be placed. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_RETRY_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_RETRY_H

#include "supervisor/server/base/local.h"

/* Places slots that wait for resources or ports which are free now; all: also slots with any other
 * shortage. */
void local_retry_run(struct local *l, bool all);

#endif
