/* SPDX-License-Identifier: Apache-2.0 */
/* local_fit.h: checks whether an alloc fits on the node. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_FIT_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_FIT_H

#include "model/alloc.h"
#include "supervisor/server/capacity/local_shortage.h"

/* Returns true if the alloc job.group[index] fits on the node beside the used resources. Otherwise
 * *m (initialised by the caller) gets the reason, and *ret_shortage (may be NULL) what it waits
 * for. */
bool local_fit_check(struct local *l, const struct local_usage *used, const struct job *job,
    const char *group, int64_t index, struct alloc_metric *m, struct local_shortage *ret_shortage);

#endif
