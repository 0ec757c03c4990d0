/* SPDX-License-Identifier: Apache-2.0 */
/* job_validate.c: finds faults of a job, and what the embedded server does not support. Runs in:
 * supervisor. */
#include "supervisor/server/job/job_validate.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/duration.h"
#include "common/id.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"
#include "model/payload.h"
#include "supervisor/alloc/loss_policy.h"
#include "supervisor/server/job/job_children.h"

#define JOB_ID_MAX 255
#define UPDATE_DEADLINE_MAX                                                                        \
	(100LL * 365 * 86400 * NS_PER_S) /* its end still fits into a time in ns */
#define PRIORITY_MAX 32767
#define PORT_MAX     65535
#define DISK_MIN_MB  10
#define CONTEXT_SIZE 160
/* Of one job: more than a node can run, but few enough to be stored as unplaced slots. */
#define LOCAL_ALLOCS_MAX  10000
#define LOCAL_LOGS_MAX    1000 /* the limit of exec-helper */
#define LOCAL_VOLUMES_MAX 64   /* each has a bit in struct local_alloc */

/* Sentences from here on start with `kind "name": `. The caller restores p->place from here->up. */
static void
enter(struct problems *p, struct place *here, char context[CONTEXT_SIZE], const char *kind,
    const char *name)
{
	(void)snprintf(context, CONTEXT_SIZE, "%s \"%s\"", kind, str(name));
	*here = (struct place){ .up = p->place, .name = context };
	p->place = here;
}

/* A job's id is part of URLs: it may contain slashes, but no space, no control character, and no
 * empty,
 * "." or ".." part. */
static bool
is_job_id(const char *id)
{
	const char *part = id;
	size_t i, len = strlen(id);

	if (len == 0 || len > JOB_ID_MAX)
		return false;
	for (i = 0; i <= len; i++) {
		if (id[i] && (isspace((unsigned char)id[i]) || iscntrl((unsigned char)id[i])))
			return false;
		if (id[i] && id[i] != '/')
			continue;
		if (!strncmp(part, "..", (size_t)(id + i - part)) && id + i - part <= 2)
			return false; /* "", "." and ".." */
		part = id + i + 1;
	}
	return true;
}

static void
validate_meta(const struct string_map *meta, struct problems *p)
{
	const char *policy = string_map_get(meta, LOSS_POLICY_KEY);

	if (policy && loss_policy_signal(policy) < 0)
		model_problem(p,
		    "meta: " LOSS_POLICY_KEY " must be " LOSS_POLICY_VALUES ", not \"%.128s\"",
		    policy);
}

static void
validate_head(const struct job *job, struct problems *p)
{
	size_t i;

	if (!is_job_id(str(job->id)))
		model_problem(p,
		    "a job's id must have 1 to %d characters, no space, and no empty, \".\" or "
		    "\"..\" part",
		    JOB_ID_MAX);
	if (job->priority < 1 || job->priority > PRIORITY_MAX)
		model_problem(p, "priority must be between 1 and %d, not %lld", PRIORITY_MAX,
		    (long long)job->priority);
	for (i = 0; i < job->datacenters.n; i++)
		if (!*str(job->datacenters.v[i]))
			model_problem(p, "a datacenter's name is empty");
	if (job->task_groups.n == 0)
		model_problem(p, "the job has no group");
	validate_meta(&job->meta, p);
	job_parent_validate(job, p);
}

static void
validate_volumes(const struct task_group *group, const struct job *job, struct problems *p)
{
	char context[CONTEXT_SIZE];
	struct place here;
	size_t i;

	for (i = 0; i < group->volumes.n; i++) {
		enter(p, &here, context, "volume", group->volumes.v[i].key);
		volume_request_validate(&group->volumes.v[i].value, group, job, p);
		p->place = here.up;
	}
}

static void
validate_task_in_group(const struct task *task, const struct task_group *group, struct problems *p)
{
	struct err e = { 0 };
	size_t i;

	for (i = 0; i < task->volume_mounts.n; i++)
		if (!map_get(volume_request, &group->volumes, task->volume_mounts.v[i].volume))
			model_problem(p,
			    "volume_mount \"%s\": the group has no volume of this name",
			    str(task->volume_mounts.v[i].volume));
	if (task->log_config && group->ephemeral_disk && task->log_config->disabled != OPT_TRUE &&
	    task->log_config->max_file_size_mb > 0 &&
	    task->log_config->max_files >
		group->ephemeral_disk->size_mb / task->log_config->max_file_size_mb)
		model_problem(p,
		    "logs: %lld files of %lld MB do not fit the group's ephemeral_disk of %lld MB",
		    (long long)task->log_config->max_files,
		    (long long)task->log_config->max_file_size_mb,
		    (long long)group->ephemeral_disk->size_mb);
	if (task->dispatch_payload && *str(task->dispatch_payload->file) &&
	    payload_file_check(task->dispatch_payload->file, &e) < 0)
		model_problem(p, "%s", e.msg);
	validate_meta(&task->meta, p);
	if (task->lifecycle && task->leader)
		model_problem(p, "a task with a lifecycle block cannot be the leader");
}

static void
validate_tasks(const struct task_group *group, struct problems *p)
{
	char context[CONTEXT_SIZE];
	struct place here;
	size_t i, leaders = 0, main_tasks = 0;

	for (i = 0; i < group->tasks.n; i++) {
		const struct task *task = &group->tasks.v[i];

		leaders += task->leader;
		main_tasks += !task->lifecycle;
		enter(p, &here, context, "task", task->name);
		if (group_task(group, task->name) != task)
			model_problem(p, "the group has two tasks of this name");
		validate_task_in_group(task, group, p);
		p->place = here.up;
	}
	if (group->tasks.n == 0)
		model_problem(p, "it has no task");
	else if (main_tasks == 0)
		model_problem(p, "it has no main task: every task has a lifecycle block");
	if (leaders > 1)
		model_problem(p, "only one task may be the leader");
}

static void
validate_lease(const struct task_group *group, struct problems *p)
{
	int64_t old = group->stop_after_client_disconnect;
	int64_t new = group->disconnect ? group->disconnect->stop_on_client_after : MODEL_UNSET;

	if ((old < 0 && old != MODEL_UNSET) || (new < 0 && new != MODEL_UNSET))
		model_problem(p, "stop_after_client_disconnect may not be below zero");
	else if (old > 0 && new > 0 && old != new)
		model_problem(p,
		    "stop_after_client_disconnect and disconnect.stop_on_client_after differ: "
		    "give one of them");
}

/* A group's name is no path component, but it is printed. */
static bool
has_control(const char *s)
{
	while (*s && !iscntrl((unsigned char)*s))
		s++;
	return *s;
}

static void
validate_group(const struct task_group *group, const struct job *job, struct problems *p)
{
	bool everywhere = job->type == JOB_SYSTEM || job->type == JOB_SYSBATCH;

	if (!*str(group->name) || strlen(group->name) > NAME_BYTES_MAX || has_control(group->name))
		model_problem(p,
		    "a group's name must have 1 to %d characters and no control character",
		    NAME_BYTES_MAX);
	else if (job_group(job, group->name) != group)
		model_problem(p, "the job has two groups of this name");
	if (group->count < 0)
		model_problem(p, "count may not be below zero");
	if (everywhere && group->count > 1)
		model_problem(p, "count may not be above 1 in a %s job", job_kind_names[job->type]);
	if (group->shutdown_delay < 0 && group->shutdown_delay != MODEL_UNSET)
		model_problem(p, "shutdown_delay may not be below zero");
	if (group->ephemeral_disk && group->ephemeral_disk->size_mb < DISK_MIN_MB)
		model_problem(p, "ephemeral_disk: size must be at least %d MB", DISK_MIN_MB);
	if (group->max_run_duration < 0 && group->max_run_duration != MODEL_UNSET)
		model_problem(p, "max_run_duration may not be below zero");
	if (group->max_run_duration > 0 && job->type != JOB_BATCH && job->type != JOB_SYSBATCH)
		model_problem(p, "max_run_duration is for batch and sysbatch jobs");
	validate_meta(&group->meta, p);
	validate_lease(group, p);
	validate_volumes(group, job, p);
	validate_tasks(group, p);
	group_services_validate(group, p);
}

void
job_validate(const struct job *job, struct problems *p)
{
	char context[CONTEXT_SIZE];
	struct place here;
	size_t i;

	validate_head(job, p);
	for (i = 0; i < job->task_groups.n; i++) {
		enter(p, &here, context, "group", job->task_groups.v[i].name);
		validate_group(&job->task_groups.v[i], job, p);
		p->place = here.up;
	}
	model_validate(&job_type, job, p);
}

struct block {
	const char *name;
	size_t offset; /* of a json_t * */
};

static const struct block job_blocks[] = {
	{ "multiregion", offsetof(struct job, multiregion) },
};

static const struct block group_blocks[] = {
	{ "consul", offsetof(struct task_group, consul) },
};

static const struct block task_blocks[] = {
	{ "vault", offsetof(struct task, vault) },
	{ "consul", offsetof(struct task, consul) },
	{ "schedule", offsetof(struct task, schedule) },
	{ "secret", offsetof(struct task, secrets) },
};

static void
refuse_block(struct problems *p, const char *name)
{
	model_problem(p, "drover does not support %s: remove it", name);
}

static void
refuse_blocks(const void *obj, const struct block *blocks, size_t n, struct problems *p)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!json_says_nothing(*(json_t *const *)((const char *)obj + blocks[i].offset)))
			refuse_block(p, blocks[i].name);
}

static void
validate_local_network(const struct network_resource *n, bool own, struct problems *p)
{
	struct err e = { 0 };

	if (network_check(n, own, &e) < 0)
		model_problem(p, "%s", e.msg);
}

static void
validate_local_port(const struct port *port, bool dynamic, struct problems *p)
{
	if (!*str(port->label) || has_control(port->label))
		model_problem(p, "network: a port's label is missing");
	if (!dynamic && (port->value < 1 || port->value > PORT_MAX))
		model_problem(p, "network: port \"%.80s\": %lld is not a port number",
		    str(port->label), (long long)port->value);
}

static void
validate_local_ports(const struct network_resource *n, struct problems *p)
{
	for (size_t i = 0; i < n->dynamic_ports.n; i++)
		validate_local_port(&n->dynamic_ports.v[i], true, p);
	for (size_t i = 0; i < n->reserved_ports.n; i++) {
		validate_local_port(&n->reserved_ports.v[i], false, p);
		for (size_t k = 0; k < i; k++)
			if (n->reserved_ports.v[k].value == n->reserved_ports.v[i].value &&
			    str_eq(n->reserved_ports.v[k].host_network,
				n->reserved_ports.v[i].host_network) &&
			    !n->reserved_ports.v[i].ignore_collision)
				model_problem(p,
				    "network: ports \"%.80s\" and \"%.80s\" are the same",
				    str(n->reserved_ports.v[k].label),
				    str(n->reserved_ports.v[i].label));
	}
}

static void
validate_local_task(const struct task_group *group, const struct task *task, struct problems *p)
{
	size_t i;

	refuse_blocks(task, task_blocks, ELEMENTSOF(task_blocks), p);
	services_validate_local(group, task->services.v, task->services.n, p);
	if (*str(task->kind))
		refuse_block(p, "kind");
	if (task->log_config && task->log_config->max_files > LOCAL_LOGS_MAX)
		model_problem(p, "logs: max_files may not be above %d", LOCAL_LOGS_MAX);
	for (i = 0; i < task->volume_mounts.n; i++)
		volume_mount_validate_local(&task->volume_mounts.v[i], p);
	if (!task->resources)
		return;
	for (i = 0; i < task->resources->networks.n; i++) {
		const struct network_resource *n = &task->resources->networks.v[i];

		validate_local_network(n, false, p);
		validate_local_ports(n, p);
	}
	if (task->resources->devices.n)
		refuse_block(p, "device");
	if (!json_says_nothing(task->resources->numa))
		refuse_block(p, "numa");
}

static void
validate_local_update(const struct update_strategy *u, struct problems *p)
{
	if (u->max_parallel < 0 || u->canary < 0)
		model_problem(p, "update: max_parallel and canary may not be below zero");
	if (u->max_parallel <= 0)
		return; /* the block is ignored: all are replaced at once */
	if (!str_eq(u->health_check, "checks") && !str_eq(u->health_check, "task_states") &&
	    !str_eq(u->health_check, "manual"))
		model_problem(p,
		    "update: health_check must be checks, task_states or manual, not \"%.40s\"",
		    str(u->health_check));
	if (u->min_healthy_time < 0 || u->progress_deadline < 0)
		model_problem(
		    p, "update: min_healthy_time and progress_deadline may not be below zero");
	if (u->progress_deadline > UPDATE_DEADLINE_MAX)
		model_problem(p, "update: progress_deadline may not be above 100 years");
	if (u->min_healthy_time >= u->healthy_deadline)
		model_problem(p, "update: min_healthy_time must be less than healthy_deadline");
	if (u->progress_deadline > 0 && u->healthy_deadline >= u->progress_deadline)
		model_problem(p, "update: healthy_deadline must be less than progress_deadline");
	if (u->auto_promote == OPT_TRUE && u->canary == 0)
		model_problem(p, "update: auto_promote needs a canary count above zero");
}

/* A label of two ports would name only one of them. */
static void
validate_labels(const struct task_group *group, struct problems *p)
{
	struct strings seen = { 0 };

	for (size_t i = 0; i < group->networks.n; i++) {
		const struct network_resource *n = &group->networks.v[i];

		for (size_t k = 0; k < n->reserved_ports.n + n->dynamic_ports.n; k++) {
			const char *label = str(network_port(n, k)->label);

			if (strings_has(&seen, label))
				model_problem(
				    p, "network: two ports have the label \"%.80s\"", label);
			strings_add(&seen, label);
		}
	}
	strings_done(&seen);
}

static void
validate_local_group(const struct task_group *group, struct problems *p)
{
	char context[CONTEXT_SIZE];
	struct place here;
	size_t i;

	refuse_blocks(group, group_blocks, ELEMENTSOF(group_blocks), p);
	services_validate_local(group, group->services.v, group->services.n, p);
	if (group->prevent_reschedule_on_lost == OPT_TRUE)
		refuse_block(p, "prevent_reschedule_on_lost");
	if (group->update)
		validate_local_update(group->update, p);
	validate_labels(group, p);
	if (group->networks.n > 1 && group_own_network(group))
		model_problem(p, "a group whose network is not the host's can have no other");
	for (i = 0; i < group->networks.n; i++) {
		validate_local_network(&group->networks.v[i], true, p);
		validate_local_ports(&group->networks.v[i], p);
	}
	if (group->volumes.n > LOCAL_VOLUMES_MAX)
		model_problem(p, "a group can have at most %d volumes", LOCAL_VOLUMES_MAX);
	for (i = 0; i < group->volumes.n; i++)
		if (group->volumes.v[i].value.sticky)
			refuse_block(p, "volume with sticky");
	for (i = 0; i < group->tasks.n; i++) {
		enter(p, &here, context, "task", group->tasks.v[i].name);
		validate_local_task(group, &group->tasks.v[i], p);
		p->place = here.up;
	}
}

/* Each alloc takes a struct and a row, and all are made in one turn: an unlimited count would
 * exhaust the supervisor's memory. */
static void
validate_local_counts(const struct job *job, struct problems *p)
{
	int64_t left = LOCAL_ALLOCS_MAX;
	size_t i;

	for (i = 0; i < job->task_groups.n && left >= 0; i++) {
		int64_t count = job->task_groups.v[i].count;

		if (count > 0)
			left = count > left ? -1 : left - count;
	}
	if (left < 0)
		model_problem(
		    p, "the counts of all groups together may not be above %d", LOCAL_ALLOCS_MAX);
}

void
job_validate_local(const struct job *job, struct problems *p)
{
	char context[CONTEXT_SIZE];
	struct place here;
	size_t i;

	refuse_blocks(job, job_blocks, ELEMENTSOF(job_blocks), p);
	validate_local_counts(job, p);
	for (i = 0; i < job->task_groups.n; i++) {
		enter(p, &here, context, "group", job->task_groups.v[i].name);
		validate_local_group(&job->task_groups.v[i], p);
		p->place = here.up;
	}
}

/* The default stands in each job that a server or a parser has completed. */
static bool
is_default_migrate(const struct migrate_strategy *m)
{
	return m->max_parallel == 1 && str_eq(m->health_check, "checks") &&
	       m->min_healthy_time == 10 * NS_PER_S && m->healthy_deadline == 300 * NS_PER_S;
}

static void
warn_group(const struct task_group *group, struct problems *p)
{
	const struct disconnect_strategy *d = group->disconnect;

	if (group->migrate && !is_default_migrate(group->migrate))
		model_problem(p, "migrate has no effect: there is only one node");
	if (group->max_client_disconnect > 0 || (d && d->lost_after > 0))
		model_problem(p, "max_client_disconnect has no effect: the embedded server runs on "
				 "the node itself");
	if (!json_says_nothing(group->scaling))
		model_problem(p, "scaling has no effect yet: only count is used");
	volumes_warn_local(group, p);
	services_warn_local(group->services.v, group->services.n, p);
	for (size_t i = 0; i < group->tasks.n; i++) {
		const struct task *task = &group->tasks.v[i];
		char context[CONTEXT_SIZE];
		struct place here;

		enter(p, &here, context, "task", task->name);
		if (!json_says_nothing(task->scaling_policies))
			model_problem(p, "scaling has no effect yet: only resources are used");
		services_warn_local(task->services.v, task->services.n, p);
		task_templates_warn(task, p);
		p->place = here.up;
	}
}

void
job_warn_local(const struct job *job, struct problems *p)
{
	char context[CONTEXT_SIZE];
	struct place here;
	bool update = job->update;
	size_t i;

	for (i = 0; i < job->task_groups.n; i++)
		update |= job->task_groups.v[i].update != NULL;
	if (update && job->type != JOB_SERVICE && job->type != JOB_TYPE_NONE)
		model_problem(p,
		    "update has no effect in a %s job: all allocations that change are replaced at "
		    "once",
		    job_kind_names[job->type]);
	for (i = 0; i < job->task_groups.n; i++) {
		enter(p, &here, context, "group", job->task_groups.v[i].name);
		warn_group(&job->task_groups.v[i], p);
		p->place = here.up;
	}
}
