// SPDX-License-Identifier: Apache-2.0
/* local_ports.c: which alloc has which port of which address of the node. A static port is refused
 * while another alloc has it; dynamic ports are chosen here. Runs in: supervisor. */
#include "supervisor/server/capacity/local_ports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/port_list.h"
#include "supervisor/node/node_state.h"
#include "supervisor/service/ports.h"

#define PORTS 65536

/* The ports of one address; made when the first port of it is reserved. */
struct local_address {
	SLIST_ENTRY(local_address) entry;
	char *ip;
	struct sup_alloc *holder[PORTS];
};

struct local_ports {
	SLIST_HEAD(, local_address) addresses;
	unsigned next_dynamic; /* 0: a random start has to be chosen */
};

/* A group that gets ports. */
struct fill {
	struct local_ports *ports;
	const struct node *node;
	const char *node_ip;
	struct alloc_resources all;      /* its ports so far, with those of its tasks */
	struct local_shortage *shortage; /* may be NULL */
	struct err *e;
};

void
local_ports_init(struct local *l)
{
	l->ports = mem_new(struct local_ports);
}

static struct local_address *
find_address(const struct local_ports *ports, const char *ip)
{
	struct local_address *at;

	SLIST_FOREACH (at, &ports->addresses, entry)
		if (str_eq(at->ip, ip))
			return at;
	return NULL;
}

static struct local_address *
add_address(struct local_ports *ports, const char *ip)
{
	struct local_address *at = mem_new(struct local_address);

	str_set(&at->ip, ip);
	SLIST_INSERT_HEAD(&ports->addresses, at, entry);
	return at;
}

static bool
is_port(int64_t port)
{
	return port > 0 && port < PORTS;
}

static struct sup_alloc *
holder_of(const struct local_ports *ports, const char *ip, int64_t port)
{
	const struct local_address *at = find_address(ports, ip);

	return at && is_port(port) ? at->holder[port] : NULL;
}

void
local_ports_free(struct local *l)
{
	struct local_address *at;

	while ((at = SLIST_FIRST(&l->ports->addresses))) {
		SLIST_REMOVE_HEAD(&l->ports->addresses, entry);
		free(at->ip);
		free(at);
	}
	free(l->ports);
}

/* Adds one warning for the group: for its first port that a canary would find taken. */
static void
warn_group(const struct task_group *group, struct problems *p)
{
	for (size_t i = 0; i < group->networks.n; i++) {
		const struct network_resource *net = &group->networks.v[i];

		for (size_t k = 0; k < net->reserved_ports.n; k++) {
			const struct port *port = &net->reserved_ports.v[k];

			if (port->value <= 0 || port->ignore_collision)
				continue;
			model_problem(p,
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

/* The holder of an alloc's ports is set from one value to another. */
struct holder_change {
	struct local_ports *ports;
	const struct sup_alloc *from;
	struct sup_alloc *to;
};

static void
change_port(void *arg, const char *task, const char *label, const struct port_at *port)
{
	const struct holder_change *c = arg;
	struct local_address *at = find_address(c->ports, str(port->ip));

	if (!at && c->to)
		at = add_address(c->ports, str(port->ip));
	if (at && is_port(port->value) && at->holder[port->value] == c->from)
		at->holder[port->value] = c->to;
}

void
local_ports_reserve(struct local *l, struct sup_alloc *sa)
{
	struct holder_change c = { l->ports, NULL, sa };

	port_each(&sa->a, change_port, &c);
}

void
local_ports_release(struct local *l, struct sup_alloc *sa)
{
	struct holder_change c = { l->ports, sa, NULL };

	port_each(&sa->a, change_port, &c);
}

/* Returns the first address with this name, or NULL if the node has no such network. */
static const struct node_address *
find_node_address(const struct node *node, const char *network)
{
	const char *name = *network ? network : "default";

	for (size_t i = 0; i < node->node_resources.node_networks.n; i++) {
		const struct node_network *net = &node->node_resources.node_networks.v[i];

		for (size_t k = 0; k < net->addresses.n; k++)
			if (str_eq(net->addresses.v[k].alias, name))
				return &net->addresses.v[k];
	}
	return NULL;
}

static bool
is_reserved(const struct node *node, const struct node_address *at, int64_t port)
{
	return port_list_has(str(node->reserved_resources.networks.reserved_host_ports), port) ||
	       port_list_has(str(at->reserved_ports), port);
}

static bool
is_own(const struct fill *f, const char *ip, int64_t port)
{
	for (size_t i = 0; i < f->all.shared.ports.n; i++)
		if (f->all.shared.ports.v[i].value == port &&
		    str_eq(f->all.shared.ports.v[i].host_ip, ip))
			return true;
	return false;
}

static void
add_alloc_port(struct fill *f, const struct port *p, int64_t value, const char *ip)
{
	struct alloc_port *port = list_add(alloc_port, &f->all.shared.ports);

	str_set(&port->label, p->label);
	str_set(&port->host_ip, ip);
	port->value = value;
	port->to = p->to == -1 ? value : p->to;
	port->ignore_collision = p->ignore_collision;
}

static int
report_collision(const struct fill *f, const struct port *p, const char *holder, const char *has_it)
{
	return err_say(f->e, -EADDRINUSE,
	    "network: reserved port collision %.100s=%lld (%.200s %s)", str(p->label),
	    (long long)p->value, holder, has_it);
}

static void
set_shortage(const struct fill *f, enum local_shortage_kind kind, const char *ip, int64_t port)
{
	if (f->shortage)
		*f->shortage = (struct local_shortage){
			.kind = kind, .at = find_address(f->ports, ip), .port = port
		};
}

const struct sup_alloc *
local_port_holder(const struct local_shortage *shortage)
{
	return shortage->kind == LOCAL_SHORT_PORT && shortage->at
		   ? shortage->at->holder[shortage->port]
		   : NULL;
}

static int
add_static(struct fill *f, struct port *p, const struct node_address *at)
{
	const char *ip = str(at->address);
	const struct sup_alloc *holder = holder_of(f->ports, ip, p->value);

	if (is_own(f, ip, p->value) && !p->ignore_collision)
		return report_collision(f, p, "the same group", "has it twice");
	if (is_reserved(f->node, at, p->value))
		return report_collision(f, p, "the node's configuration", "reserves it");
	if (holder && !p->ignore_collision) {
		set_shortage(f, LOCAL_SHORT_PORT, ip, p->value);
		return report_collision(f, p, str(holder->a.name), "has it");
	}
	add_alloc_port(f, p, p->value, ip);
	return 0;
}

/* Counts the dynamic ports that only this group has: they would be free if it had none. */
static int64_t
count_own_dynamic(const struct fill *f, const char *ip, int64_t low, int64_t high)
{
	int64_t n = 0;

	for (size_t i = 0; i < f->all.shared.ports.n; i++) {
		const struct alloc_port *port = &f->all.shared.ports.v[i];

		n += port->value >= low && port->value <= high && str_eq(port->host_ip, ip) &&
		     !holder_of(f->ports, ip, port->value);
	}
	return n;
}

/* Two agents on one machine do not know each other's ports, so they start at random ones. */
static unsigned
next_dynamic(struct local_ports *ports)
{
	struct id id;

	if (!ports->next_dynamic) {
		id = id_random_uuid();
		(void)memcpy(&ports->next_dynamic, id.b, sizeof ports->next_dynamic);
	}
	return ports->next_dynamic++;
}

/* Chooses the next free port after the last one that was chosen: clients may still use the old port
 * of an alloc that has just ended. */
static int
add_dynamic(struct fill *f, struct port *p, const struct node_address *at)
{
	int64_t low = f->node->node_resources.min_dynamic_port,
		high = f->node->node_resources.max_dynamic_port;
	const char *ip = str(at->address);

	for (int64_t i = low; i <= high; i++) {
		int64_t port = low + next_dynamic(f->ports) % (high - low + 1);

		if (port == 0 || holder_of(f->ports, ip, port) || is_own(f, ip, port) ||
		    is_reserved(f->node, at, port))
			continue;
		p->value = port;
		add_alloc_port(f, p, port, ip);
		return 0;
	}
	set_shortage(f, LOCAL_SHORT_DYNAMIC_PORTS, ip, count_own_dynamic(f, ip, low, high));
	return err_say(f->e, -EADDRINUSE,
	    "network: dynamic port selection failed: none of %lld to %lld is free at %s for "
	    "%.100s",
	    (long long)low, (long long)high, ip, str(p->label));
}

static int
add_port(struct fill *f, struct port *p, bool dynamic)
{
	const struct node_address *at = find_node_address(f->node, str(p->host_network));

	if (!at)
		return err_say(f->e, -ENOENT, "missing host network \"%.100s\" for port \"%.100s\"",
		    str(p->host_network), str(p->label));
	return (dynamic ? add_dynamic : add_static)(f, p, at);
}

/* Makes a network as tasks see it: as the job asked for it, with the ports that it got. */
static int
fill_network(struct fill *f, const struct network_resource *asked, struct network_resource *net)
{
	int r = 0;

	network_resource_copy(asked, net);
	str_set(&net->ip, f->node_ip);
	for (size_t i = 0; i < net->reserved_ports.n && r == 0; i++)
		r = add_port(f, &net->reserved_ports.v[i], false);
	for (size_t i = 0; i < net->dynamic_ports.n && r == 0; i++)
		r = add_port(f, &net->dynamic_ports.v[i], true);
	return r;
}

/* Gives the group the ports of its networks. */
static int
fill_group(struct fill *f, const struct task_group *group, struct alloc_shared_resources *ret)
{
	int r = 0;

	for (size_t i = 0; i < group->networks.n && r == 0; i++)
		r = fill_network(
		    f, &group->networks.v[i], list_add(network_resource, &ret->networks));
	for (size_t i = 0; i < f->all.shared.ports.n; i++)
		alloc_port_copy(&f->all.shared.ports.v[i], list_add(alloc_port, &ret->ports));
	return r;
}

/* Gives a task the ports of the networks in its resources. */
static int
fill_task(struct fill *f, const struct task *task, struct alloc_resources *ret)
{
	const struct resources *res = task->resources;
	int r = 0;

	for (size_t i = 0; res && i < res->networks.n && r == 0; i++) {
		struct network_resource *net = list_add(network_resource,
		    &map_put(alloc_task_resources, &ret->tasks, task->name)->networks);
		size_t first = f->all.shared.ports.n;

		r = fill_network(f, &res->networks.v[i], net);
		if (first < f->all.shared.ports.n) /* its ports have no address of their own */
			str_set(&net->ip, f->all.shared.ports.v[first].host_ip);
	}
	return r;
}

int
local_ports_fill(struct local *l, struct alloc_resources *ret, const struct task_group *group,
    struct local_shortage *shortage, struct err *e)
{
	struct fill f = { .ports = l->ports,
		.node = node_get(l->base.sup),
		.node_ip = node_ip(l->base.sup),
		.shortage = shortage,
		.e = e };
	int r = fill_group(&f, group, &ret->shared);

	for (size_t i = 0; i < group->tasks.n && r == 0; i++)
		r = fill_task(&f, &group->tasks.v[i], ret);
	alloc_resources_done(&f.all);
	return r;
}
