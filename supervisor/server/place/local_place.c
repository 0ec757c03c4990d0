// SPDX-License-Identifier: Apache-2.0
/* local_place.c: makes an alloc that fits. Runs in: supervisor. */
#include "supervisor/server/place/local_place.h"

#include <errno.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/id.h"
#include "common/number.h"
#include "supervisor/alloc/client.h"
#include "supervisor/node/node_state.h"
#include "supervisor/server/capacity/local_cores.h"
#include "supervisor/server/capacity/local_ports.h"
#include "supervisor/server/claim/local_claims.h"
#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_reschedule.h"
#include "supervisor/server/sign/local_sign.h"

static int
fill_task(struct local *l, const struct task *t, struct core_set *used,
    struct alloc_task_resources *ret, struct err *e)
{
	const struct resources *res = t->resources;

	if (!res)
		return 0;
	ret->cpu.cpu_shares = res->cpu;
	if (res->cores > 0 && !local_cores_fill(l, res->cores, used, &ret->cpu))
		return err_say(e, -ENOSPC, "task %s: too few cores are free", t->name);
	/* As servers do: the files in the secrets directory take memory too. */
	ret->memory.memory_mb = number_add(res->memory_mb, res->secrets_mb);
	if (res->memory_max_mb > 0)
		ret->memory.memory_max_mb = number_add(res->memory_max_mb, res->secrets_mb);
	else
		ret->memory.memory_max_mb = res->memory_max_mb;
	return 0;
}

static int
fill_resources(struct local *l, struct alloc *a, const struct task_group *g, struct err *e)
{
	struct core_set used = local_cores_used(l);
	int r = 0;

	a->allocated_resources = alloc_resources_new();
	for (size_t i = 0; i < g->tasks.n && r == 0; i++) {
		const struct task *t = &g->tasks.v[i];

		r = fill_task(l, t, &used,
		    map_put(alloc_task_resources, &a->allocated_resources->tasks, t->name), e);
	}
	a->allocated_resources->shared.disk_mb = group_disk_mb(g);
	return r < 0 ? r : local_ports_fill(l, a->allocated_resources, g, NULL, e);
}

static void
set_previous(struct alloc *a, const struct sup_alloc *before)
{
	const struct reschedule_policy *p = before->group->reschedule_policy;

	str_set(&a->previous_allocation, before->a.id);
	if (before->a.desired_transition.reschedule == OPT_TRUE && p)
		local_reschedule_record(p, &before->a, a, clock_real_ns());
}

static void
fill_alloc(struct local *l, struct alloc *a, const struct local_slot *slot, const struct job *job,
    const char *eval_id)
{
	const struct node *node = node_get(l->base.sup);
	struct id id = id_random_uuid();
	char text[ID_UUID_SIZE];

	id_to_uuid(&id, text);
	str_set(&a->id, text);
	str_set(&a->namespace, job->namespace);
	str_set(&a->eval_id, eval_id);
	str_setf(&a->name, "%s.%s[%lld]", job->id, slot->group->name, (long long)slot->index);
	str_set(&a->node_id, node->id);
	str_set(&a->node_name, node->name);
	str_set(&a->job_id, job->id);
	str_set(&a->task_group, slot->group->name);
	if (slot->current)
		set_previous(a, slot->current->sa);
	local_deployment_assign(slot, job, a);
	a->desired_status = DESIRED_RUN;
	a->client_status = CLIENT_PENDING;
	a->create_time = a->modify_time = clock_real_ns();
	a->create_index = a->modify_index = a->alloc_modify_index = local_index_next(l);
}

int
local_place_alloc(struct local *l, struct local_slot *slot, struct job_ref *ref,
    const char *eval_id, struct alloc_metric *m, struct err *e)
{
	struct local_alloc *before = slot->current;
	cleanup_done(alloc) struct alloc a;
	struct sup_alloc *sa;
	int r;

	alloc_init(&a);
	r = fill_resources(l, &a, job_group(&ref->job, slot->group->name), e);
	if (r < 0)
		return r;
	fill_alloc(l, &a, slot, &ref->job, eval_id);
	alloc_metric_done(&a.metrics);
	a.metrics = *m;
	alloc_metric_init(m);
	local_sign_defaults(l, &a, &ref->job, job_group(&ref->job, slot->group->name));
	sa = alloc_add(l->base.sup, &a, job_ref_get(ref));
	(void)local_alloc_new(l, sa, slot->job);
	if (before) {
		str_set(&before->sa->a.next_allocation, sa->a.id);
		before->sa->a.modify_index = local_index_next(l);
		alloc_changed(l->base.sup, before->sa);
		local_alloc_retire(l, before);
	}
	local_claims_reserve(l, sa);
	client_alloc_run(l->base.sup, sa);
	return 0;
}
