// SPDX-License-Identifier: Apache-2.0
/* ports.c: the ports of an alloc. Runs in: supervisor. */
#include "supervisor/service/ports.h"

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
