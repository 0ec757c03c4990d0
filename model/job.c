/* SPDX-License-Identifier: Apache-2.0 */
/* job.c: field tables of jobs and groups, and functions that read them. Runs in: supervisor,
 * cli. */
#include "model/job.h"
#include "model/job_stub.h"

#include "common/duration.h"
#include "model/engine/table.h"

const char *const job_kind_names[] = { "", "service", "batch", "system", "sysbatch" };
const char *const job_status_names[] = { "", "pending", "running", "dead" };
static const char *const delay_function_names[] = { "", "constant", "exponential", "fibonacci" };
static const char *const volume_kind_names[] = { "", "host", "csi" };

/* Defaults depend on the job's type: see job_complete(). */
#define S reschedule_policy
static const struct field reschedule_policy_fields[] = {
	F_OPT_INT(attempts, "Attempts"),
	F_OPT_DURATION(interval, "Interval"),
	F_OPT_DURATION(delay, "Delay"),
	F_ENUM(delay_function, "DelayFunction", delay_function_names),
	F_OPT_DURATION(max_delay, "MaxDelay"),
	F_OPT_BOOL(unlimited, "Unlimited"),
};

static bool
is_below_zero(int64_t ns)
{
	return ns < 0 && ns != MODEL_UNSET; /* job_complete() sets what is unset */
}

static void
validate_reschedule(const void *obj, struct problems *p)
{
	const struct reschedule_policy *r = obj;

	if (is_below_zero(r->interval) || is_below_zero(r->delay) || is_below_zero(r->max_delay))
		model_problem(p, "reschedule: interval, delay and max_delay must not be negative");
}
MODEL_TYPE(reschedule_policy, reschedule_policy_fields, .name = "reschedule",
    .validate = validate_reschedule);
#undef S

#define S update_strategy
static const struct field update_strategy_fields[] = {
	F_DURATION_DEFAULT(stagger, "Stagger", 30 * NS_PER_S),
	F_INT_DEFAULT(max_parallel, "MaxParallel", 1),
	F_STRING_DEFAULT(health_check, "HealthCheck", "checks"),
	F_DURATION_DEFAULT(min_healthy_time, "MinHealthyTime", 10 * NS_PER_S),
	F_DURATION_DEFAULT(healthy_deadline, "HealthyDeadline", 300 * NS_PER_S),
	F_DURATION_DEFAULT(progress_deadline, "ProgressDeadline", 600 * NS_PER_S),
	F_BOOL_DEFAULT(auto_revert, "AutoRevert", OPT_FALSE),
	F_BOOL_DEFAULT(auto_promote, "AutoPromote", OPT_FALSE),
	F_INT_DEFAULT(canary, "Canary", 0),
};
MODEL_TYPE(update_strategy, update_strategy_fields, .name = "update");
#undef S

#define S migrate_strategy
static const struct field migrate_strategy_fields[] = {
	F_INT_DEFAULT(max_parallel, "MaxParallel", 1),
	F_STRING_DEFAULT(health_check, "HealthCheck", "checks"),
	F_DURATION_DEFAULT(min_healthy_time, "MinHealthyTime", 10 * NS_PER_S),
	F_DURATION_DEFAULT(healthy_deadline, "HealthyDeadline", 300 * NS_PER_S),
};
MODEL_TYPE(migrate_strategy, migrate_strategy_fields, .name = "migrate");
#undef S

#define S ephemeral_disk
static const struct field ephemeral_disk_fields[] = {
	F_BOOL_DEFAULT(sticky, "Sticky", OPT_FALSE),
	F_INT_DEFAULT(size_mb, "SizeMB", 300),
	F_BOOL_DEFAULT(migrate, "Migrate", OPT_FALSE),
};
MODEL_TYPE(ephemeral_disk, ephemeral_disk_fields, .name = "ephemeral_disk");
#undef S

#define S disconnect_strategy
static const struct field disconnect_strategy_fields[] = {
	F_OPT_DURATION(lost_after, "LostAfter"),
	F_OPT_DURATION(stop_on_client_after, "StopOnClientAfter"),
	F_BOOL_DEFAULT(replace, "Replace", OPT_TRUE),
	F_STRING_DEFAULT(reconcile, "Reconcile", "best_score"),
};
MODEL_TYPE(disconnect_strategy, disconnect_strategy_fields, .name = "disconnect");
#undef S

#define S volume_request
static const struct field volume_request_fields[] = {
	F_STRING(name, "Name"),
	F_ENUM(type, "Type", volume_kind_names),
	F_STRING(source, "Source"),
	F_BOOL(read_only, "ReadOnly"),
	F_ENUM(access_mode, "AccessMode", csi_access_names),
	F_ENUM(attachment_mode, "AttachmentMode", csi_attachment_names),
	F_POINTER(mount_options, "MountOptions", mount_options),
	F_BOOL(per_alloc, "PerAlloc"),
	F_BOOL(sticky, "Sticky"),
};
MODEL_TYPE(volume_request, volume_request_fields, .name = "volume",
    .title = 1 + offsetof(struct volume_request, name));
#undef S

#define S task_group
static const struct field task_group_fields[] = {
	F_STRING(name, "Name"),
	F_INT(count, "Count", .flags = FIELD_CAN_UNSET | FIELD_HAS_DEFAULT | FIELD_IN_PLACE,
	    .number = 1),
	F_LIST(constraints, "Constraints", constraint, IN_PLACE),
	F_JSON(affinities, "Affinities"),
	F_JSON(spreads, "Spreads"),
	F_LIST(tasks, "Tasks", task),
	F_POINTER(restart_policy, "RestartPolicy", restart_policy, IN_PLACE),
	F_POINTER(reschedule_policy, "ReschedulePolicy", reschedule_policy, IN_PLACE),
	F_POINTER(update, "Update", update_strategy, IN_PLACE),
	F_POINTER(migrate, "Migrate", migrate_strategy, IN_PLACE),
	F_POINTER(ephemeral_disk, "EphemeralDisk", ephemeral_disk),
	F_POINTER(disconnect, "Disconnect", disconnect_strategy, IN_PLACE),
	F_MAP(volumes, "Volumes", volume_request),
	F_STRING_MAP(meta, "Meta"),
	F_DURATION(shutdown_delay, "ShutdownDelay", .flags = FIELD_CAN_UNSET | FIELD_IN_PLACE),
	F_DURATION(stop_after_client_disconnect, "StopAfterClientDisconnect",
	    .flags = FIELD_CAN_UNSET | FIELD_IN_PLACE),
	F_DURATION(max_client_disconnect, "MaxClientDisconnect",
	    .flags = FIELD_CAN_UNSET | FIELD_IN_PLACE),
	F_DURATION(max_run_duration, "MaxRunDuration", .flags = FIELD_CAN_UNSET | FIELD_IN_PLACE),
	FIELD_SCALAR(prevent_reschedule_on_lost, "PreventRescheduleOnLost", FIELD_OPT_BOOL,
	    enum opt_bool, .flags = FIELD_CAN_UNSET | FIELD_IN_PLACE),
	F_LIST(networks, "Networks", network_resource),
	F_LIST(services, "Services", service, IN_PLACE),
	F_JSON(consul, "Consul"),
	F_JSON(scaling, "Scaling", IN_PLACE),
};
MODEL_TYPE(
    task_group, task_group_fields, .name = "group", .title = 1 + offsetof(struct task_group, name));
#undef S

#define KEPT .flags = FIELD_NO_EQUAL /* set by the source, not by the job's author */
#define S    job
static const struct field job_fields[] = {
	F_STRING(id, "ID"),
	F_STRING(name, "Name"),
	F_STRING_DEFAULT(namespace, "Namespace", "default"),
	F_STRING_DEFAULT(region, "Region", "global"),
	F_STRING(parent_id, "ParentID"),
	F_ENUM(type, "Type", job_kind_names, .flags = FIELD_HAS_DEFAULT, .number = JOB_SERVICE),
	F_INT_DEFAULT(priority, "Priority", 50),
	F_BOOL_DEFAULT(all_at_once, "AllAtOnce", OPT_FALSE),
	F_BOOL(stop, "Stop"),
	F_STRINGS(datacenters, "Datacenters"),
	F_STRING_DEFAULT(node_pool, "NodePool", "default"),
	F_LIST(constraints, "Constraints", constraint),
	F_JSON(affinities, "Affinities"),
	F_JSON(spreads, "Spreads"),
	F_LIST(task_groups, "TaskGroups", task_group),
	F_POINTER(update, "Update", update_strategy),
	F_POINTER(periodic, "Periodic", periodic_config),
	F_POINTER(parameterized, "ParameterizedJob", parameterized_job),
	F_JSON(multiregion, "Multiregion"),
	F_JSON(ui, "UI"),
	F_JSON(version_tag, "VersionTag", KEPT),
	F_POINTER(reschedule_policy, "Reschedule", reschedule_policy, .flags = FIELD_NO_WIRE),
	F_POINTER(migrate, "Migrate", migrate_strategy, .flags = FIELD_NO_WIRE),
	F_BOOL(dispatched, "Dispatched"),
	F_STRING(dispatch_idempotency_token, "DispatchIdempotencyToken"),
	F_STRING(payload, "Payload", .flags = FIELD_BYTES),
	F_STRING_MAP(meta, "Meta"),
	F_STRING(consul_token, "ConsulToken", KEPT),
	F_STRING(consul_namespace, "ConsulNamespace"),
	F_STRING(vault_token, "VaultToken", KEPT),
	F_STRING(vault_namespace, "VaultNamespace"),
	F_STRING(nomad_token_id, "NomadTokenID", KEPT),
	F_ENUM(status, "Status", job_status_names, KEPT),
	F_STRING(status_description, "StatusDescription", KEPT),
	F_BOOL(stable, "Stable", KEPT),
	F_UINT(version, "Version", KEPT),
	F_INT(submit_time, "SubmitTime", KEPT),
	F_UINT(create_index, "CreateIndex", KEPT),
	F_UINT(modify_index, "ModifyIndex", KEPT),
	F_UINT(job_modify_index, "JobModifyIndex", KEPT),
};
MODEL_TYPE(job, job_fields, .name = "job");
#undef S

#define S group_summary
static const struct field group_summary_fields[] = {
	F_INT(queued, "Queued"),
	F_INT(complete, "Complete"),
	F_INT(failed, "Failed"),
	F_INT(running, "Running"),
	F_INT(starting, "Starting"),
	F_INT(lost, "Lost"),
	F_INT(unknown, "Unknown"),
};
MODEL_TYPE(group_summary, group_summary_fields, .name = "summary");
#undef S

#define S job_children
static const struct field job_children_fields[] = {
	F_INT(pending, "Pending"),
	F_INT(running, "Running"),
	F_INT(dead, "Dead"),
};
static MODEL_TYPE(job_children, job_children_fields, .name = "children");
#undef S

#define S job_summary
static const struct field job_summary_fields[] = {
	F_STRING(job_id, "JobID"),
	F_STRING(namespace, "Namespace"),
	F_MAP(summary, "Summary", group_summary, .flags = FIELD_NOT_NIL),
	F_STRUCT(children, "Children", job_children),
	F_UINT(create_index, "CreateIndex"),
	F_UINT(modify_index, "ModifyIndex"),
};
MODEL_TYPE(job_summary, job_summary_fields, .name = "summary");
#undef S

#define S job_stub
static const struct field job_stub_fields[] = {
	F_STRING(id, "ID"),
	F_STRING(parent_id, "ParentID"),
	F_STRING(name, "Name"),
	F_STRING(namespace, "Namespace"),
	F_STRINGS(datacenters, "Datacenters"),
	F_STRING(node_pool, "NodePool"),
	F_ENUM(type, "Type", job_kind_names),
	F_INT(priority, "Priority"),
	F_BOOL(periodic, "Periodic"),
	F_BOOL(parameterized, "ParameterizedJob"),
	F_BOOL(stop, "Stop"),
	F_ENUM(status, "Status", job_status_names),
	F_STRING(status_description, "StatusDescription"),
	F_STRUCT(job_summary, "JobSummary", job_summary),
	F_UINT(create_index, "CreateIndex"),
	F_UINT(modify_index, "ModifyIndex"),
	F_UINT(job_modify_index, "JobModifyIndex"),
	F_INT(submit_time, "SubmitTime"),
	F_UINT(version, "Version"),
};
MODEL_TYPE(job_stub, job_stub_fields, .name = "job", .title = 1 + offsetof(struct job_stub, id));
#undef S

void
job_stub_fill(struct job_stub *stub, const struct job *job)
{
	size_t i;

	str_set(&stub->id, job->id);
	str_set(&stub->parent_id, job->parent_id);
	str_set(&stub->name, job->name);
	str_set(&stub->namespace, job->namespace);
	str_set(&stub->node_pool, job->node_pool);
	str_set(&stub->status_description, job->status_description);
	strings_done(&stub->datacenters);
	for (i = 0; i < job->datacenters.n; i++)
		strings_add(&stub->datacenters, job->datacenters.v[i]);
	stub->type = job->type;
	stub->priority = job->priority;
	stub->periodic = job->periodic;
	stub->parameterized = job_is_parameterized(job);
	stub->stop = job->stop;
	stub->status = job->status;
	stub->create_index = job->create_index;
	stub->modify_index = job->modify_index;
	stub->job_modify_index = job->job_modify_index;
	stub->submit_time = job->submit_time;
	stub->version = job->version;
}

const struct task_group *
job_group(const struct job *job, const char *name)
{
	size_t i;

	for (i = 0; i < job->task_groups.n; i++)
		if (str_eq(job->task_groups.v[i].name, name))
			return &job->task_groups.v[i];
	return NULL;
}

const struct task *
group_task(const struct task_group *group, const char *name)
{
	size_t i;

	for (i = 0; i < group->tasks.n; i++)
		if (str_eq(group->tasks.v[i].name, name))
			return &group->tasks.v[i];
	return NULL;
}

int64_t
group_disk_mb(const struct task_group *group)
{
	const struct ephemeral_disk *disk = group->ephemeral_disk;

	return disk && disk->size_mb > 0 ? disk->size_mb : 0;
}

const struct network_resource *
group_own_network(const struct task_group *group)
{
	for (size_t i = 0; i < group->networks.n; i++)
		if (network_is_own(&group->networks.v[i]))
			return &group->networks.v[i];
	return NULL;
}

uint64_t
group_stop_after_ms(const struct task_group *group)
{
	int64_t ns = group->stop_after_client_disconnect;

	if (group->disconnect && group->disconnect->stop_on_client_after > 0)
		ns = group->disconnect->stop_on_client_after;
	if (ns <= 0) /* MODEL_UNSET is negative */
		return 0;
	return ns < NS_PER_MS ? 1 : (uint64_t)(ns / NS_PER_MS);
}

void
volume_request_source(const struct volume_request *vr, int64_t index, char **ret)
{
	if (vr->per_alloc)
		str_setf(ret, "%s[%lld]", str(vr->source), (long long)index);
	else
		str_set(ret, vr->source);
}
