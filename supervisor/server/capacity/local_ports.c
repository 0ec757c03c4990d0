// SPDX-License-Identifier: Apache-2.0
/* local_ports.c: which alloc has which port of which address of the node: static ones are refused
 * while another has them, dynamic ones are chosen. Runs in: supervisor. */
#include "supervisor/server/capacity/local_ports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/port_list.h"
#include "supervisor/node/node_state.h"

#define PORTS 65536

/* The ports of one address; made when the first of them is taken. */
struct local_address {
	struct local_address *next;
	char *ip;
	struct sup_alloc *holder[PORTS];
};

struct local_ports {
	struct local_address *addresses;
	unsigned next_dynamic;
};

int
local_ports_init(struct local *l)
{
	l->ports = calloc(1, sizeof *l->ports);
	return l->ports ? 0 : -ENOMEM;
}

static struct local_address *
find_address(const struct local *l, const char *ip)
{
	struct local_address *p = l->ports->addresses;

	while (p && !str_eq(p->ip, ip))
		p = p->next;
	return p;
}

static struct sup_alloc *
holder_of(const struct local *l, const char *ip, int64_t port)
{
	const struct local_address *p = find_address(l, ip);

	return p && port > 0 && port < PORTS ? p->holder[port] : NULL;
}

static struct local_address *
add_address(struct local *l, const char *ip)
{
	struct local_address *p = calloc(1, sizeof *p);

	if (!p || str_set(&p->ip, ip) < 0) {
		free(p);
		return NULL;
	}
	p->next = l->ports->addresses;
	l->ports->addresses = p;
	return p;
}

void
local_ports_free(struct local *l)
{
	while (l->ports && l->ports->addresses) {
		struct local_address *p = l->ports->addresses;

		l->ports->addresses = p->next;
		free(p->ip);
		free(p);
	}
	free(l->ports);
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
local_ports_take(struct local *l, struct sup_alloc *sa)
{
	const struct alloc_resources *res = sa->a.allocated_resources;

	for (size_t i = 0; res && i < res->shared.ports.n; i++) {
		const struct alloc_port *port = &res->shared.ports.v[i];
		struct local_address *p = find_address(l, str(port->host_ip));

		if (!p)
			p = add_address(l, str(port->host_ip));
		if (p && port->value > 0 && port->value < PORTS && !p->holder[port->value])
			p->holder[port->value] = sa;
	}
}

void
local_ports_give_back(struct local *l, struct sup_alloc *sa)
{
	const struct alloc_resources *res = sa->a.allocated_resources;

	for (size_t i = 0; res && i < res->shared.ports.n; i++) {
		const struct alloc_port *port = &res->shared.ports.v[i];
		struct local_address *p = find_address(l, str(port->host_ip));

		if (p && port->value > 0 && port->value < PORTS && p->holder[port->value] == sa)
			p->holder[port->value] = NULL;
	}
}

/* The first address of this name. NULL: the node has no such network. */
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
is_own(const struct alloc_shared_resources *shared, const char *ip, int64_t port)
{
	for (size_t i = 0; i < shared->ports.n; i++)
		if (shared->ports.v[i].value == port && str_eq(shared->ports.v[i].host_ip, ip))
			return true;
	return false;
}

static int
add_alloc_port(struct alloc_shared_resources *shared, const struct port *p, int64_t value,
    const char *ip, struct err *e)
{
	struct alloc_port *port = list_add(alloc_port, &shared->ports);

	if (!port || str_set(&port->label, p->label) < 0 || str_set(&port->host_ip, ip) < 0)
		return err_set(e, -ENOMEM, "give out port %s", str(p->label));
	port->value = value;
	port->to = p->to == -1 ? value : p->to;
	port->ignore_collision = p->ignore_collision;
	return 0;
}

static int
report_collision(const struct port *p, struct err *e, const char *holder, const char *has_it)
{
	return err_say(e, -EADDRINUSE, "network: reserved port collision %.100s=%lld (%.200s %s)",
	    str(p->label), (long long)p->value, holder, has_it);
}

static void
note_shortage(struct local *l, struct local_shortage *shortage, enum local_shortage_kind kind,
    const char *ip, int64_t port)
{
	if (shortage)
		*shortage = (struct local_shortage){
			.kind = kind, .at = find_address(l, ip), .port = port
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
add_static(struct local *l, struct alloc_shared_resources *shared, struct port *p,
    const struct node_address *at, struct local_shortage *shortage, struct err *e)
{
	const struct sup_alloc *holder = holder_of(l, str(at->address), p->value);

	if (is_own(shared, str(at->address), p->value) && !p->ignore_collision)
		return report_collision(p, e, "the same group", "has it twice");
	if (is_reserved(node_get(l->base.sup), at, p->value))
		return report_collision(p, e, "the node's configuration", "reserves it");
	if (holder && !p->ignore_collision) {
		note_shortage(l, shortage, LOCAL_SHORT_PORT, str(at->address), p->value);
		return report_collision(p, e, str(holder->a.name), "has it");
	}
	return add_alloc_port(shared, p, p->value, str(at->address), e);
}

/* How many of the free dynamic ports the group has been given already. */
static int64_t
own_dynamic(const struct local *l, const struct alloc_shared_resources *shared, const char *ip,
    int64_t low, int64_t high)
{
	int64_t n = 0;

	for (size_t i = 0; i < shared->ports.n; i++) {
		const struct alloc_port *port = &shared->ports.v[i];

		n += port->value >= low && port->value <= high && str_eq(port->host_ip, ip) &&
		     !holder_of(l, ip, port->value);
	}
	return n;
}

/* A free one, each time another: what has just ended may still be asked for by its old port. Agents
 * on one machine begin at different places: neither knows what the other gives out. */
static int
add_dynamic(struct local *l, struct alloc_shared_resources *shared, struct port *p,
    const struct node_address *at, struct local_shortage *shortage, struct err *e)
{
	const struct node *node = node_get(l->base.sup);
	int64_t low = node->node_resources.min_dynamic_port,
		high = node->node_resources.max_dynamic_port;
	struct id id;

	if (!l->ports->next_dynamic) {
		id = id_random_uuid();
		(void)memcpy(&l->ports->next_dynamic, id.b, sizeof l->ports->next_dynamic);
	}
	for (int64_t i = low; i <= high; i++) {
		int64_t port = low + l->ports->next_dynamic++ % (high - low + 1);

		if (port == 0 || holder_of(l, str(at->address), port) ||
		    is_own(shared, str(at->address), port) || is_reserved(node, at, port))
			continue;
		p->value = port;
		return add_alloc_port(shared, p, port, str(at->address), e);
	}
	note_shortage(l, shortage, LOCAL_SHORT_DYNAMIC_PORTS, str(at->address),
	    own_dynamic(l, shared, str(at->address), low, high));
	return err_say(e, -EADDRINUSE,
	    "network: dynamic port selection failed: none of %lld to %lld is free at %s for "
	    "%.100s",
	    (long long)low, (long long)high, str(at->address), str(p->label));
}

static int
add_port(struct local *l, struct alloc_shared_resources *shared, struct port *p, bool dynamic,
    struct local_shortage *shortage, struct err *e)
{
	const struct node_address *at =
	    find_node_address(node_get(l->base.sup), str(p->host_network));

	if (!at)
		return err_say(e, -ENOENT, "missing host network \"%.100s\" for port \"%.100s\"",
		    str(p->host_network), str(p->label));
	return (dynamic ? add_dynamic : add_static)(l, shared, p, at, shortage, e);
}

/* Fills in the network as the task sees it: as its group asked for, with the ports that it got. */
static int
fill_network(struct local *l, struct alloc_shared_resources *shared,
    const struct network_resource *asked, struct local_shortage *shortage, struct err *e)
{
	struct network_resource *net = list_add(network_resource, &shared->networks);
	int r = 0;

	if (!net || network_resource_copy(asked, net) < 0 ||
	    str_set(&net->ip, node_ip(l->base.sup)) < 0)
		return err_set(e, -ENOMEM, "give out ports");
	for (size_t i = 0; i < net->reserved_ports.n && r == 0; i++)
		r = add_port(l, shared, &net->reserved_ports.v[i], false, shortage, e);
	for (size_t i = 0; i < net->dynamic_ports.n && r == 0; i++)
		r = add_port(l, shared, &net->dynamic_ports.v[i], true, shortage, e);
	return r;
}

int
local_ports_fill(struct local *l, struct alloc_shared_resources *shared,
    const struct task_group *group, struct local_shortage *shortage, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < group->networks.n && r == 0; i++)
		r = fill_network(l, shared, &group->networks.v[i], shortage, e);
	return r;
}
