/* SPDX-License-Identifier: Apache-2.0 */
/* local_fit.h: checks whether an alloc fits on the node. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_FIT_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_FIT_H

#include "model/alloc.h"
#include "supervisor/server/capacity/local_shortage.h"
#include "supervisor/server/place/local_constraint.h"

struct local_job;

/* The resources that are taken and the allocs that are present when an alloc is to be placed. */
struct local_beside {
	struct local_usage used;
	struct local_peers peers; /* only for jobs with local_constraint_is_on_peers() */
};

/* Counts the allocs of the job, and of this group of it, that are on the node. j may be NULL. */
struct local_peers local_peers_count(const struct local_job *j, const char *group);

/* Returns true if the alloc job.group[index] fits on the node beside the others. Otherwise *m
 * (initialised by the caller) gets the reason, and *ret_shortage (may be NULL) what it waits
 * for. */
bool local_fit_check(struct local *l, const struct local_beside *beside, const struct job *job,
    const char *group, int64_t index, struct alloc_metric *m, struct local_shortage *ret_shortage);

#endif
