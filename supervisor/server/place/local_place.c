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

static int
fill_resources(struct local *l, struct alloc *a, const struct task_group *g)
{
	struct core_set used = local_cores_used(l);

	a->allocated_resources = alloc_resources_new();
	if (!a->allocated_resources)
		return -ENOMEM;
	for (size_t i = 0; i < g->tasks.n; i++) {
		const struct task *t = &g->tasks.v[i];
		struct alloc_task_resources *res =
		    map_put(alloc_task_resources, &a->allocated_resources->tasks, t->name);

		if (!res)
			return -ENOMEM;
		if (!t->resources)
			continue;
		res->cpu.cpu_shares = t->resources->cpu;
		if (t->resources->cores > 0 &&
		    local_cores_fill(l, t->resources->cores, &used, &res->cpu) < 0)
			return -ENOMEM;
		/* As servers do: what is in its secrets counts, and comes on top. */
		res->memory.memory_mb =
		    number_add(t->resources->memory_mb, t->resources->secrets_mb);
		res->memory.memory_max_mb =
		    t->resources->memory_max_mb > 0
			? number_add(t->resources->memory_max_mb, t->resources->secrets_mb)
			: 0;
	}
	a->allocated_resources->shared.disk_mb = group_disk_mb(g);
	return local_ports_fill(l, &a->allocated_resources->shared, g, NULL, NULL);
}

static int
note_previous(struct alloc *a, const struct local_alloc *before)
{
	const struct reschedule_policy *p = before->sa->group->reschedule_policy;

	if (str_set(&a->previous_allocation, before->sa->a.id) < 0)
		return -ENOMEM;
	if (before->sa->a.desired_transition.reschedule != OPT_TRUE || !p)
		return 0;
	return local_reschedule_note(p, &before->sa->a, a, clock_real_ns());
}

static int
fill_alloc(struct local *l, struct alloc *a, const struct local_slot *slot, const struct job *job,
    const char *eval_id)
{
	const struct node *node = node_get(l->base.sup);
	struct id id = id_random_uuid();
	char text[ID_UUID_SIZE];

	id_to_uuid(&id, text);
	if (str_set(&a->id, text) < 0 || str_set(&a->namespace, job->namespace) < 0 ||
	    str_set(&a->eval_id, eval_id) < 0 ||
	    str_setf(&a->name, "%s.%s[%lld]", job->id, slot->group->name, (long long)slot->index) <
		0 ||
	    str_set(&a->node_id, node->id) < 0 || str_set(&a->node_name, node->name) < 0 ||
	    str_set(&a->job_id, job->id) < 0 || str_set(&a->task_group, slot->group->name) < 0 ||
	    fill_resources(l, a, job_group(job, slot->group->name)) < 0)
		return -ENOMEM;
	if (slot->current && note_previous(a, slot->current) < 0)
		return -ENOMEM;
	if (local_deployment_mark(slot, job, a) < 0)
		return -ENOMEM;
	a->desired_status = DESIRED_RUN;
	a->client_status = CLIENT_PENDING;
	a->create_time = a->modify_time = clock_real_ns();
	a->create_index = a->modify_index = a->alloc_modify_index = local_index_next(l);
	return 0;
}

int
local_place_alloc(struct local *l, struct local_slot *slot, struct job_ref *ref,
    const char *eval_id, struct alloc_metric *m)
{
	struct local_alloc *before = slot->current;
	cleanup_done(alloc) struct alloc a;
	struct sup_alloc *sa;

	alloc_init(&a);
	if (fill_alloc(l, &a, slot, &ref->job, eval_id) < 0)
		return -ENOMEM;
	alloc_metric_done(&a.metrics);
	a.metrics = *m;
	alloc_metric_init(m);
	sa = alloc_add(l->base.sup, &a, job_ref_get(ref));
	if (!sa) {
		job_ref_put(ref);
		return -ENOMEM;
	}
	if (!local_alloc_new(l, sa, slot->job)) {
		alloc_forget(l->base.sup, sa);
		return -ENOMEM;
	}
	if (before) {
		(void)str_set(&before->sa->a.next_allocation, sa->a.id);
		before->sa->a.modify_index = local_index_next(l);
		alloc_changed(l->base.sup, before->sa);
		local_alloc_done(l, before);
	}
	local_claims_reserve(l, sa);
	client_alloc_run(l->base.sup, sa);
	return 0;
}
