/* SPDX-License-Identifier: Apache-2.0 */
/* local_constraint.h: evaluates the constraints of jobs, with Nomad's operands and results. Runs
 * in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_CONSTRAINT_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_CONSTRAINT_H

#include "model/engine/table.h"
#include "model/job.h"
#include "model/node.h"

/* Allocs on the node that are not over and not being stopped: of the job, and of one of its groups.
 */
struct local_peers {
	size_t of_job, of_group;
};

/* Returns true if the constraint holds on the node. distinct_hosts and distinct_property always
 * hold: they depend on other allocs. */
bool local_constraint_holds(const struct node *node, const struct constraint *c);
/* Returns true if the constraint permits one more alloc beside n others, which are those of the job
 * or of the group that has the constraint. Otherwise false, with the reason. */
bool local_constraint_permits(
    const struct node *node, const struct constraint *c, size_t n, char *ret_reason, size_t size);
/* Returns true if the job, or a group of it, has a constraint that depends on other allocs. */
bool local_constraint_is_on_peers(const struct job *job);
/* Adds the faults of a job's constraints, affinities and spreads. */
void local_constraint_validate(const struct job *job, struct problems *p);

#endif
