/* SPDX-License-Identifier: Apache-2.0 */
/* alloc.c: field tables of allocations and of the states and events of their tasks. Runs in:
 * supervisor, cli. */
#include "model/alloc.h"

#include <string.h>

#include "model/engine/table.h"

const char *const task_run_state_names[] = { "", "pending", "running", "dead" };
const char *const desired_status_names[] = { "", "run", "stop", "evict" };
const char *const client_status_names[] = { "", "pending", "running", "complete", "failed", "lost",
	"unknown" };

#define S task_event
static const struct field task_event_fields[] = {
	F_STRING(type, "Type"),
	F_INT(time, "Time"),
	F_STRING(message, "Message"),
	F_STRING(display_message, "DisplayMessage"),
	F_STRING_MAP(details, "Details", .flags = FIELD_NOT_NIL),
	F_BOOL(fails_task, "FailsTask"),
	F_STRING(restart_reason, "RestartReason"),
	F_STRING(setup_error, "SetupError"),
	F_STRING(driver_error, "DriverError"),
	F_INT(exit_code, "ExitCode"),
	F_INT(signal, "Signal"),
	F_DURATION(kill_timeout, "KillTimeout"),
	F_STRING(kill_error, "KillError"),
	F_STRING(kill_reason, "KillReason"),
	F_INT(start_delay, "StartDelay"),
	F_STRING(download_error, "DownloadError"),
	F_STRING(validation_error, "ValidationError"),
	F_INT(disk_limit, "DiskLimit"),
	F_STRING(failed_sibling, "FailedSibling"),
	F_STRING(vault_error, "VaultError"),
	F_STRING(task_signal_reason, "TaskSignalReason"),
	F_STRING(task_signal, "TaskSignal"),
	F_STRING(driver_message, "DriverMessage"),
	F_STRING(generic_source, "GenericSource"),
};
MODEL_TYPE(
    task_event, task_event_fields, .name = "event", .title = 1 + offsetof(struct task_event, type));
#undef S

#define S task_state
static const struct field task_state_fields[] = {
	F_ENUM(state, "State", task_run_state_names),
	F_BOOL(failed, "Failed"),
	F_UINT(restarts, "Restarts"),
	F_TIME(last_restart, "LastRestart"),
	F_TIME(started_at, "StartedAt"),
	F_TIME(finished_at, "FinishedAt"),
	F_LIST(events, "Events", task_event, .flags = FIELD_NOT_NIL),
	F_STRING(paused, "Paused", .flags = FIELD_OMIT_EMPTY),
	F_STRING(address, "Address", .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_STRING(address_ipv6, "AddressIPv6", .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
};
MODEL_TYPE(task_state, task_state_fields, .name = "task state");
#undef S

#define S alloc_cpu
static const struct field alloc_cpu_fields[] = {
	F_INT(cpu_shares, "CpuShares"),
	F_INTS(reserved_cores, "ReservedCores"),
};
static MODEL_TYPE(alloc_cpu, alloc_cpu_fields, .name = "cpu");
#undef S

#define S alloc_memory
static const struct field alloc_memory_fields[] = {
	F_INT(memory_mb, "MemoryMB"),
	F_INT(memory_max_mb, "MemoryMaxMB"),
};
static MODEL_TYPE(alloc_memory, alloc_memory_fields, .name = "memory");
#undef S

#define S alloc_device
static const struct field alloc_device_fields[] = {
	F_STRING(vendor, "Vendor"),
	F_STRING(type, "Type"),
	F_STRING(name, "Name"),
	F_STRINGS(device_ids, "DeviceIDs"),
};
static MODEL_TYPE(alloc_device, alloc_device_fields, .name = "device");
#undef S

#define S alloc_task_resources
static const struct field alloc_task_resources_fields[] = {
	F_STRUCT(cpu, "Cpu", alloc_cpu),
	F_STRUCT(memory, "Memory", alloc_memory),
	F_LIST(networks, "Networks", network_resource),
	F_LIST(devices, "Devices", alloc_device),
};
MODEL_TYPE(alloc_task_resources, alloc_task_resources_fields, .name = "resources");
#undef S

#define S alloc_port
static const struct field alloc_port_fields[] = {
	F_STRING(label, "Label"),
	F_INT(value, "Value"),
	F_INT(to, "To"),
	F_STRING(host_ip, "HostIP"),
	F_BOOL(ignore_collision, "IgnoreCollision", .flags = FIELD_OMIT_EMPTY),
};
MODEL_TYPE(
    alloc_port, alloc_port_fields, .name = "port", .title = 1 + offsetof(struct alloc_port, label));
#undef S

#define S alloc_shared_resources
static const struct field alloc_shared_resources_fields[] = {
	F_LIST(networks, "Networks", network_resource),
	F_INT(disk_mb, "DiskMB"),
	F_LIST(ports, "Ports", alloc_port),
};
static MODEL_TYPE(alloc_shared_resources, alloc_shared_resources_fields, .name = "shared");
#undef S

#define S alloc_resources
static const struct field alloc_resources_fields[] = {
	F_MAP(tasks, "Tasks", alloc_task_resources, .flags = FIELD_NOT_NIL),
	F_MAP(task_lifecycles, "TaskLifecycles", lifecycle),
	F_STRUCT(shared, "Shared", alloc_shared_resources),
};
MODEL_TYPE(alloc_resources, alloc_resources_fields, .name = "resources");
#undef S

#define S node_score
static const struct field node_score_fields[] = {
	F_STRING(node_id, "NodeID"),
	F_JSON(scores, "Scores"),
	F_DOUBLE(norm_score, "NormScore"),
};
MODEL_TYPE(node_score, node_score_fields, .name = "score");
#undef S

#define S alloc_metric
static const struct field alloc_metric_fields[] = {
	F_INT(nodes_evaluated, "NodesEvaluated"),
	F_INT(nodes_filtered, "NodesFiltered"),
	F_INT(nodes_in_pool, "NodesInPool"),
	F_STRING(node_pool, "NodePool", .flags = FIELD_OMIT_EMPTY),
	F_INT_MAP(nodes_available, "NodesAvailable"),
	F_INT_MAP(class_filtered, "ClassFiltered"),
	F_INT_MAP(constraint_filtered, "ConstraintFiltered"),
	F_INT(nodes_exhausted, "NodesExhausted"),
	F_INT_MAP(class_exhausted, "ClassExhausted"),
	F_INT_MAP(dimension_exhausted, "DimensionExhausted"),
	F_STRINGS(quota_exhausted, "QuotaExhausted"),
	F_JSON(resources_exhausted, "ResourcesExhausted"),
	F_JSON(scores, "Scores"),
	F_INT(allocation_time, "AllocationTime"),
	F_INT(coalesced_failures, "CoalescedFailures"),
	F_LIST(score_meta_data, "ScoreMetaData", node_score),
};
MODEL_TYPE(alloc_metric, alloc_metric_fields, .name = "metrics");
#undef S

#define S desired_transition
static const struct field desired_transition_fields[] = {
	F_OPT_BOOL(migrate, "Migrate"),
	F_OPT_BOOL(reschedule, "Reschedule"),
	F_OPT_BOOL(force_reschedule, "ForceReschedule"),
	F_OPT_BOOL(no_shutdown_delay, "NoShutdownDelay"),
	F_TRI(migrate_disable_placement, "MigrateDisablePlacement",
	    .flags = FIELD_CAN_UNSET | FIELD_OMIT_EMPTY),
};
static MODEL_TYPE(desired_transition, desired_transition_fields, .name = "transition");
#undef S

#define S alloc_state_change
static const struct field alloc_state_change_fields[] = {
	F_INT(field, "Field"),
	F_STRING(value, "Value"),
	F_TIME(time, "Time"),
};
MODEL_TYPE(alloc_state_change, alloc_state_change_fields, .name = "state");
#undef S

#define S deployment_status
static const struct field deployment_status_fields[] = {
	F_OPT_BOOL(healthy, "Healthy"),
	F_TIME(timestamp, "Timestamp"),
	F_BOOL(canary, "Canary"),
	F_UINT(modify_index, "ModifyIndex"),
};
MODEL_TYPE(deployment_status, deployment_status_fields, .name = "deployment status");
#undef S

#define S alloc_network_status
static const struct field alloc_network_status_fields[] = {
	F_STRING(interface_name, "InterfaceName"),
	F_STRING(address, "Address"),
	F_STRING(address_ipv6, "AddressIPv6", .flags = FIELD_OMIT_EMPTY),
	F_POINTER(dns, "DNS", dns_config),
};
MODEL_TYPE(alloc_network_status, alloc_network_status_fields, .name = "network status");
#undef S

#define S reschedule_event
static const struct field reschedule_event_fields[] = {
	F_INT(reschedule_time, "RescheduleTime"),
	F_STRING(prev_alloc_id, "PrevAllocID"),
	F_STRING(prev_node_id, "PrevNodeID"),
	F_DURATION(delay, "Delay"),
};
MODEL_TYPE(reschedule_event, reschedule_event_fields, .name = "reschedule");
#undef S

#define S reschedule_tracker
static const struct field reschedule_tracker_fields[] = {
	F_LIST(events, "Events", reschedule_event, .flags = FIELD_NOT_NIL),
	F_STRING(last_reschedule, "LastReschedule", .flags = FIELD_OMIT_EMPTY),
};
MODEL_TYPE(reschedule_tracker, reschedule_tracker_fields, .name = "reschedules");
#undef S

#define S alloc
/* The job is last, so that the table without it is the same array without its last element. */
static const struct field alloc_fields[] = {
	F_STRING(id, "ID"),
	F_STRING(namespace, "Namespace"),
	F_STRING(eval_id, "EvalID"),
	F_STRING(name, "Name"),
	F_STRING(node_id, "NodeID"),
	F_STRING(node_name, "NodeName"),
	F_STRING(job_id, "JobID"),
	F_STRING(task_group, "TaskGroup"),
	F_JSON(resources, "Resources"),
	F_JSON(shared_resources, "SharedResources"),
	F_JSON(task_resources, "TaskResources"),
	F_POINTER(allocated_resources, "AllocatedResources", alloc_resources),
	F_STRUCT(metrics, "Metrics", alloc_metric),
	F_ENUM(desired_status, "DesiredStatus", desired_status_names),
	F_STRING(desired_description, "DesiredDescription"),
	F_STRUCT(desired_transition, "DesiredTransition", desired_transition),
	F_ENUM(client_status, "ClientStatus", client_status_names),
	F_STRING(client_description, "ClientDescription"),
	F_MAP(task_states, "TaskStates", task_state),
	F_LIST(alloc_states, "AllocStates", alloc_state_change),
	F_STRING(deployment_id, "DeploymentID"),
	F_POINTER(deployment_status, "DeploymentStatus", deployment_status),
	F_STRING(followup_eval_id, "FollowupEvalID"),
	F_STRING(previous_allocation, "PreviousAllocation"),
	F_STRING(next_allocation, "NextAllocation"),
	F_POINTER(reschedule_tracker, "RescheduleTracker", reschedule_tracker),
	F_POINTER(network_status, "NetworkStatus", alloc_network_status),
	F_STRINGS(preempted_allocations, "PreemptedAllocations"),
	F_STRING(preempted_by_allocation, "PreemptedByAllocation"),
	F_STRING_MAP(
	    signed_identities, "SignedIdentities", .flags = FIELD_OMIT_EMPTY | FIELD_SEALED),
	F_STRING(signing_key_id, "SigningKeyID", .flags = FIELD_OMIT_EMPTY),
	F_UINT(create_index, "CreateIndex"),
	F_UINT(modify_index, "ModifyIndex"),
	F_UINT(alloc_modify_index, "AllocModifyIndex"),
	F_INT(create_time, "CreateTime"),
	F_INT(modify_time, "ModifyTime"),
	F_POINTER(job, "Job", job),
};
MODEL_TYPE(alloc, alloc_fields, .name = "alloc", .title = 1 + offsetof(struct alloc, id));
const struct type alloc_bare_type = {
	.name = "alloc",
	.size = sizeof(struct alloc),
	.fields = alloc_fields,
	.n = ELEMENTSOF(alloc_fields) - 1,
	.title = 1 + offsetof(struct alloc, id),
};

static const struct field alloc_stub_fields[] = {
	F_STRING(id, "ID"),
	F_STRING(eval_id, "EvalID"),
	F_STRING(name, "Name"),
	F_STRING(namespace, "Namespace"),
	F_STRING(node_id, "NodeID"),
	F_STRING(node_name, "NodeName"),
	F_STRING(job_id, "JobID"),
	F_ENUM(job_kind, "JobType", job_kind_names),
	F_UINT(job_version, "JobVersion"),
	F_STRING(task_group, "TaskGroup"),
	F_ENUM(desired_status, "DesiredStatus", desired_status_names),
	F_STRING(desired_description, "DesiredDescription"),
	F_ENUM(client_status, "ClientStatus", client_status_names),
	F_STRING(client_description, "ClientDescription"),
	F_STRUCT(desired_transition, "DesiredTransition", desired_transition),
	F_MAP(task_states, "TaskStates", task_state),
	F_POINTER(deployment_status, "DeploymentStatus", deployment_status),
	F_STRING(followup_eval_id, "FollowupEvalID"),
	F_STRING(next_allocation, "NextAllocation"),
	F_POINTER(reschedule_tracker, "RescheduleTracker", reschedule_tracker),
	F_STRINGS(preempted_allocations, "PreemptedAllocations"),
	F_STRING(preempted_by_allocation, "PreemptedByAllocation"),
	F_UINT(create_index, "CreateIndex"),
	F_UINT(modify_index, "ModifyIndex"),
	F_INT(create_time, "CreateTime"),
	F_INT(modify_time, "ModifyTime"),
	F_POINTER(allocated_resources, "AllocatedResources", alloc_resources),
};
static const struct field alloc_update_fields[] = {
	F_STRING(id, "ID"),
	F_STRING(node_id, "NodeID"),
	F_ENUM(client_status, "ClientStatus", client_status_names),
	F_STRING(client_description, "ClientDescription"),
	F_MAP(task_states, "TaskStates", task_state),
	F_POINTER(deployment_status, "DeploymentStatus", deployment_status),
	F_POINTER(network_status, "NetworkStatus", alloc_network_status),
};
const struct type alloc_update_type = {
	.name = "alloc",
	.size = sizeof(struct alloc),
	.fields = alloc_update_fields,
	.n = ELEMENTSOF(alloc_update_fields),
	.title = 1 + offsetof(struct alloc, id),
};

static const struct field alloc_head_fields[] = {
	F_STRING(id, "ID"),
	F_STRING(namespace, "Namespace"),
	F_STRING(name, "Name"),
	F_STRING(node_id, "NodeID"),
	F_STRING(job_id, "JobID"),
	F_STRING(task_group, "TaskGroup"),
	F_ENUM(desired_status, "DesiredStatus", desired_status_names, .flags = FIELD_NO_EQUAL),
	F_UINT(create_index, "CreateIndex"),
	F_UINT(modify_index, "ModifyIndex"),
	F_UINT(alloc_modify_index, "AllocModifyIndex"),
};
const struct type alloc_head_type = {
	.name = "alloc",
	.size = sizeof(struct alloc),
	.fields = alloc_head_fields,
	.n = ELEMENTSOF(alloc_head_fields),
	.title = 1 + offsetof(struct alloc, id),
};

/* Without ?resources=true the last element is left out. */
const struct type alloc_stub_resources_type = {
	.name = "alloc",
	.size = sizeof(struct alloc),
	.fields = alloc_stub_fields,
	.n = ELEMENTSOF(alloc_stub_fields),
	.title = 1 + offsetof(struct alloc, id),
};
const struct type alloc_stub_type = {
	.name = "alloc",
	.size = sizeof(struct alloc),
	.fields = alloc_stub_fields,
	.n = ELEMENTSOF(alloc_stub_fields) - 1,
	.title = 1 + offsetof(struct alloc, id),
};
#undef S

void
alloc_fill_stub(struct alloc *a, const struct job *job)
{
	a->job_kind = job->type;
	a->job_version = job->version;
}

int64_t
alloc_name_index(const char *name)
{
	const char *open = name ? strrchr(name, '[') : NULL;
	char *end;
	long n;

	if (!open || open[1] < '0' || open[1] > '9')
		return -1;
	errno = 0;
	n = strtol(open + 1, &end, 10);
	return errno || strcmp(end, "]") ? -1 : n;
}

const struct task_group *
alloc_group(const struct alloc *a)
{
	return a->job ? job_group(a->job, a->task_group) : NULL;
}

static const struct alloc_task_resources *
task_given(const struct alloc *a, const char *task)
{
	const struct alloc_resources *all = a->allocated_resources;

	for (size_t i = 0; all && i < all->tasks.n; i++)
		if (str_eq(all->tasks.v[i].key, task))
			return &all->tasks.v[i].value;
	return NULL;
}

const struct alloc_cpu *
alloc_task_cpu(const struct alloc *a, const char *task)
{
	const struct alloc_task_resources *given = task_given(a, task);

	return given ? &given->cpu : NULL;
}

struct alloc_memory
alloc_task_memory(const struct alloc *a, const struct task *task)
{
	const struct alloc_task_resources *given = task_given(a, task->name);
	struct alloc_memory asked = { task->resources->memory_mb, task->resources->memory_max_mb };

	return given ? given->memory : asked;
}
