/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_deployment.h: deployments: how a version of a service job replaces the one before it, a few
 * allocs at a time, by their health (the update block). The row stores the decisions; counts are
 * read from the allocs while the deployment is active. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_DEPLOY_LOCAL_DEPLOYMENT_H
#define DROVER_SUPERVISOR_SERVER_DEPLOY_LOCAL_DEPLOYMENT_H

#include "model/deployment.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/server/job/local_job.h"

struct local_slot;

struct local_deployment {
	struct local_key key;
	SLIST_ENTRY(local_deployment) older; /* of the job */
	struct local_job *job;
	struct local_news news;
	struct deployment d; /* the counts of its groups are set at its end */
	struct dirty row;
	bool gone;                 /* the row is being deleted; then this is freed */
	struct sup_timer deadline; /* drive/local_deploy.c; while it is active */
};

void local_deployments_init(struct local *l);
void local_deployments_free(struct local *l);
int local_deployments_load(struct local *l, struct err *e);

static inline struct local_deployment *
local_deployment_of(struct local_key *key)
{
	return key ? container_of(key, struct local_deployment, key) : NULL;
}
struct local_deployment *local_deployment_find(struct local *l, const char *id); /* or NULL */
/* Returns all deployments, sorted by id; the caller frees the array of *ret_n. */
struct local_key **local_deployments_sorted(const struct local *l, size_t *ret_n);
/* Returns the job's newest deployment, or NULL. */
struct local_deployment *local_deployment_newest(const struct local_job *j);
/* Returns the job's running or paused deployment, or NULL. */
struct local_deployment *local_deployment_active(const struct local_job *j);

/* The job has a new version: cancels the active deployment and begins that of the new version, if
 * it needs one. */
void local_deployment_replace(struct local *l, struct local_job *j);
/* Writes it under a new index. */
void local_deployment_changed(struct local *l, struct local_deployment *dep);
/* Ends it: sets its final status and counts. */
void local_deployment_finish(struct local *l, struct local_deployment *dep,
    enum deployment_state status, const char *description);
/* Returns the description of a running deployment. */
const char *local_deployment_describe(const struct local_deployment *dep);
/* Copies it as the API shows it, with the present counts, into *ret, which must hold nothing. */
void local_deployment_view(const struct local_deployment *dep, struct deployment *ret);
/* Assigns a, an alloc of the slot that is being placed or updated in place, to the job's active
 * deployment, or to none. */
void local_deployment_assign(const struct local_slot *slot, const struct job *job, struct alloc *a);
/* The job is forgotten: deletes the rows of its deployments. */
void local_deployments_forget(struct local *l, struct local_job *j);

#endif
