// SPDX-License-Identifier: Apache-2.0
/* local_fit_node.c: checks whether a group fits on a node. Each check adds its reason to the
 * metrics. Runs in: supervisor. */
#include "supervisor/server/place/local_fit_node.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"

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

/* Returns the value of one side of a constraint: a text, or "${attr.x}", "${meta.x}" or "${node.x}"
 * on this node. NULL: the node has no such value. */
static const char *
resolve_target(const struct node *node, const char *target)
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
	const char *left = resolve_target(node, str(c->l_target)),
		   *right = resolve_target(node, str(c->r_target));

	if (parse_operand(str(c->operand)) == OPERAND_NOT_EQUAL)
		return !left || !right || strcmp(left, right) != 0;
	return left && right && strcmp(left, right) == 0;
}

static void
check_operands(const struct constraint *list, size_t n, const char *where, struct problems *p)
{
	for (size_t i = 0; i < n; i++) {
		if (parse_operand(str(list[i].operand)) == OPERAND_UNKNOWN)
			model_problem(p,
			    "%s: constraint operand \"%s\" is not supported: use = or !=", where,
			    list[i].operand);
	}
}

void
local_fit_validate(const struct job *job, struct problems *p)
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

bool
local_fit_add_filtered(const struct local_fit *f, const char *fmt, ...)
{
	char reason[ERR_MSG_SIZE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(reason, sizeof reason, fmt, ap);
	va_end(ap);
	f->m->nodes_filtered = 1;
	++*int_map_at(&f->m->constraint_filtered, reason);
	return false;
}

bool
local_fit_add_exhausted(const struct local_fit *f, const char *dimension)
{
	f->m->nodes_exhausted = 1;
	++*int_map_at(&f->m->dimension_exhausted, dimension);
	return false;
}

bool
local_fit_datacenter(const struct local_fit *f)
{
	const char *datacenter = *str(f->node->datacenter) ? f->node->datacenter : "dc1";
	bool in = f->job->datacenters.n == 0;

	for (size_t i = 0; i < f->job->datacenters.n && !in; i++)
		in = fnmatch(f->job->datacenters.v[i], str(f->node->datacenter), 0) == 0;
	if (in && !str_eq(f->job->node_pool, "all") && *str(f->job->node_pool))
		in = str_eq(
		    f->job->node_pool, *str(f->node->node_pool) ? f->node->node_pool : "default");
	*int_map_at(&f->m->nodes_available, datacenter) = in;
	f->m->nodes_in_pool = in;
	return in;
}

static bool
constraints_hold(const struct local_fit *f, const struct constraint *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!constraint_holds(f->node, &list[i]))
			return local_fit_add_filtered(f, "%s %s %s", str(list[i].l_target),
			    *str(list[i].operand) ? list[i].operand : "=", str(list[i].r_target));
	}
	return true;
}

static bool
has_driver(const struct local_fit *f, const char *name)
{
	const struct driver_info *info = map_get(driver_info, &f->node->drivers, name);

	if (!info || !info->detected)
		return local_fit_add_filtered(f, "missing driver %s%s%s", name,
		    info && *str(info->health_description) ? ": " : "",
		    info ? str(info->health_description) : "");
	if (!info->healthy)
		return local_fit_add_filtered(
		    f, "driver %s is unhealthy: %s", name, str(info->health_description));
	return true;
}

static bool
tasks_can_run(const struct local_fit *f)
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
has_host_volume(const struct local_fit *f, const struct volume_request *vr)
{
	cleanup_free char *name = NULL;
	const struct host_volume *v;

	volume_request_source(vr, f->index, &name);
	v = map_get(host_volume, &f->node->host_volumes, str(name));
	if (!v)
		return local_fit_add_filtered(f, "missing host volume %s", str(name));
	return !v->read_only || vr->read_only ||
	       local_fit_add_filtered(f, "host volume %s is read-only", name);
}

static bool
has_host_volumes(const struct local_fit *f)
{
	for (size_t i = 0; i < f->group->volumes.n; i++) {
		const struct volume_request *vr = &f->group->volumes.v[i].value;

		if (vr->type == VOLUME_HOST && !has_host_volume(f, vr))
			return false;
	}
	return true;
}

bool
local_fit_node(const struct local_fit *f)
{
	return constraints_hold(f, f->job->constraints.v, f->job->constraints.n) &&
	       constraints_hold(f, f->group->constraints.v, f->group->constraints.n) &&
	       tasks_can_run(f) && has_host_volumes(f);
}

bool
local_fit_usage(
    const struct local_fit *f, const struct local_usage *used, struct local_shortage *ret_shortage)
{
	struct local_shortage shortage = { .kind = LOCAL_SHORT_USAGE };
	const char *dimension;

	local_usage_add(&shortage.usage, f->group);
	dimension = local_usage_exhausted(f->node, used, &shortage.usage);
	if (!dimension)
		return true;
	*ret_shortage = shortage;
	return local_fit_add_exhausted(f, dimension);
}
