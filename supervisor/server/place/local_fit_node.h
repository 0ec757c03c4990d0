/* SPDX-License-Identifier: Apache-2.0 */
/* local_fit_node.h: checks whether a group fits on a node. The decision: it reads only its
 * arguments and changes only the metrics. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_FIT_NODE_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_FIT_NODE_H

#include "model/alloc.h"
#include "model/job.h"
#include "model/node.h"
#include "supervisor/server/capacity/local_shortage.h"
#include "supervisor/server/place/local_constraint.h"

struct local_fit {
	const struct node *node;
	const struct job *job;
	const struct task_group *group;
	int64_t index;          /* of the alloc, for volumes with per_alloc */
	struct alloc_metric *m; /* gets the reason why the group does not fit */
};

/* Returns true if the node is in one of the job's datacenters and in its pool. */
bool local_fit_datacenter(const struct local_fit *f);
/* Returns true if the constraints hold and the node has the drivers and host volumes. */
bool local_fit_node(const struct local_fit *f);
/* Returns true if the node has enough resources left beside *used; otherwise *ret_shortage says how
 * much the group needs. */
bool local_fit_usage(
    const struct local_fit *f, const struct local_usage *used, struct local_shortage *ret_shortage);
/* Returns true if distinct_hosts and distinct_property permit one more alloc beside these. */
bool local_fit_peers(const struct local_fit *f, const struct local_peers *peers);

/* Add a reason to the metrics and return false: filtered by a property of the node, or exhausted by
 * other allocs. */
bool __attribute__((format(printf, 2, 3)))
local_fit_add_filtered(const struct local_fit *f, const char *fmt, ...);
bool local_fit_add_exhausted(const struct local_fit *f, const char *dimension);

#endif
