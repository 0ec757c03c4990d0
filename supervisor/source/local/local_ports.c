// SPDX-License-Identifier: Apache-2.0
/* local_ports.c: which alloc has which port of the node: static ones are refused while another has
 * them, dynamic ones are chosen. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/node/node_state.h"
#include "supervisor/source/local/local.h"

#define PORTS       65536
#define DYNAMIC_MIN 20000
#define DYNAMIC_MAX 32000

/* Agents on one machine begin at different places: neither knows what the other gives out. */
static struct local_alloc **
holders(struct local *l)
{
	struct id id;

	if (!l->ports) {
		l->ports = calloc(PORTS, sizeof(struct local_alloc *));
		id = id_random_uuid();
		(void)memcpy(&l->next_port, id.b, sizeof l->next_port);
	}
	return l->ports;
}

struct local_alloc *
local_port_holder(struct local *l, const struct task_group *group, const struct port **ret)
{
	for (size_t i = 0; l->ports && i < group->networks.n; i++) {
		const struct network_resource *net = &group->networks.v[i];

		for (size_t k = 0; k < net->reserved_ports.n; k++) {
			const struct port *p = &net->reserved_ports.v[k];

			if (p->value <= 0 || p->value >= PORTS || !l->ports[p->value] ||
			    p->ignore_collision)
				continue;
			*ret = p;
			return l->ports[p->value];
		}
	}
	return NULL;
}

/* One for each group: its first such port. */
static void
warn_group(const struct task_group *group, struct problems *p)
{
	for (size_t i = 0; i < group->networks.n; i++) {
		const struct network_resource *net = &group->networks.v[i];

		for (size_t k = 0; k < net->reserved_ports.n; k++) {
			const struct port *port = &net->reserved_ports.v[k];

			if (port->value <= 0 || port->ignore_collision)
				continue;
			(void)model_problem(p,
			    "group \"%s\": an update with canaries fails at its progress_deadline: "
			    "the allocation that a canary is to replace has the static port "
			    "%.80s=%lld until then (take a dynamic port, or canary = 0)",
			    str(group->name), str(port->label), (long long)port->value);
			return;
		}
	}
}

void
local_ports_warn(const struct job *job, struct problems *p)
{
	for (size_t i = 0; i < job->task_groups.n; i++) {
		const struct task_group *group = &job->task_groups.v[i];
		const struct update_strategy *u = group->update;

		if (job->type == JOB_SERVICE && u && u->canary > 0 && u->max_parallel > 0)
			warn_group(group, p);
	}
}

void
local_ports_take(struct local *l, struct local_alloc *la)
{
	const struct alloc_resources *res = la->sa->a.allocated_resources;

	for (size_t i = 0; res && i < res->shared.ports.n; i++) {
		int64_t value = res->shared.ports.v[i].value;

		if (value > 0 && value < PORTS && holders(l) && !l->ports[value])
			l->ports[value] = la;
	}
}

void
local_ports_give_back(struct local *l, struct local_alloc *la)
{
	const struct alloc_resources *res = la->sa->a.allocated_resources;

	for (size_t i = 0; l->ports && res && i < res->shared.ports.n; i++) {
		int64_t value = res->shared.ports.v[i].value;

		if (value > 0 && value < PORTS && l->ports[value] == la)
			l->ports[value] = NULL;
	}
}

static bool
is_own(const struct alloc_shared_resources *shared, int64_t port)
{
	for (size_t i = 0; i < shared->ports.n; i++)
		if (shared->ports.v[i].value == port)
			return true;
	return false;
}

/* A free one, each time another: what has just ended may still be asked for by its old port. 0:
 * there is none. */
static int64_t
choose(struct local *l, const struct alloc_shared_resources *shared)
{
	for (int i = 0; holders(l) && i <= DYNAMIC_MAX - DYNAMIC_MIN; i++) {
		int64_t port = DYNAMIC_MIN + l->next_port++ % (DYNAMIC_MAX - DYNAMIC_MIN + 1);

		if (!l->ports[port] && !is_own(shared, port))
			return port;
	}
	return 0;
}

static int
add(struct alloc_shared_resources *shared, const struct port *p, int64_t value, const char *ip)
{
	struct alloc_port *port = list_add(alloc_port, &shared->ports);

	if (!port || str_set(&port->label, p->label) < 0 || str_set(&port->host_ip, ip) < 0)
		return -ENOMEM;
	port->value = value;
	port->to = p->to == -1 ? value : p->to;
	port->ignore_collision = p->ignore_collision;
	return 0;
}

/* What the task shall see of its network: as it asked, with the ports that it got. */
static int
fill_network(struct local *l, struct alloc_shared_resources *shared,
    const struct network_resource *asked, const char *ip)
{
	struct network_resource *net = list_add(network_resource, &shared->networks);

	if (!net || network_resource_copy(asked, net) < 0 || str_set(&net->ip, ip) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < net->reserved_ports.n; i++)
		if (add(shared, &net->reserved_ports.v[i], net->reserved_ports.v[i].value, ip) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < net->dynamic_ports.n; i++) {
		struct port *p = &net->dynamic_ports.v[i];

		p->value = choose(l, shared);
		if (p->value == 0)
			return -EADDRINUSE;
		if (add(shared, p, p->value, ip) < 0)
			return -ENOMEM;
	}
	return 0;
}

int
local_ports_fill(
    struct local *l, struct alloc_shared_resources *shared, const struct task_group *group)
{
	int r = 0;

	for (size_t i = 0; i < group->networks.n && r == 0; i++)
		r = fill_network(l, shared, &group->networks.v[i], node_ip(l->base.sup));
	return r;
}
