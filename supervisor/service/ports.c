// SPDX-License-Identifier: Apache-2.0
/* ports.c: the ports of an alloc, and the addresses of its services and checks. Runs in:
 * supervisor. */
#include "supervisor/service/ports.h"

#include <errno.h>

#include "supervisor/node/node_state.h"

static void
visit_network(const struct network_resource *n, const char *task, port_fn *fn, void *arg)
{
	for (size_t i = 0; i < n->reserved_ports.n + n->dynamic_ports.n; i++) {
		const struct port *p = network_port(n, i);
		const struct port_at at = { str(n->ip), p->value, p->to };

		fn(arg, task, str(p->label), &at);
	}
}

void
port_each(const struct alloc *a, port_fn *fn, void *arg)
{
	const struct alloc_resources *res = a->allocated_resources;

	for (size_t i = 0; res && i < res->tasks.n; i++)
		for (size_t k = 0; k < res->tasks.v[i].value.networks.n; k++)
			visit_network(
			    &res->tasks.v[i].value.networks.v[k], res->tasks.v[i].key, fn, arg);
	for (size_t i = 0; res && i < res->shared.ports.n; i++) {
		const struct alloc_port *p = &res->shared.ports.v[i];
		const struct port_at at = { str(p->host_ip), p->value, p->to };

		fn(arg, NULL, str(p->label), &at);
	}
}

struct search {
	const char *label;
	struct port_at at;
	bool found;
};

/* Keeps the last match, because the group's ports come after those of tasks. */
static void
compare_label(void *arg, const char *task, const char *label, const struct port_at *at)
{
	struct search *s = arg;

	if (!str_eq(s->label, label))
		return;
	s->at = *at;
	s->found = true;
}

bool
port_find(const struct alloc *a, const char *label, struct port_at *ret)
{
	struct search s = { .label = label };

	if (!*label)
		return false;
	port_each(a, compare_label, &s);
	if (s.found)
		*ret = s.at;
	return s.found;
}

int
service_place_resolve(struct sup *sup, const struct alloc *a, const struct service_place *place,
    char **ret_address, int64_t *ret_port, struct err *e)
{
	bool own = place->address && *place->address;
	const char *label = str(place->port_label), *mode = str(place->mode), *ip = node_ip(sup);
	struct port_at at = { 0 };
	bool found;

	if (own && *mode && !str_eq(mode, "auto"))
		return err_say(
		    e, -EINVAL, "address \"%s\" requires address_mode \"auto\"", place->address);
	if (str_eq(mode, "driver"))
		return err_say(e, -EINVAL,
		    "address_mode \"driver\" needs a network of the task's own, which its driver "
		    "does not provide");
	if (str_eq(mode, "alloc") && !(a->network_status && a->network_status->address))
		return err_say(e, -EINVAL,
		    "address_mode \"alloc\" needs a network of the allocation's own: set the mode "
		    "of the group's network to \"bridge\" or \"cni/NAME\"");
	found = port_find(a, label, &at);
	if (found && str_eq(mode, "alloc")) {
		if (at.to > 0)
			at.value = at.to;
	} else if (found) {
		if (*at.ip && !str_eq(at.ip, "0.0.0.0") && !str_eq(at.ip, "::"))
			ip = at.ip;
	} else if (*label) {
		at.value = port_number(label);
		if (at.value == 0)
			return err_say(e, -EINVAL,
			    "port \"%s\" is neither a number nor a label of the allocation's "
			    "network",
			    label);
	}
	if (str_eq(mode, "alloc"))
		ip = a->network_status->address;
	str_set(ret_address, own ? place->address : ip);
	*ret_port = at.value;
	return 0;
}
