// SPDX-License-Identifier: Apache-2.0
/* local_fit_node.c: checks whether a group fits on a node. Each check adds its reason to the
 * metrics. Runs in: supervisor. */
#include "supervisor/server/place/local_fit_node.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "supervisor/driver/container.h"
#include "supervisor/server/place/local_constraint.h"

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
		if (!local_constraint_holds(f->node, &list[i]))
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
needs_bridge(const struct task_group *group)
{
	const struct network_resource *own = group_own_network(group);

	if (own && str_eq(own->mode, "bridge"))
		return true;
	for (size_t i = 0; i < group->tasks.n; i++)
		if (container_has_network(group, &group->tasks.v[i]))
			return true;
	return false;
}

/* As servers of a cluster do, but also for containers with a network of their own. */
static bool
has_network(const struct local_fit *f)
{
	const struct node_resources *res = &f->node->node_resources;

	if (!needs_bridge(f->group))
		return true;
	for (size_t i = 0; i < res->node_networks.n; i++)
		if (str_eq(res->node_networks.v[i].mode, "bridge"))
			return true;
	return local_fit_add_filtered(f,
	    "missing network bridge: this machine lacks CNI plugins or iptables; install "
	    "containernetworking-plugins and iptables, and reload the agent");
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

static bool
peers_permit(const struct local_fit *f, const struct constraint *list, size_t n, size_t peers)
{
	char reason[ERR_MSG_SIZE];

	for (size_t i = 0; i < n; i++)
		if (!local_constraint_permits(f->node, &list[i], peers, reason, sizeof reason))
			return local_fit_add_filtered(f, "%s", reason);
	return true;
}

bool
local_fit_peers(const struct local_fit *f, const struct local_peers *peers)
{
	return peers_permit(f, f->job->constraints.v, f->job->constraints.n, peers->of_job) &&
	       peers_permit(f, f->group->constraints.v, f->group->constraints.n, peers->of_group);
}

bool
local_fit_node(const struct local_fit *f)
{
	return constraints_hold(f, f->job->constraints.v, f->job->constraints.n) &&
	       constraints_hold(f, f->group->constraints.v, f->group->constraints.n) &&
	       tasks_can_run(f) && has_network(f) && has_host_volumes(f);
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
