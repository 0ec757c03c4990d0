/* SPDX-License-Identifier: Apache-2.0 */
/* local_rollout.h: the progress of a deployment, by the job's slots, and what it permits next. Runs
 * in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_DEPLOY_LOCAL_ROLLOUT_H
#define DROVER_SUPERVISOR_SERVER_DEPLOY_LOCAL_ROLLOUT_H

#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/deploy/local_rules.h"

struct local_group;

/* The progress of a group. */
struct local_progress {
	int64_t turning;         /* slots that are to get a healthy alloc of the deployment */
	int64_t done;            /* slots that have one */
	int64_t canaries;        /* healthy canaries */
	int64_t last_healthy_ns; /* when the last alloc became healthy; 0: none has */
	bool unhealthy;          /* an alloc is unhealthy, so no others are replaced */
	bool hopeless;           /* a slot will never get a healthy alloc */
};

enum local_gate local_rollout_gate(
    const struct local_job *j, const struct job *wanted, const char *group);
/* Returns how many more running allocs of the group may be replaced now. */
int64_t local_rollout_budget(const struct local_job *j, const struct local_group *g);
bool local_rollout_wants_canary(const struct local_slot *slot);
/* Returns true while the group waits for the promotion of its canaries. */
bool local_rollout_has_canaries(const struct deployment_group *g);
void local_rollout_count(const struct local_deployment *dep, const char *group,
    const struct deployment_group *g, struct local_progress *ret);

#endif
