/* SPDX-License-Identifier: Apache-2.0 */
/* local_deploy.h: the steps of active deployments. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_DEPLOY_H
#define DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_DEPLOY_H

#include "supervisor/server/deploy/local_deployment.h"

/* Takes the next step of the job's active deployment, if it has one: replaces more allocs, promotes
 * canaries, or ends it. */
void local_deploy_examine(struct local *l, struct local_job *j);
/* Resumes the job's active deployment at the agent's start. Deadlines that passed meanwhile start
 * again. */
void local_deploy_resume(struct local *l, struct local_job *j);
/* Fails the deployment. revert: registers the last stable version again, if there is one, and sets
 * *ret_version to its number. Returns the evaluation. */
struct local_eval *local_deploy_fail(struct local *l, struct local_deployment *dep, const char *why,
    bool revert, int64_t *ret_version);
/* Checks whether the canaries of these groups (NULL: of all) can be promoted. Returns 0, or -EBUSY
 * with the sentence if not all of them are healthy. */
int local_deploy_check(
    const struct local_deployment *dep, const struct strings *groups, struct err *e);
/* Promotes them, if local_deploy_check() succeeds. */
int local_deploy_promote(struct local *l, struct local_deployment *dep,
    const struct strings *groups, struct local_eval *ev, struct err *e);
/* Pauses or resumes it. */
void local_deploy_pause(struct local *l, struct local_deployment *dep, bool pause);

#endif
