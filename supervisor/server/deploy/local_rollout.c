// SPDX-License-Identifier: Apache-2.0
/* local_rollout.c: the progress of a deployment, by the job's slots, and what it permits next. Runs
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
	const struct local_deployment *dep = local_deployment_newest(j);
	const struct deployment_group *g;

	if (!dep || dep->d.job_version != wanted->version)
		return LOCAL_GATE_OPEN;
	g = map_get(deployment_group, &dep->d.groups, group);
	return g ? local_rule_gate(dep->d.status, local_rollout_has_canaries(g)) : LOCAL_GATE_OPEN;
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

static struct local_standing_facts
get_standing_facts(const struct local_alloc *la, const struct deployment *d)
{
	const struct alloc *a = la ? &la->sa->a : NULL;

	if (!a)
		return (struct local_standing_facts){ 0 };
	return (struct local_standing_facts){
		.exists = true,
		.stopped = alloc_server_terminal(a),
		.deployed = str_eq(a->deployment_id, d->id),
		.ended = alloc_client_terminal(a),
		.is_replaced = will_be_replaced(la),
		.a_task_failed = has_failed_task(a),
		.healthy = health_of(a),
	};
}

static void
count_slot(const struct local_slot *slot, const struct deployment *d, struct local_progress *p)
{
	const struct alloc *a = slot->current ? &slot->current->sa->a : NULL;
	struct local_standing_facts f = get_standing_facts(slot->current, d);
	enum local_standing standing = local_rule_standing(&f);

	p->turning += standing == LOCAL_STANDING_TURNING;
	p->done += !slot->canary && standing == LOCAL_STANDING_HEALTHY;
	p->canaries += slot->canary && standing == LOCAL_STANDING_HEALTHY;
	p->hopeless |= standing == LOCAL_STANDING_HOPELESS;
	if (standing == LOCAL_STANDING_OLD || !a)
		return;
	p->unhealthy |= health_of(a) == OPT_FALSE;
	if (health_of(a) == OPT_TRUE && a->deployment_status->timestamp > p->last_healthy_ns)
		p->last_healthy_ns = a->deployment_status->timestamp;
}

/* Returns true if an alloc of the deployment was found unhealthy, also if it was replaced since. */
static bool
had_unhealthy(const struct local_deployment *dep, const char *group)
{
	const struct local_alloc *la;

	LIST_FOREACH (la, &dep->job->allocs, of_job) {
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
	/* Without a deadline the first unhealthy alloc fails the deployment. */
	if (g->progress_deadline <= 0 && had_unhealthy(dep, group))
		ret->hopeless = true;
}

int64_t
local_rollout_budget(const struct local_job *j, const struct local_group *g)
{
	const struct job *wanted = local_job_wanted(j);
	const struct task_group *group = job_group(wanted, g->name);
	struct local_budget_facts f = { .gate = local_rollout_gate(j, wanted, g->name) };
	const struct local_deployment *dep;
	struct local_progress p;

	if (f.gate == LOCAL_GATE_ROLLING) {
		dep = local_deployment_newest(j);
		local_rollout_count(
		    dep, g->name, map_get(deployment_group, &dep->d.groups, g->name), &p);
		f.max_parallel = group && group->update ? group->update->max_parallel : 0;
		f.turning = p.turning;
		f.unhealthy = p.unhealthy;
	}
	return local_rule_budget(&f);
}
