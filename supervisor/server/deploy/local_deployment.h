/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_deployment.h: how a version of a service job takes the place of the one before: a few
 * allocs at a time, by their health (Nomad's update block). What can be seen of the allocs is not
 * kept: the row says what was decided. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_DEPLOY_LOCAL_DEPLOYMENT_H
#define DROVER_SUPERVISOR_SERVER_DEPLOY_LOCAL_DEPLOYMENT_H

#include "model/deployment.h"
#include "supervisor/server/local.h"

struct local_deployment {
	struct local_key key;
	struct local_deployment *older; /* of the job */
	struct local_job *job;
	struct local_news news;
	struct deployment d; /* the counts of its groups: those of its end */
	struct dirty row;
	bool gone;
	struct sd_event_source *deadline;
};

/* What a deployment lets happen to the allocs of a group. */
enum local_gate {
	LOCAL_GATE_OPEN,    /* none limits it */
	LOCAL_GATE_ROLLING, /* max_parallel at a time are replaced */
	LOCAL_GATE_SHUT,    /* it has failed: what runs stays of its version */
	LOCAL_GATE_WAITING, /* paused, or for its canaries: also, nothing is placed where nothing
			       was */
};

/* How far a group is. */
struct local_progress {
	int64_t turning;  /* slots without a healthy alloc of the deployment that are to have one */
	int64_t done;     /* slots with one */
	int64_t canaries; /* healthy ones */
	int64_t last_healthy_ns; /* 0: none is */
	bool unhealthy;          /* one of them is, so that no others are replaced */
	bool hopeless;           /* one will never be healthy */
};

/* local_deployment.c */
int local_deployments_load(struct local *l, struct err *e);
struct local_deployment *local_deployment_find(struct local *l, const char *id); /* NULL */
/* The job's that goes on. NULL: none does. */
struct local_deployment *local_deployment_active(const struct local_job *j);
/* The job has a new version: its deployment ends, and that of the new version begins, if it has
 * one. */
void local_deployment_follow(struct local *l, struct local_job *j);
/* Its row is to be written. */
void local_deployment_changed(struct local *l, struct local_deployment *dep);
/* No longer active. */
void local_deployment_finish(struct local *l, struct local_deployment *dep,
    enum deployment_state status, const char *description);
/* The description of one that runs. */
const char *local_deployment_describe(const struct local_deployment *dep);
/* As the API shows it, with the counts of now. 0 or -ENOMEM, then *ret is empty. */
int local_deployment_view(const struct local_deployment *dep, struct deployment *ret);
/* sa, which is being placed, or updated in place, is of the job's active deployment, if there is
 * one. -ENOMEM. */
int local_deployment_mark(const struct local_slot *slot, const struct job *job, struct alloc *a);
void local_deployments_forget(struct local *l, struct local_job *j);
void local_deployments_free(struct local *l, struct local_job *j);

/* local_rollout.c */
enum local_gate local_deployment_gate(
    const struct local_job *j, const struct job *wanted, const char *group);
/* How many more of the group's running allocs may be replaced now. */
int64_t local_deployment_budget(const struct local_job *j, const struct local_group *g);
bool local_deployment_wants_canary(const struct local_slot *slot);
/* Does the group wait for its canaries to be promoted? */
bool local_deployment_has_canaries(const struct deployment_group *g);
void local_deployment_count(const struct local_deployment *dep, const char *group,
    const struct deployment_group *g, struct local_progress *ret);

/* local_deploy.c */
/* Takes the next step of the job's active deployment, if it has one: replaces more allocs,
 * promotes, ends it. */
void local_deployment_examine(struct local *l, struct local_job *j);
/* At the agent's start: the job's active deployment goes on, with time to make up for the agent's
 * absence. */
void local_deployment_resume(struct local *l, struct local_job *j);
/* It has failed. revert: the last stable version is registered again, if there is one; then its
 * number is in *ret_version. The evaluation under which that happens; NULL: no memory. */
struct local_eval *local_deployment_fail(struct local *l, struct local_deployment *dep,
    const char *why, bool revert, int64_t *ret_version);
/* Could the canaries of these groups (NULL: of all) take their places? 0, or -EBUSY with the
 * sentence: not all of them are healthy. */
int local_deployment_check(
    const struct local_deployment *dep, const struct strings *groups, struct err *e);
/* They do. */
int local_deployment_promote(struct local *l, struct local_deployment *dep,
    const struct strings *groups, struct local_eval *ev, struct err *e);
void local_deployment_pause(struct local *l, struct local_deployment *dep, bool pause);

#endif
