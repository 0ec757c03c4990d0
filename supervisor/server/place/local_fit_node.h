/* SPDX-License-Identifier: Apache-2.0 */
/* local_fit_node.h: does a group fit on a node, by the node's description? The decision: nothing
 * but its arguments is read, nothing but the metrics changed. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_FIT_NODE_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_FIT_NODE_H

#include "model/alloc.h"
#include "model/job.h"
#include "model/node.h"
#include "supervisor/server/capacity/local_shortage.h"

struct local_fit {
	const struct node *node;
	const struct job *job;
	const struct task_group *group;
	int64_t index;          /* of the alloc, for volumes that have one for each */
	struct alloc_metric *m; /* gets what keeps the node out */
};

/* Is the node in one of the job's datacenters and in its pool? */
bool local_fit_datacenter(const struct local_fit *f);
/* Do the constraints hold, and are the drivers and the host volumes there? */
bool local_fit_node(const struct local_fit *f);
/* Has the node enough left beside *used? Else *ret_shortage says how much is needed. */
bool local_fit_usage(
    const struct local_fit *f, const struct local_usage *used, struct local_shortage *ret_shortage);
/* Adds what keeps every node from running this job: constraints that are not supported. */
void local_fit_validate(const struct job *job, struct problems *p);

/* Note a reason in the metrics, one that waiting may not help, and one that it may; false. */
bool __attribute__((format(printf, 2, 3)))
local_fit_note_filtered(const struct local_fit *f, const char *fmt, ...);
bool local_fit_note_exhausted(const struct local_fit *f, const char *dimension);

#endif
