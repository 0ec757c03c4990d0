/* SPDX-License-Identifier: Apache-2.0 */
/* local_age.h: forgets old allocs and evaluations that are over. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_AGE_H
#define DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_AGE_H

#include "supervisor/server/base/local.h"

void local_age_start(struct local *l);
/* Forgets now what is over, instead of after its threshold; and again until the jobs that are being
 * purged are gone, because their evaluations are known as long as their allocs. */
void local_age_collect(struct local *l);
void local_age_free(struct local *l);

#endif
