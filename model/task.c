/* SPDX-License-Identifier: Apache-2.0 */
/* task.c: field tables of tasks and of the blocks that groups have too. Runs in: supervisor, cli.
 */
#include "model/task.h"

#include "common/duration.h"
#include "model/table.h"

const char *const restart_mode_names[] = { "", "fail", "delay" };
const char *const lifecycle_hook_names[] = { "", "prestart", "poststart", "poststop" };
const char *const csi_plugin_kind_names[] = { "", "controller", "node", "monolith" };
const char *const mount_propagation_names[] = { "", "private", "host-to-task", "bidirectional" };

#define S constraint
static const struct field constraint_fields[] = {
	F_STRING(l_target, "LTarget"),
	F_STRING(r_target, "RTarget"),
	F_STRING(operand, "Operand"),
};
MODEL_TYPE(constraint, constraint_fields, .name = "constraint");
#undef S

/* The defaults depend on the job's type: job_complete(). */
#define S restart_policy
static const struct field restart_policy_fields[] = {
	F_OPT_INT(attempts, "Attempts"),
	F_OPT_DURATION(interval, "Interval"),
	F_OPT_DURATION(delay, "Delay"),
	F_ENUM(
	    mode, "Mode", restart_mode_names, .flags = FIELD_HAS_DEFAULT, .number = RESTART_FAIL),
	F_BOOL_DEFAULT(render_templates, "RenderTemplates", OPT_FALSE),
};
MODEL_TYPE(restart_policy, restart_policy_fields, .name = "restart");
#undef S

#define S requested_device
static const struct field requested_device_fields[] = {
	F_STRING(name, "Name"),
	F_INT_DEFAULT(count, "Count", 1),
	F_JSON(constraints, "Constraints"),
	F_JSON(affinities, "Affinities"),
};
MODEL_TYPE(requested_device, requested_device_fields, .name = "device",
    .title = 1 + offsetof(struct requested_device, name));
#undef S

#define S resources
static const struct field resources_fields[] = {
	F_INT_DEFAULT(cpu, "CPU", 100),
	F_INT_DEFAULT(cores, "Cores", 0),
	F_INT_DEFAULT(memory_mb, "MemoryMB", 300),
	F_INT_DEFAULT(memory_max_mb, "MemoryMaxMB", 0),
	F_INT_DEFAULT(disk_mb, "DiskMB", 0),
	F_INT_DEFAULT(iops, "IOPS", 0),
	F_INT_DEFAULT(secrets_mb, "SecretsMB", 0),
	F_LIST(networks, "Networks", network_resource),
	F_LIST(devices, "Devices", requested_device),
	F_JSON(numa, "NUMA"),
};
MODEL_TYPE(resources, resources_fields, .name = "resources");
#undef S

#define S log_config
static const struct field log_config_fields[] = {
	F_INT_DEFAULT(max_files, "MaxFiles", 10),
	F_INT_DEFAULT(max_file_size_mb, "MaxFileSizeMB", 10),
	F_BOOL_DEFAULT(disabled, "Disabled", OPT_FALSE),
};
MODEL_TYPE(log_config, log_config_fields, .name = "logs");
#undef S

#define S lifecycle
static const struct field lifecycle_fields[] = {
	F_ENUM(hook, "Hook", lifecycle_hook_names),
	F_BOOL(sidecar, "Sidecar"),
};
MODEL_TYPE(lifecycle, lifecycle_fields, .name = "lifecycle");
#undef S

#define S volume_mount
static const struct field volume_mount_fields[] = {
	F_STRING(volume, "Volume"),
	F_STRING(destination, "Destination"),
	F_BOOL(read_only, "ReadOnly"),
	F_ENUM(propagation_mode, "PropagationMode", mount_propagation_names,
	    .flags = FIELD_HAS_DEFAULT, .number = PROPAGATION_PRIVATE),
	F_STRING(selinux_label, "SELinuxLabel"),
};
MODEL_TYPE(volume_mount, volume_mount_fields, .name = "volume_mount",
    .title = 1 + offsetof(struct volume_mount, volume));
#undef S

#define S csi_plugin_block
static const struct field csi_plugin_block_fields[] = {
	F_STRING(id, "ID"),
	F_ENUM(type, "Type", csi_plugin_kind_names),
	F_STRING_DEFAULT(mount_dir, "MountDir", "/csi"),
	F_STRING_DEFAULT(stage_publish_base_dir, "StagePublishBaseDir", "/local/csi"),
	F_DURATION_DEFAULT(health_timeout, "HealthTimeout", 30 * NS_PER_S),
};
MODEL_TYPE(csi_plugin_block, csi_plugin_block_fields, .name = "csi_plugin",
    .title = 1 + offsetof(struct csi_plugin_block, id));
#undef S

#define S task
static const struct field task_fields[] = {
	F_STRING(name, "Name"),
	F_STRING(driver, "Driver"),
	F_STRING(user, "User"),
	F_JSON(config, "Config", .flags = FIELD_AS_OBJECT),
	F_STRING_MAP(env, "Env"),
	F_LIST(constraints, "Constraints", constraint),
	F_JSON(affinities, "Affinities"),
	F_POINTER(resources, "Resources", resources),
	F_POINTER(restart_policy, "RestartPolicy", restart_policy),
	F_STRING_MAP(meta, "Meta"),
	F_DURATION_DEFAULT(kill_timeout, "KillTimeout", 5 * NS_PER_S),
	F_STRING(kill_signal, "KillSignal"),
	F_DURATION_DEFAULT(shutdown_delay, "ShutdownDelay", 0),
	F_POINTER(log_config, "LogConfig", log_config),
	F_POINTER(lifecycle, "Lifecycle", lifecycle),
	F_BOOL(leader, "Leader"),
	F_LIST(volume_mounts, "VolumeMounts", volume_mount),
	F_POINTER(csi_plugin, "CSIPluginConfig", csi_plugin_block),
	F_STRING(kind, "Kind"),
	F_JSON(services, "Services"),
	F_JSON(templates, "Templates"),
	F_JSON(artifacts, "Artifacts"),
	F_JSON(vault, "Vault"),
	F_JSON(consul, "Consul"),
	F_JSON(identity, "Identity"),
	F_JSON(identities, "Identities"),
	F_JSON(dispatch_payload, "DispatchPayload"),
	F_JSON(scaling_policies, "ScalingPolicies"),
	F_JSON(actions, "Actions"),
	F_JSON(schedule, "Schedule"),
	F_JSON(secrets, "Secrets"),
};
MODEL_TYPE(task, task_fields, .name = "task", .title = 1 + offsetof(struct task, name));
#undef S
