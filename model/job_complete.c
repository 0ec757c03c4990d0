/* SPDX-License-Identifier: Apache-2.0 */
/* job_complete.c: fills in Nomad's defaults before a job is stored and shown. Runs in:
 * supervisor, cli. */
#include "common/duration.h"
#include "common/mem.h"
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
fill_unset(int64_t *member, int64_t value)
{
	if (*member == MODEL_UNSET)
		*member = value;
}

/* Fills the fields that are unset or empty in *to from `from`, which may be NULL. */
static void
fill_empty(const struct type *type, void *to, const void *from)
{
	cleanup_free void *copy = NULL;
	const struct field *f;
	size_t i;

	if (!from)
		return;
	copy = mem_alloc(type->size);
	model_copy(type, from, copy);
	for (i = 0; i < type->n; i++) {
		f = &type->fields[i];
		if (field_is_empty(f, to))
			field_swap(f, to, copy);
	}
	model_done(type, copy);
}

/* Makes the block if the job has none, and fills its unset fields from `from`. */
static void
ensure_block(const struct type *type, void *pointer, const void *from)
{
	void **at = pointer;

	if (!*at)
		*at = model_new(type);
	fill_empty(type, *at, from);
}

static void
complete_restart(
    struct restart_policy **policy, const struct restart_policy *group, enum job_kind type)
{
	struct restart_policy *r;

	ensure_block(&restart_policy_type, policy, group);
	r = *policy;
	fill_unset(&r->attempts, is_batch(type) ? 3 : 2);
	fill_unset(&r->interval, is_batch(type) ? 24 * HOUR : 30 * MINUTE);
	fill_unset(&r->delay, 15 * NS_PER_S);
}

/* A policy that sets attempts is limited, although Nomad's default is unlimited. */
static void
complete_reschedule(
    struct reschedule_policy **policy, const struct reschedule_policy *job, enum job_kind type)
{
	bool service = type == JOB_SERVICE, batch = type == JOB_BATCH;
	struct reschedule_policy *r;

	ensure_block(&reschedule_policy_type, policy, job);
	r = *policy;
	if (r->unlimited == OPT_UNSET)
		r->unlimited =
		    service && r->attempts <= 0 ? OPT_TRUE : OPT_FALSE; /* unset is negative */
	fill_unset(&r->attempts, batch ? 1 : 0);
	fill_unset(&r->interval, batch ? 24 * HOUR : 0);
	fill_unset(&r->delay, service ? 30 * NS_PER_S : batch ? 5 * NS_PER_S : 0);
	fill_unset(&r->max_delay, service ? HOUR : 0);
	if (r->delay_function == DELAY_NONE && (service || batch))
		r->delay_function = service ? DELAY_EXPONENTIAL : DELAY_CONSTANT;
}

/* Moves the default identity to its own field if the job has it in the list. */
static void
complete_identities(struct task *task)
{
	size_t i;

	for (i = 0; i < task->identities.n; i++) {
		struct workload_identity *w = &task->identities.v[i];

		if (*str(w->name) && !str_eq(w->name, IDENTITY_DEFAULT))
			continue;
		if (!task->identity) {
			task->identity = workload_identity_new();
			(void)workload_identity_copy(w, task->identity);
		}
		list_remove(workload_identity, &task->identities, i--);
	}
	if (task->identity && !*str(task->identity->name))
		str_set(&task->identity->name, IDENTITY_DEFAULT);
}

/* Affinities and spreads without a weight have this one. */
static void
complete_weights(json_t *list)
{
	json_t *one;
	size_t i;

	json_array_foreach (list, i, one)
		if (json_is_object(one) && !json_is_integer(json_object_get(one, "Weight")))
			json_object_set_new(one, "Weight", json_integer(50));
}

static void
complete_task(struct task *task, const struct task_group *group, enum job_kind type)
{
	struct resources *res;
	size_t i;

	complete_restart(&task->restart_policy, group->restart_policy, type);
	ensure_block(&resources_type, &task->resources, NULL);
	ensure_block(&log_config_type, &task->log_config, NULL);
	complete_identities(task);
	for (i = 0; i < task->templates.n; i++)
		task_template_complete(&task->templates.v[i]);
	res = task->resources;
	if (res->cores != MODEL_UNSET && res->cores > 0)
		fill_unset(&res->cpu, 0);
	complete_weights(task->affinities);
	for (i = 0; i < res->devices.n; i++)
		complete_weights(res->devices.v[i].affinities);
	for (i = 0; i < task->constraints.n; i++)
		if (!*str(task->constraints.v[i].operand))
			str_set(&task->constraints.v[i].operand, "=");
}

static void
complete_volumes(struct task_group *group)
{
	size_t i;

	for (i = 0; i < group->volumes.n; i++)
		if (!*str(group->volumes.v[i].value.name))
			str_set(&group->volumes.v[i].value.name, group->volumes.v[i].key);
}

/* A group without a count gets the minimum of its scaling policy. */
static void
complete_count(struct task_group *group)
{
	const json_t *min = json_object_get(group->scaling, "Min");

	if (json_is_integer(min) && json_integer_value(min) >= 0)
		fill_unset(&group->count, json_integer_value(min));
}

static void
complete_group(struct task_group *group, const struct job *job)
{
	bool service = job->type == JOB_SERVICE;
	size_t i;

	complete_count(group);
	complete_weights(group->affinities);
	complete_weights(group->spreads);
	complete_restart(&group->restart_policy, NULL, job->type);
	complete_reschedule(&group->reschedule_policy, job->reschedule_policy, job->type);
	if (service || group->update)
		ensure_block(&update_strategy_type, &group->update, job->update);
	if (service || group->migrate)
		ensure_block(&migrate_strategy_type, &group->migrate, job->migrate);
	ensure_block(&ephemeral_disk_type, &group->ephemeral_disk, NULL);
	complete_volumes(group);
	group_services_complete(group, job);
	for (i = 0; i < group->tasks.n; i++)
		complete_task(&group->tasks.v[i], group, job->type);
}

void
job_complete(struct job *job)
{
	size_t i;

	if (job->type == JOB_TYPE_NONE)
		job->type = JOB_SERVICE;
	if (!*str(job->name))
		str_set(&job->name, job->id);
	if (job->datacenters.n == 0)
		strings_add(&job->datacenters, "*");
	if (job->type == JOB_SERVICE)
		ensure_block(&update_strategy_type, &job->update, NULL);
	complete_weights(job->affinities);
	complete_weights(job->spreads);
	for (i = 0; i < job->task_groups.n; i++)
		complete_group(&job->task_groups.v[i], job);
	model_defaults(&job_type, job);
}
