/* SPDX-License-Identifier: Apache-2.0 */
/* job_services_validate.c: finds faults of the services of a job. Runs in: supervisor. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "model/engine/table.h"
#include "model/engine/walk.h"
#include "supervisor/server/job/job_validate.h"

struct service_check_pass {
	const struct task_group *group;
	const struct task *task; /* NULL: a group's services */
	const char *provider;    /* of the first service */
	struct problems *p;
};

static bool
has_port(const struct network_resource *n, const char *label)
{
	for (size_t i = 0; i < n->reserved_ports.n; i++)
		if (str_eq(n->reserved_ports.v[i].label, label))
			return true;
	for (size_t i = 0; i < n->dynamic_ports.n; i++)
		if (str_eq(n->dynamic_ports.v[i].label, label))
			return true;
	return false;
}

/* A port with a reference ("${…}") is resolved when its alloc starts. */
static bool
port_is_known(const struct service_check_pass *l, const char *label)
{
	const struct resources *res = l->task ? l->task->resources : NULL;

	if (port_number(label) > 0 || strstr(label, "${"))
		return true;
	for (size_t i = 0; i < l->group->networks.n; i++)
		if (has_port(&l->group->networks.v[i], label))
			return true;
	for (size_t i = 0; res && i < res->networks.n; i++)
		if (has_port(&res->networks.v[i], label))
			return true;
	return false;
}

static void
check_ports(const struct service_check_pass *l, const struct service *s)
{
	if (*str(s->port_label) && !port_is_known(l, s->port_label))
		model_problem(l->p,
		    "port \"%.80s\" is neither a number nor a label of the group's network",
		    s->port_label);
	for (size_t i = 0; i < s->checks.n; i++) {
		const struct service_check *c = &s->checks.v[i];

		if (!*str(c->port_label) && !*str(s->port_label) && service_check_has_port(c))
			model_problem(l->p, "neither check \"%.80s\" nor its service has a port",
			    str(c->name));
		else if (*str(c->port_label) && !port_is_known(l, c->port_label))
			model_problem(l->p,
			    "check \"%.80s\": port \"%.80s\" is neither a number nor a label of "
			    "the "
			    "group's network",
			    str(c->name), c->port_label);
	}
}

static void
check_services(struct service_check_pass *l, const struct service *v, size_t n)
{
	const struct place *up = l->p->place;
	struct place here = { .up = up };
	char name[160];

	here.name = name;
	l->p->place = &here;
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(name, sizeof name, "service \"%s\"", str(v[i].name));
		if (!l->provider)
			l->provider = str(v[i].provider);
		else if (!str_eq(l->provider, v[i].provider))
			model_problem(l->p, "all services of a group must have the same provider");
		for (size_t k = 0; k < i; k++)
			if (str_eq(v[k].name, v[i].name) &&
			    str_eq(v[k].port_label, v[i].port_label))
				model_problem(
				    l->p, "two services have this name and the same port");
		if (!l->task && service_needs_driver_network(&v[i]))
			model_problem(l->p,
			    "only a service of a task, and its checks, can have address_mode "
			    "\"driver\": use \"alloc\", or move the service into its task");
		check_ports(l, &v[i]);
	}
	l->p->place = up;
}

void
group_services_validate(const struct task_group *group, struct problems *p)
{
	struct service_check_pass l = { .group = group, .p = p };

	check_services(&l, group->services.v, group->services.n);
	for (size_t i = 0; i < group->tasks.n; i++) {
		l.task = &group->tasks.v[i];
		check_services(&l, l.task->services.v, l.task->services.n);
	}
}

void
services_validate_local(
    const struct task_group *group, const struct service *v, size_t n, struct problems *p)
{
	const struct network_resource *own = group_own_network(group);

	for (size_t i = 0; i < n; i++) {
		if (str_eq(v[i].address_mode, "alloc") && (!own || str_eq(own->mode, "none")))
			model_problem(p,
			    "service \"%.100s\": address_mode \"alloc\" needs a network of the "
			    "allocation's own: set the mode of the group's network to \"bridge\" "
			    "or "
			    "\"cni/NAME\"",
			    str(v[i].name));
	}
}

/* Returns the members of a service that only Consul gives an effect, as a list of words; "": none.
 */
static const char *
consul_members(const struct service *s, char *ret, size_t size)
{
	const struct {
		const char *name;
		bool set;
	} members[] = {
		{ "meta", s->meta.n > 0 || s->canary_meta.n > 0 },
		{ "tagged_addresses", s->tagged_addresses.n > 0 },
		{ "enable_tag_override", s->enable_tag_override },
		{ "weights", !json_says_nothing(s->weights) },
		{ "identity", !json_says_nothing(s->identity) },
		{ "kind", *str(s->kind) != '\0' },
	};
	size_t len = 0;

	*ret = '\0';
	for (size_t i = 0; i < ELEMENTSOF(members) && len < size; i++)
		if (members[i].set)
			len += (size_t)snprintf(
			    ret + len, size - len, "%s%s", len ? ", " : "", members[i].name);
	return ret;
}

void
services_warn_local(const struct service *v, size_t n, struct problems *p)
{
	char members[100];

	for (size_t i = 0; i < n; i++) {
		if (*str(v[i].provider) && !str_eq(v[i].provider, SERVICE_PROVIDER_CONSUL))
			continue;
		model_problem(p,
		    "service \"%.100s\": there is no Consul: it is registered in this agent's own "
		    "catalogue, as with provider = \"nomad\"",
		    str(v[i].name));
		if (*consul_members(&v[i], members, sizeof members))
			model_problem(p,
			    "service \"%.100s\": without Consul these have no effect: %s",
			    str(v[i].name), members);
		for (size_t k = 0; k < v[i].checks.n; k++) {
			const char *consul = service_check_consul_only(&v[i].checks.v[k]);

			if (consul)
				model_problem(p,
				    "service \"%.100s\": check \"%.80s\": without Consul these "
				    "have no effect: %s",
				    str(v[i].name), str(v[i].checks.v[k].name), consul);
		}
	}
}
