/* SPDX-License-Identifier: Apache-2.0 */
/* job_services.c: fills in defaults of a job's services. Runs in: supervisor, cli. */
#include "model/job_services.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/engine/table.h"

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

/* Replaces the references that are known when a job is registered. task: "group" for a service of
 * the group. */
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

/* Fields that a check's own block does not set come from the service's block. */
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
