/* SPDX-License-Identifier: Apache-2.0 */
/* local_rollout.h: how far a deployment is, by the job's slots, and what it permits next. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_DEPLOY_LOCAL_ROLLOUT_H
#define DROVER_SUPERVISOR_SERVER_DEPLOY_LOCAL_ROLLOUT_H

#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/deploy/local_rules.h"

struct local_group;

/* How far a group is. */
struct local_progress {
	int64_t turning;  /* slots without a healthy alloc of the deployment that are to have one */
	int64_t done;     /* slots with one */
	int64_t canaries; /* healthy ones */
	int64_t last_healthy_ns; /* when the last alloc became healthy; 0: none has */
	bool unhealthy;          /* one of them is, so that no others are replaced */
	bool hopeless;           /* one will never be healthy */
};

enum local_gate local_rollout_gate(
    const struct local_job *j, const struct job *wanted, const char *group);
/* How many more of the group's running allocs may be replaced now. */
int64_t local_rollout_budget(const struct local_job *j, const struct local_group *g);
bool local_rollout_wants_canary(const struct local_slot *slot);
/* Does the group wait for its canaries to be promoted? */
bool local_rollout_has_canaries(const struct deployment_group *g);
void local_rollout_count(const struct local_deployment *dep, const char *group,
    const struct deployment_group *g, struct local_progress *ret);

#endif
