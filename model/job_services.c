/* SPDX-License-Identifier: Apache-2.0 */
/* job_services.c: completes and validates the services of a job. Runs in: supervisor, cli. */
#include "model/job_services.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/table.h"

/* --- completing --- */

/* Replaces every `what` in *s. */
static int
replace(char **s, const char *what, const char *by)
{
	struct text t = { 0 };
	const char *from = str(*s), *at;
	int r;

	if (!strstr(from, what))
		return 0;
	while ((at = strstr(from, what))) {
		text_append(&t, from, (size_t)(at - from));
		text_append(&t, by, strlen(by));
		from = at + strlen(what);
	}
	text_append(&t, from, strlen(from));
	r = t.failed ? -ENOMEM : str_set(s, t.text);
	text_done(&t);
	return r;
}

/* The only references that are known when a job is registered. task: "group" for a group's. */
static int
complete_name(struct service *s, const struct job *job, const char *group, const char *task)
{
	char base[400];
	int r = 0;

	(void)snprintf(base, sizeof base, "%s-%s-%s", str(job->name), group, task);
	if (!*str(s->name))
		return str_set(&s->name, base);
	const char *const pairs[][2] = { { "${JOB}", str(job->name) }, { "${TASKGROUP}", group },
		{ "${TASK}", task }, { "${BASE}", base } };
	for (size_t i = 0; i < ELEMENTSOF(pairs) && r == 0; i++)
		r = replace(&s->name, pairs[i][0], pairs[i][1]);
	return r;
}

static int
set_default(char **s, const char *value)
{
	return *str(*s) ? 0 : str_set(s, value);
}

/* The service's block is what a check's own does not say. */
static int
complete_check_restart(struct service_check *c, const struct check_restart *of_service)
{
	if (of_service && !c->check_restart) {
		c->check_restart = check_restart_new();
		return c->check_restart ? check_restart_copy(of_service, c->check_restart)
					: -ENOMEM;
	}
	if (of_service && c->check_restart->limit == 0)
		c->check_restart->limit = of_service->limit;
	if (of_service && c->check_restart->grace == MODEL_UNSET)
		c->check_restart->grace = of_service->grace;
	return 0;
}

static int
complete_service(struct service *s, const struct job *job, const char *group, const char *task)
{
	int r = complete_name(s, job, group, task);

	if (r == 0 && (r = set_default(&s->provider, "consul")) == 0 &&
	    (r = set_default(&s->address_mode, "auto")) == 0)
		r = set_default(&s->on_update, "require_healthy");
	for (size_t i = 0; i < s->checks.n && r == 0; i++) {
		struct service_check *c = &s->checks.v[i];

		if (!*str(c->name))
			r = str_setf(&c->name, "service: \"%s\" check", str(s->name));
		if (r == 0)
			r = set_default(&c->on_update, s->on_update);
		if (r == 0)
			r = complete_check_restart(c, s->check_restart);
	}
	return r;
}

int
group_services_complete(struct task_group *group, const struct job *job)
{
	int r = 0;

	for (size_t i = 0; i < group->services.n && r == 0; i++)
		r = complete_service(&group->services.v[i], job, str(group->name), "group");
	for (size_t k = 0; k < group->tasks.n && r == 0; k++) {
		struct task *task = &group->tasks.v[k];

		for (size_t i = 0; i < task->services.n && r == 0; i++)
			r = complete_service(
			    &task->services.v[i], job, str(group->name), str(task->name));
	}
	return r;
}

/* --- validating --- */

struct look {
	const struct task_group *group;
	const struct task *task; /* NULL: a group's services */
	const char *provider;    /* of the first one */
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

/* One with a reference is found when its alloc starts. */
static bool
port_is_known(const struct look *l, const char *label)
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
look_at_ports(const struct look *l, const struct service *s)
{
	if (*str(s->port_label) && !port_is_known(l, s->port_label))
		(void)model_problem(l->p,
		    "port \"%.80s\" is neither a number nor a label of the group's network",
		    s->port_label);
	for (size_t i = 0; i < s->checks.n; i++) {
		const struct service_check *c = &s->checks.v[i];

		if (!*str(c->port_label) && !*str(s->port_label))
			(void)model_problem(
			    l->p, "check \"%.80s\" has no port, nor has the service", str(c->name));
		else if (*str(c->port_label) && !port_is_known(l, c->port_label))
			(void)model_problem(l->p,
			    "check \"%.80s\": port \"%.80s\" is neither a number nor a label of "
			    "the "
			    "group's network",
			    str(c->name), c->port_label);
	}
}

static void
look_at_services(struct look *l, const struct service *v, size_t n)
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
			(void)model_problem(
			    l->p, "all services of a group must have the same provider");
		for (size_t k = 0; k < i; k++)
			if (str_eq(v[k].name, v[i].name) &&
			    str_eq(v[k].port_label, v[i].port_label))
				(void)model_problem(
				    l->p, "there are two of this name with the same port");
		if (str_eq(v[i].provider, SERVICE_PROVIDER_NOMAD))
			look_at_ports(l, &v[i]);
	}
	l->p->place = up;
}

void
group_services_validate(const struct task_group *group, struct problems *p)
{
	struct look l = { .group = group, .p = p };

	look_at_services(&l, group->services.v, group->services.n);
	for (size_t i = 0; i < group->tasks.n; i++) {
		l.task = &group->tasks.v[i];
		look_at_services(&l, l.task->services.v, l.task->services.n);
	}
}

void
services_validate_local(const struct service *v, size_t n, struct problems *p)
{
	for (size_t i = 0; i < n; i++) {
		if (!str_eq(v[i].provider, SERVICE_PROVIDER_NOMAD))
			(void)model_problem(p,
			    "service \"%.100s\": provider \"consul\" is not there: use provider = "
			    "\"nomad\"",
			    str(v[i].name));
		else if (str_eq(v[i].address_mode, "alloc") || str_eq(v[i].address_mode, "driver"))
			(void)model_problem(p,
			    "service \"%.100s\": address_mode \"%s\" needs a network of the "
			    "allocation's own, which is not supported yet",
			    str(v[i].name), v[i].address_mode);
	}
}
