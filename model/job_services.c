/* SPDX-License-Identifier: Apache-2.0 */
/* job_services.c: fills in defaults of a job's services. Runs in: supervisor, cli. */
#include "model/job_services.h"

#include <stdio.h>
#include <string.h>

#include "model/engine/table.h"

/* Replaces every `what` in *s. */
static void
replace_all(char **s, const char *what, const char *by)
{
	struct text t = { 0 };
	const char *from = str(*s), *at;

	if (!strstr(from, what))
		return;
	while ((at = strstr(from, what))) {
		text_append(&t, from, (size_t)(at - from));
		text_append(&t, by, strlen(by));
		from = at + strlen(what);
	}
	text_append(&t, from, strlen(from));
	str_set(s, t.text);
	text_done(&t);
}

/* Replaces the references that are known when a job is registered. task: "group" for a service of
 * the group. */
static void
complete_name(struct service *s, const struct job *job, const char *group, const char *task)
{
	char base[400];

	(void)snprintf(base, sizeof base, "%s-%s-%s", str(job->name), group, task);
	if (!*str(s->name)) {
		str_set(&s->name, base);
		return;
	}
	replace_all(&s->name, "${JOB}", str(job->name));
	replace_all(&s->name, "${TASKGROUP}", group);
	replace_all(&s->name, "${TASK}", task);
	replace_all(&s->name, "${BASE}", base);
}

static void
set_default(char **s, const char *value)
{
	if (!*str(*s))
		str_set(s, value);
}

/* Fields that a check's own block does not set come from the service's block. */
static void
complete_check_restart(struct service_check *c, const struct check_restart *of_service)
{
	if (!of_service)
		return;
	if (!c->check_restart) {
		c->check_restart = check_restart_new();
		(void)check_restart_copy(of_service, c->check_restart);
		return;
	}
	if (c->check_restart->limit == 0)
		c->check_restart->limit = of_service->limit;
	if (c->check_restart->grace == MODEL_UNSET)
		c->check_restart->grace = of_service->grace;
}

static void
complete_service(struct service *s, const struct job *job, const char *group, const char *task)
{
	complete_name(s, job, group, task);
	set_default(&s->provider, SERVICE_PROVIDER_CONSUL);
	set_default(&s->address_mode, "auto");
	set_default(&s->on_update, "require_healthy");
	for (size_t i = 0; i < s->checks.n; i++) {
		struct service_check *c = &s->checks.v[i];

		if (!*str(c->name))
			str_setf(&c->name, "service: \"%s\" check", str(s->name));
		set_default(&c->on_update, s->on_update);
		complete_check_restart(c, s->check_restart);
	}
}

void
group_services_complete(struct task_group *group, const struct job *job)
{
	for (size_t i = 0; i < group->services.n; i++)
		complete_service(&group->services.v[i], job, str(group->name), "group");
	for (size_t k = 0; k < group->tasks.n; k++) {
		struct task *task = &group->tasks.v[k];

		for (size_t i = 0; i < task->services.n; i++)
			complete_service(
			    &task->services.v[i], job, str(group->name), str(task->name));
	}
}
