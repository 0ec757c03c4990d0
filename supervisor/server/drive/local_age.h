/* SPDX-License-Identifier: Apache-2.0 */
/* local_age.h: forgets what has been over for long. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_AGE_H
#define DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_AGE_H

#include "supervisor/server/base/local.h"

/* From now on. 0 or -errno. */
int local_age_start(struct local *l, struct err *e);
void local_age_free(struct local *l);

#endif
