// SPDX-License-Identifier: Apache-2.0
/* service_text.c: the services of an alloc, with ${…} replaced in them. Runs in: supervisor. */
#include "supervisor/service/service_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/service/task_env.h"
#include "supervisor/driver/driver.h"

static int
expand(struct task_env *env, char **s)
{
	char *made = NULL;
	int r;

	if (!strstr(str(*s), "${"))
		return 0;
	r = task_env_expand(env, *s, false, &made, NULL);
	if (r < 0)
		return r;
	free(*s);
	*s = made;
	return 0;
}

static int
expand_strings(struct task_env *env, struct strings *l)
{
	int r = 0;

	for (size_t i = 0; i < l->n && r == 0; i++)
		r = expand(env, &l->v[i]);
	return r;
}

static int
expand_map(struct task_env *env, struct string_map *m)
{
	int r = 0;

	for (size_t i = 0; i < m->n && r == 0; i++)
		r = expand(env, &m->v[i].value);
	return r;
}

static int
expand_check(struct task_env *env, struct service_check *c)
{
	char **const members[] = { &c->name, &c->path, &c->protocol, &c->method, &c->body,
		&c->port_label, &c->address_mode, &c->tls_server_name };
	int r = 0;

	for (size_t i = 0; i < ELEMENTSOF(members) && r == 0; i++)
		r = expand(env, members[i]);
	for (size_t i = 0; i < c->header.n && r == 0; i++) {
		r = expand(env, &c->header.v[i].key);
		if (r == 0)
			r = expand_strings(env, &c->header.v[i].value.values);
	}
	return r;
}

static int
expand_service(struct task_env *env, struct service *s)
{
	char **const members[] = { &s->name, &s->port_label, &s->address, &s->address_mode };
	int r = 0;

	for (size_t i = 0; i < ELEMENTSOF(members) && r == 0; i++)
		r = expand(env, members[i]);
	if (r == 0 && (r = expand_strings(env, &s->tags)) == 0 &&
	    (r = expand_strings(env, &s->canary_tags)) == 0 && (r = expand_map(env, &s->meta)) == 0)
		r = expand_map(env, &s->canary_meta);
	for (size_t i = 0; i < s->checks.n && r == 0; i++)
		r = expand_check(env, &s->checks.v[i]);
	return r;
}

static int
add_service(struct task_env *env, const struct service *from, struct service_list *l, struct err *e)
{
	struct service *s;
	int r;

	s = list_add(service, &l->services);
	service_copy(from, s);
	r = expand_service(env, s);
	if (r < 0)
		return err_set(e, r, "read service %s", str(from->name));
	if (!service_name_is_valid(str(s->name)))
		return err_say(e, -EINVAL,
		    "service \"%.100s\": a service's name has 1 to 63 letters, digits and dashes, "
		    "and no dash at either end",
		    str(s->name));
	return 0;
}

int
service_list_make(struct sup *sup, const struct sup_alloc *sa, const struct task *task,
    struct service_list *ret, struct err *e)
{
	const struct service *v = task ? task->services.v : sa->group->services.v;
	size_t n = task ? task->services.n : sa->group->services.n;
	const struct driver_ops *driver;
	struct task_env env;
	int r = 0;

	*ret = (struct service_list){ 0 };
	if (n == 0)
		return 0;
	driver = task ? driver_find(str(task->driver)) : NULL;
	r = task_env_make(sup, sa, task, driver && driver->isolates_files, &env);
	if (r < 0)
		return err_set(e, r, "read the services of %s", str(sa->a.name));
	for (size_t i = 0; i < n && r == 0; i++)
		r = add_service(&env, &v[i], ret, e);
	task_env_done(&env);
	if (r < 0)
		service_list_done(ret);
	return r;
}

void
service_list_done(struct service_list *l)
{
	for (size_t i = 0; i < l->services.n; i++)
		service_done(&l->services.v[i]);
	free(l->services.v);
	*l = (struct service_list){ 0 };
}

void
service_workload(const struct sup_alloc *sa, const struct task *task, char ret[WORKLOAD_SIZE])
{
	(void)snprintf(ret, WORKLOAD_SIZE, "%s%s", task ? "" : "group-",
	    task ? str(task->name) : str(sa->a.task_group));
}
