/* SPDX-License-Identifier: Apache-2.0 */
/* local_fit.h: does an alloc fit on the node? Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_FIT_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_FIT_H

#include "model/alloc.h"
#include "supervisor/server/capacity/local_shortage.h"

/* Does the alloc job.group[index] fit on the node beside what takes *used of it? Fills *m
 * (initialised) with what was seen, and *ret_shortage (may be NULL) with why it does not. */
bool local_fit_check(struct local *l, const struct local_usage *used, const struct job *job,
    const char *group, int64_t index, struct alloc_metric *m, struct local_shortage *ret_shortage);
#endif
