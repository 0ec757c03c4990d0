// SPDX-License-Identifier: Apache-2.0
/* local_place.c: does an alloc fit on the node, and its making. Runs in: supervisor. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/id.h"
#include "common/number.h"
#include "supervisor/node/node_state.h"
#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/place/local_reschedule.h"

/* --- constraints --- */

enum operand { OPERAND_EQUAL, OPERAND_NOT_EQUAL, OPERAND_UNKNOWN };

static enum operand
parse_operand(const char *word)
{
	if (strcmp(word, "") == 0 || strcmp(word, "=") == 0 || strcmp(word, "==") == 0 ||
	    strcmp(word, "is") == 0)
		return OPERAND_EQUAL;
	if (strcmp(word, "!=") == 0 || strcmp(word, "not") == 0)
		return OPERAND_NOT_EQUAL;
	return OPERAND_UNKNOWN;
}

static const char *
node_field(const struct node *node, const char *name)
{
	if (strcmp(name, "unique.id") == 0)
		return str(node->id);
	if (strcmp(name, "unique.name") == 0)
		return str(node->name);
	if (strcmp(name, "datacenter") == 0)
		return str(node->datacenter);
	if (strcmp(name, "class") == 0)
		return str(node->node_class);
	return strcmp(name, "pool") == 0 ? str(node->node_pool) : NULL;
}

/* What a side of a constraint means on this node: itself, or "${attr.x}", "${meta.x}", "${node.x}".
 * NULL: not there. */
static const char *
resolve(const struct node *node, const char *target)
{
	size_t len = strlen(target);
	char name[256];

	if (len < 4 || strncmp(target, "${", 2) != 0 || target[len - 1] != '}')
		return target;
	if (len - 3 >= sizeof name)
		return NULL;
	(void)memcpy(name, target + 2, len - 3);
	name[len - 3] = '\0';
	if (strncmp(name, "attr.", 5) == 0)
		return string_map_get(&node->attributes, name + 5);
	if (strncmp(name, "meta.", 5) == 0)
		return string_map_get(&node->meta, name + 5);
	return strncmp(name, "node.", 5) == 0 ? node_field(node, name + 5) : NULL;
}

static bool
constraint_holds(const struct node *node, const struct constraint *c)
{
	const char *left = resolve(node, str(c->l_target)),
		   *right = resolve(node, str(c->r_target));

	if (parse_operand(str(c->operand)) == OPERAND_NOT_EQUAL)
		return !left || !right || strcmp(left, right) != 0;
	return left && right && strcmp(left, right) == 0;
}

static void
check_operands(const struct constraint *list, size_t n, const char *where, struct problems *p)
{
	for (size_t i = 0; i < n; i++) {
		if (parse_operand(str(list[i].operand)) == OPERAND_UNKNOWN)
			(void)model_problem(p,
			    "%s: constraint operand \"%s\" is not supported; there are = and !=",
			    where, list[i].operand);
	}
}

void
local_place_validate(const struct job *job, struct problems *p)
{
	char where[512];

	check_operands(job->constraints.v, job->constraints.n, "job", p);
	for (size_t i = 0; i < job->task_groups.n; i++) {
		const struct task_group *g = &job->task_groups.v[i];

		(void)snprintf(where, sizeof where, "group %s", str(g->name));
		check_operands(g->constraints.v, g->constraints.n, where, p);
		for (size_t k = 0; k < g->tasks.n; k++) {
			const struct task *t = &g->tasks.v[k];

			(void)snprintf(
			    where, sizeof where, "group %s, task %s", str(g->name), str(t->name));
			check_operands(t->constraints.v, t->constraints.n, where, p);
		}
	}
}

/* --- feasibility: each check counts into the metrics what kept the node out --- */

struct fit {
	struct local *l;
	const struct local_room *used;
	const struct node *node;
	const struct job *job;
	const struct task_group *group;
	int64_t index;
	struct alloc_metric *m;
	struct local_lack *lack;
};

static bool __attribute__((format(printf, 2, 3)))
filtered(const struct fit *f, const char *fmt, ...)
{
	char reason[ERR_MSG_SIZE];
	int64_t *n;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(reason, sizeof reason, fmt, ap);
	va_end(ap);
	f->m->nodes_filtered = 1;
	n = int_map_at(&f->m->constraint_filtered, reason);
	if (n)
		++*n;
	return false;
}

static bool
exhausted(const struct fit *f, const char *dimension)
{
	int64_t *n = int_map_at(&f->m->dimension_exhausted, dimension);

	f->m->nodes_exhausted = 1;
	if (n)
		++*n;
	return false;
}

static bool
in_datacenter(const struct fit *f)
{
	bool in = f->job->datacenters.n == 0;
	int64_t *n;

	for (size_t i = 0; i < f->job->datacenters.n && !in; i++)
		in = fnmatch(f->job->datacenters.v[i], str(f->node->datacenter), 0) == 0;
	if (in && !str_eq(f->job->node_pool, "all") && *str(f->job->node_pool))
		in = str_eq(
		    f->job->node_pool, *str(f->node->node_pool) ? f->node->node_pool : "default");
	n = int_map_at(
	    &f->m->nodes_available, *str(f->node->datacenter) ? f->node->datacenter : "dc1");
	if (n)
		*n = in;
	f->m->nodes_in_pool = in;
	return in;
}

static bool
constraints_hold(const struct fit *f, const struct constraint *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!constraint_holds(f->node, &list[i]))
			return filtered(f, "%s %s %s", str(list[i].l_target),
			    *str(list[i].operand) ? list[i].operand : "=", str(list[i].r_target));
	}
	return true;
}

static bool
has_driver(const struct fit *f, const char *name)
{
	const struct driver_info *info = map_get(driver_info, &f->node->drivers, name);

	if (!info || !info->detected)
		return filtered(f, "missing driver %s%s%s", name,
		    info && *str(info->health_description) ? ": " : "",
		    info ? str(info->health_description) : "");
	if (!info->healthy)
		return filtered(
		    f, "driver %s is unhealthy: %s", name, str(info->health_description));
	return true;
}

static bool
tasks_can_run(const struct fit *f)
{
	for (size_t i = 0; i < f->group->tasks.n; i++) {
		const struct task *t = &f->group->tasks.v[i];

		if (!has_driver(f, str(t->driver)) ||
		    !constraints_hold(f, t->constraints.v, t->constraints.n))
			return false;
	}
	return true;
}

static bool
has_host_volume(const struct fit *f, const struct volume_request *vr)
{
	cleanup_free char *name = NULL;
	const struct host_volume *v = volume_request_source(vr, f->index, &name) < 0
					  ? NULL
					  : map_get(host_volume, &f->node->host_volumes, str(name));

	if (!v)
		return filtered(f, "missing host volume %s", str(name));
	return !v->read_only || vr->read_only || filtered(f, "host volume %s is read-only", name);
}

static bool
volumes_can_be_used(const struct fit *f)
{
	for (size_t i = 0; i < f->group->volumes.n; i++) {
		const struct volume_request *vr = &f->group->volumes.v[i].value;
		struct err e = { 0 };

		if (vr->type == VOLUME_HOST && !has_host_volume(f, vr))
			return false;
		if (vr->type == VOLUME_CSI &&
		    local_volume_check(f->l, f->job->namespace, f->index, vr, &e) < 0)
			return filtered(f, "%s", e.msg);
	}
	return true;
}

const char *
local_room_exhausted(struct local *l, const struct local_room *used, const struct local_room *more)
{
	const struct node *node = node_get(l->base.sup);
	const struct node_cpu *cpu = &node->node_resources.cpu;
	int64_t cores = number_add(used->cores, more->cores);

	if (cores > (int64_t)cpu->reservable_cpu_cores.n)
		return "cores";
	if (number_add(number_add(used->cpu, more->cpu), cores * local_core_mhz(node)) >
	    cpu->cpu_shares - node->reserved_resources.cpu.cpu_shares)
		return "cpu";
	if (number_add(used->memory_mb, more->memory_mb) >
	    node->node_resources.memory.memory_mb - node->reserved_resources.memory.memory_mb)
		return "memory";
	if (number_add(used->disk_mb, more->disk_mb) >
	    node->node_resources.disk.disk_mb - node->reserved_resources.disk.disk_mb)
		return "disk";
	return NULL;
}

static bool
has_room(const struct fit *f)
{
	struct local_lack lack = { .kind = LOCAL_LACKS_ROOM };
	const char *dimension;

	local_room_add(&lack.room, f->group);
	dimension = local_room_exhausted(f->l, f->used, &lack.room);
	if (!dimension)
		return true;
	*f->lack = lack;
	return exhausted(f, dimension);
}

static bool
ports_are_free(const struct fit *f)
{
	cleanup_done(alloc_resources) struct alloc_resources tried;
	struct err e = { 0 };
	int r;

	alloc_resources_init(&tried);
	r = local_ports_fill(f->l, &tried.shared, f->group, f->lack, &e);
	if (r == -ENOENT)
		return filtered(f, "%s", e.msg);
	return r == 0 || exhausted(f, e.msg);
}

static void
add_wish(int64_t *sum, int64_t wish)
{
	*sum = number_add(*sum, wish > 0 ? wish : 0);
}

void
local_room_add(struct local_room *room, const struct task_group *group)
{
	for (size_t i = 0; i < group->tasks.n; i++) {
		const struct resources *res = group->tasks.v[i].resources;

		if (!res)
			continue;
		add_wish(&room->cpu, res->cpu);
		add_wish(&room->cores, res->cores);
		add_wish(&room->memory_mb, res->memory_mb);
		add_wish(&room->memory_mb, res->secrets_mb);
	}
	add_wish(&room->disk_mb, group_disk_mb(group));
}

bool
local_place_fits(struct local *l, const struct local_room *used, const struct job *job,
    const char *group, int64_t index, struct alloc_metric *m, struct local_lack *ret_lack)
{
	int64_t began = local_now_ns();
	struct local_lack ignored;
	struct fit f = { .l = l,
		.used = used,
		.node = node_get(l->base.sup),
		.job = job,
		.index = index,
		.m = m,
		.lack = ret_lack ? ret_lack : &ignored };
	bool fits;

	*f.lack = (struct local_lack){ .kind = LOCAL_LACKS_OTHER };
	f.group = job_group(job, group);
	if (!in_datacenter(&f) || l->ineligible || l->base.sup->draining)
		return false;
	m->nodes_evaluated = 1;
	fits = constraints_hold(&f, f.job->constraints.v, f.job->constraints.n) &&
	       constraints_hold(&f, f.group->constraints.v, f.group->constraints.n) &&
	       tasks_can_run(&f) && volumes_can_be_used(&f) && has_room(&f) && ports_are_free(&f);
	m->allocation_time = local_now_ns() - began;
	return fits;
}

/* --- placing --- */

static int
fill_resources(struct local *l, struct alloc *a, const struct task_group *g)
{
	struct core_set used = l->cores_used;

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
	return local_reschedule_note(p, &before->sa->a, a, local_now_ns());
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
	a->create_time = a->modify_time = local_now_ns();
	a->create_index = a->modify_index = a->alloc_modify_index = local_index_next(l);
	return 0;
}

int
local_place(struct local *l, struct local_slot *slot, struct job_ref *ref, struct local_eval *ev,
    struct alloc_metric *m)
{
	struct local_alloc *before = slot->current;
	cleanup_done(alloc) struct alloc a;
	struct sup_alloc *sa;

	alloc_init(&a);
	if (fill_alloc(l, &a, slot, &ref->job, ev->ev.id) < 0)
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
	local_volume_reserve(l, sa);
	client_alloc_run(l->base.sup, sa);
	return 0;
}
