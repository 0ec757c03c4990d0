// SPDX-License-Identifier: Apache-2.0
/* local_rollout.c: how far a deployment is, by the job's slots, and what it permits next. Runs
 * in: supervisor. */
#include "supervisor/server/deploy/local_rollout.h"

#include <string.h>

#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_reschedule.h"

bool
local_rollout_has_canaries(const struct deployment_group *g)
{
	return g->desired_canaries > 0 && !g->promoted;
}

enum local_gate
local_rollout_gate(const struct local_job *j, const struct job *wanted, const char *group)
{
	const struct local_deployment *dep = j->deployments;
	const struct deployment_group *g;

	if (!dep || dep->d.job_version != wanted->version)
		return LOCAL_GATE_OPEN;
	g = map_get(deployment_group, &dep->d.groups, group);
	if (!g)
		return LOCAL_GATE_OPEN;
	switch (dep->d.status) {
	case DEPLOYMENT_RUNNING:
		return local_rollout_has_canaries(g) ? LOCAL_GATE_WAITING : LOCAL_GATE_ROLLING;
	case DEPLOYMENT_PAUSED:
		return LOCAL_GATE_WAITING;
	case DEPLOYMENT_FAILED:
		return LOCAL_GATE_SHUT;
	case DEPLOYMENT_NONE:
	case DEPLOYMENT_SUCCESSFUL:
	case DEPLOYMENT_CANCELLED:
		break;
	}
	return LOCAL_GATE_OPEN;
}

bool
local_rollout_wants_canary(const struct local_slot *slot)
{
	const struct local_deployment *dep = local_deployment_active(slot->job);
	const struct deployment_group *g =
	    dep ? map_get(deployment_group, &dep->d.groups, slot->group->name) : NULL;

	return g && local_rollout_has_canaries(g) && slot->index < g->desired_canaries &&
	       (slot->current || dep->d.status == DEPLOYMENT_RUNNING);
}

enum standing {
	STANDING_OLD,      /* not of the deployment */
	STANDING_TURNING,  /* it is to become a healthy alloc of it */
	STANDING_HEALTHY,  /* it is one */
	STANDING_HOPELESS, /* it will not be one: nothing replaces it by itself */
};

/* A task that failed ends the others: whether there will be another try is known after that. */
static bool
has_failed_task(const struct alloc *a)
{
	for (size_t i = 0; i < a->task_states.n; i++) {
		if (a->task_states.v[i].value.failed)
			return true;
	}
	return false;
}

static bool
will_be_replaced(const struct local_alloc *la)
{
	return la->sa->a.client_status == CLIENT_LOST ||
	       local_reschedule_at(la->sa) != LOCAL_RESCHEDULE_NEVER;
}

static enum opt_bool
health_of(const struct alloc *a)
{
	return a->deployment_status ? a->deployment_status->healthy : OPT_UNSET;
}

static enum standing
look_at(const struct local_slot *slot, const struct deployment *d)
{
	const struct local_alloc *la = slot->current;
	const struct alloc *a = la ? &la->sa->a : NULL;

	if (!a || alloc_server_terminal(a))
		return STANDING_TURNING;
	if (!str_eq(a->deployment_id, d->id))
		return STANDING_OLD;
	if (alloc_client_terminal(a))
		return will_be_replaced(la) ? STANDING_TURNING : STANDING_HOPELESS;
	if (health_of(a) == OPT_TRUE)
		return STANDING_HEALTHY;
	return health_of(a) == OPT_UNSET || has_failed_task(a) ? STANDING_TURNING
							       : STANDING_HOPELESS;
}

static void
count_slot(const struct local_slot *slot, const struct deployment *d, struct local_progress *p)
{
	const struct alloc *a = slot->current ? &slot->current->sa->a : NULL;
	enum standing standing = look_at(slot, d);

	p->turning += standing == STANDING_TURNING;
	p->done += !slot->canary && standing == STANDING_HEALTHY;
	p->canaries += slot->canary && standing == STANDING_HEALTHY;
	p->hopeless |= standing == STANDING_HOPELESS;
	if (standing == STANDING_OLD || !a)
		return;
	p->unhealthy |= health_of(a) == OPT_FALSE;
	if (health_of(a) == OPT_TRUE && a->deployment_status->timestamp > p->last_healthy_ns)
		p->last_healthy_ns = a->deployment_status->timestamp;
}

/* Also one that has a successor by now. */
static bool
had_unhealthy(const struct local_deployment *dep, const char *group)
{
	for (const struct local_alloc *la = dep->job->allocs; la; la = la->next) {
		const struct alloc *a = &la->sa->a;

		if (str_eq(a->deployment_id, dep->d.id) && strcmp(a->task_group, group) == 0 &&
		    health_of(a) == OPT_FALSE)
			return true;
	}
	return false;
}

void
local_rollout_count(const struct local_deployment *dep, const char *group,
    const struct deployment_group *g, struct local_progress *ret)
{
	const struct local_group *slots = local_group_find(dep->job, group);
	bool canaries = local_rollout_has_canaries(g);

	*ret = (struct local_progress){ 0 };
	for (int64_t i = 0; slots && i < g->desired_total; i++) {
		if ((size_t)i < slots->n_slots)
			count_slot(slots->slots[i], &dep->d, ret);
	}
	for (int64_t i = 0; slots && canaries && i < g->desired_canaries; i++) {
		if ((size_t)i < slots->n_canaries)
			count_slot(slots->canaries[i], &dep->d, ret);
	}
	/* Without a deadline the first that is unhealthy ends it. */
	if (g->progress_deadline <= 0 && had_unhealthy(dep, group))
		ret->hopeless = true;
}

int64_t
local_rollout_budget(const struct local_job *j, const struct local_group *g)
{
	const struct job *wanted = local_job_wanted(j);
	const struct task_group *group = job_group(wanted, g->name);
	struct local_progress p;

	switch (local_rollout_gate(j, wanted, g->name)) {
	case LOCAL_GATE_OPEN:
		return INT64_MAX;
	case LOCAL_GATE_ROLLING:
		break;
	case LOCAL_GATE_SHUT:
	case LOCAL_GATE_WAITING:
		return 0;
	}
	local_rollout_count(j->deployments, g->name,
	    map_get(deployment_group, &j->deployments->d.groups, g->name), &p);
	if (!group || !group->update || p.unhealthy || p.turning >= group->update->max_parallel)
		return 0;
	return group->update->max_parallel - p.turning;
}
