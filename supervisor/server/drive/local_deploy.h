/* SPDX-License-Identifier: Apache-2.0 */
/* local_deploy.h: takes the steps of deployments. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_DEPLOY_H
#define DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_DEPLOY_H

#include "supervisor/server/deploy/local_deployment.h"

/* Takes the next step of the job's active deployment, if it has one: replaces more allocs,
 * promotes, ends it. */
void local_deploy_examine(struct local *l, struct local_job *j);
/* At the agent's start: the job's active deployment goes on, with time to make up for the agent's
 * absence. */
void local_deploy_resume(struct local *l, struct local_job *j);
/*
 * It has failed. revert: the last stable version is registered again, if there is one; then its
 * number is in *ret_version. Returns the evaluation under which that happens; NULL: no memory.
 */
struct local_eval *local_deploy_fail(struct local *l, struct local_deployment *dep, const char *why,
    bool revert, int64_t *ret_version);
/* Could the canaries of these groups (NULL: of all) take their places? 0, or -EBUSY with the
 * sentence: not all of them are healthy. */
int local_deploy_check(
    const struct local_deployment *dep, const struct strings *groups, struct err *e);
/* The same, and they do. */
int local_deploy_promote(struct local *l, struct local_deployment *dep,
    const struct strings *groups, struct local_eval *ev, struct err *e);
void local_deploy_pause(struct local *l, struct local_deployment *dep, bool pause);

#endif
