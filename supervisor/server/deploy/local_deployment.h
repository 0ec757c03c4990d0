/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_deployment.h: how a version of a service job takes the place of the one before: a few
 * allocs at a time, by their health (Nomad's update block). The row says what was decided; what can
 * be read from the allocs is not kept. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_DEPLOY_LOCAL_DEPLOYMENT_H
#define DROVER_SUPERVISOR_SERVER_DEPLOY_LOCAL_DEPLOYMENT_H

#include "model/deployment.h"
#include "supervisor/server/job/local_job.h"

struct local_slot;

struct local_deployment {
	struct local_key key;
	struct local_deployment *older; /* of the job */
	struct local_job *job;
	struct local_news news;
	struct deployment d; /* the counts of its groups: those of its end */
	struct dirty row;
	bool gone;
	struct sd_event_source *deadline; /* drive/local_deploy.c; while it is active */
};

int local_deployments_init(struct local *l);
void local_deployments_free(struct local *l);
int local_deployments_load(struct local *l, struct err *e);

struct local_deployment *local_deployment_find(struct local *l, const char *id); /* NULL */
/* All of them, sorted by id; the caller frees the array of *ret_n. NULL: none, or no memory. */
struct local_key **local_deployments_sorted(const struct local *l, size_t *ret_n);
static inline struct local_deployment *
local_deployment_of(struct local_key *key)
{
	return (struct local_deployment *)(void *)key;
}
/* The one of the job that is running or paused. NULL: there is none. */
struct local_deployment *local_deployment_active(const struct local_job *j);

/* The job has a new version: its deployment ends, and that of the new version begins, if it has
 * one. */
void local_deployment_follow(struct local *l, struct local_job *j);
/* Writes it under a new index. */
void local_deployment_changed(struct local *l, struct local_deployment *dep);
/* It is no longer active. */
void local_deployment_finish(struct local *l, struct local_deployment *dep,
    enum deployment_state status, const char *description);
/* The description of one that runs. */
const char *local_deployment_describe(const struct local_deployment *dep);
/* As the API shows it, with the counts of now. 0 or -ENOMEM, then *ret is empty. */
int local_deployment_view(const struct local_deployment *dep, struct deployment *ret);
/* a, which is being placed or updated in place, belongs to the job's active deployment, if there is
 * one. 0 or -ENOMEM. */
int local_deployment_mark(const struct local_slot *slot, const struct job *job, struct alloc *a);
/* The job is forgotten: the rows of its deployments are deleted. */
void local_deployments_forget(struct local *l, struct local_job *j);

#endif
