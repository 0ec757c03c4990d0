/* SPDX-License-Identifier: Apache-2.0 */
/* job_complete.c: fills in Nomad's defaults before a job is stored and shown. Runs in:
 * supervisor, cli. */
#include <errno.h>

#include "common/duration.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"
#include "model/job.h"
#include "model/job_services.h"

#define MINUTE (60 * NS_PER_S)
#define HOUR   (60 * MINUTE)

static bool
is_batch(enum job_kind type)
{
	return type == JOB_BATCH || type == JOB_SYSBATCH;
}

static void
fill(int64_t *member, int64_t value)
{
	if (*member == MODEL_UNSET)
		*member = value;
}

/* Fills the fields that are unset or empty in *to from `from`, which may be NULL. */
static int
merge(const struct type *type, void *to, const void *from)
{
	cleanup_free void *copy = NULL;
	const struct field *f;
	size_t i;

	if (!from)
		return 0;
	copy = malloc(type->size);
	if (!copy || model_copy(type, from, copy) < 0)
		return -ENOMEM;
	for (i = 0; i < type->n; i++) {
		f = &type->fields[i];
		if (field_is_empty(f, to))
			field_swap(f, to, copy);
	}
	model_done(type, copy);
	return 0;
}

/* Makes the block if the job has none, and fills its unset fields from `from`. */
static int
ensure(const struct type *type, void *pointer, const void *from)
{
	void **at = pointer;

	if (!*at)
		*at = model_new(type);
	return *at ? merge(type, *at, from) : -ENOMEM;
}

static int
complete_restart(
    struct restart_policy **policy, const struct restart_policy *group, enum job_kind type)
{
	struct restart_policy *r;

	if (ensure(&restart_policy_type, policy, group) < 0)
		return -ENOMEM;
	r = *policy;
	fill(&r->attempts, is_batch(type) ? 3 : 2);
	fill(&r->interval, is_batch(type) ? 24 * HOUR : 30 * MINUTE);
	fill(&r->delay, 15 * NS_PER_S);
	return 0;
}

/* A policy that sets attempts is limited, although Nomad's default is unlimited. */
static int
complete_reschedule(
    struct reschedule_policy **policy, const struct reschedule_policy *job, enum job_kind type)
{
	bool service = type == JOB_SERVICE, batch = type == JOB_BATCH;
	struct reschedule_policy *r;

	if (ensure(&reschedule_policy_type, policy, job) < 0)
		return -ENOMEM;
	r = *policy;
	if (r->unlimited == OPT_UNSET)
		r->unlimited =
		    service && r->attempts <= 0 ? OPT_TRUE : OPT_FALSE; /* unset is negative */
	fill(&r->attempts, batch ? 1 : 0);
	fill(&r->interval, batch ? 24 * HOUR : 0);
	fill(&r->delay, service ? 30 * NS_PER_S : batch ? 5 * NS_PER_S : 0);
	fill(&r->max_delay, service ? HOUR : 0);
	if (r->delay_function == DELAY_NONE && (service || batch))
		r->delay_function = service ? DELAY_EXPONENTIAL : DELAY_CONSTANT;
	return 0;
}

/* Moves the default identity to its own field if the job has it in the list. */
static int
complete_identities(struct task *task)
{
	size_t i;

	for (i = 0; i < task->identities.n; i++) {
		struct workload_identity *w = &task->identities.v[i];

		if (*str(w->name) && !str_eq(w->name, IDENTITY_DEFAULT))
			continue;
		if (!task->identity) {
			task->identity = workload_identity_new();
			if (!task->identity || workload_identity_copy(w, task->identity) < 0)
				return -ENOMEM;
		}
		list_remove(workload_identity, &task->identities, i--);
	}
	if (task->identity && !*str(task->identity->name))
		return str_set(&task->identity->name, IDENTITY_DEFAULT);
	return 0;
}

static int
complete_task(struct task *task, const struct task_group *group, enum job_kind type)
{
	struct resources *res;
	size_t i;

	if (complete_restart(&task->restart_policy, group->restart_policy, type) < 0 ||
	    ensure(&resources_type, &task->resources, NULL) < 0 ||
	    ensure(&log_config_type, &task->log_config, NULL) < 0 || complete_identities(task) < 0)
		return -ENOMEM;
	res = task->resources;
	if (res->cores != MODEL_UNSET && res->cores > 0)
		fill(&res->cpu, 0);
	for (i = 0; i < task->constraints.n; i++)
		if (!*str(task->constraints.v[i].operand) &&
		    str_set(&task->constraints.v[i].operand, "=") < 0)
			return -ENOMEM;
	return 0;
}

static int
complete_volumes(struct task_group *group)
{
	size_t i;

	for (i = 0; i < group->volumes.n; i++)
		if (!*str(group->volumes.v[i].value.name) &&
		    str_set(&group->volumes.v[i].value.name, group->volumes.v[i].key) < 0)
			return -ENOMEM;
	return 0;
}

/* A group without a count gets the minimum of its scaling policy. */
static void
complete_count(struct task_group *group)
{
	const json_t *min = json_object_get(group->scaling, "Min");

	if (json_is_integer(min) && json_integer_value(min) >= 0)
		fill(&group->count, json_integer_value(min));
}

static int
complete_group(struct task_group *group, const struct job *job)
{
	bool service = job->type == JOB_SERVICE;
	size_t i;
	int r;

	complete_count(group);
	r = complete_restart(&group->restart_policy, NULL, job->type);
	if (r == 0)
		r = complete_reschedule(
		    &group->reschedule_policy, job->reschedule_policy, job->type);
	if (r == 0 && (service || group->update))
		r = ensure(&update_strategy_type, &group->update, job->update);
	if (r == 0 && (service || group->migrate))
		r = ensure(&migrate_strategy_type, &group->migrate, job->migrate);
	if (r == 0)
		r = ensure(&ephemeral_disk_type, &group->ephemeral_disk, NULL);
	if (r == 0)
		r = complete_volumes(group);
	if (r == 0)
		r = group_services_complete(group, job);
	for (i = 0; i < group->tasks.n && r == 0; i++)
		r = complete_task(&group->tasks.v[i], group, job->type);
	return r;
}

int
job_complete(struct job *job)
{
	size_t i;
	int r = 0;

	if (job->type == JOB_TYPE_NONE)
		job->type = JOB_SERVICE;
	if (!*str(job->name))
		r = str_set(&job->name, job->id);
	if (r == 0 && job->datacenters.n == 0)
		r = strings_add(&job->datacenters, "*");
	if (r == 0 && job->type == JOB_SERVICE)
		r = ensure(&update_strategy_type, &job->update, NULL);
	for (i = 0; i < job->task_groups.n && r == 0; i++)
		r = complete_group(&job->task_groups.v[i], job);
	return r < 0 ? r : model_defaults(&job_type, job);
}
