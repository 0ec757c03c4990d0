/* SPDX-License-Identifier: Apache-2.0 */
/* task.c: field tables of tasks and of the blocks that groups have too. Runs in: supervisor,
 * cli. */
#include "model/task.h"

#include <string.h>

#include "common/duration.h"
#include "common/id.h"
#include "model/engine/table.h"

#define ACTION_NAME_MAX 128

const char *const restart_mode_names[] = { "", "fail", "delay" };
const char *const lifecycle_hook_names[] = { "", "prestart", "poststart", "poststop" };
const char *const log_destination_names[] = { "", "files", "journald", "both" };
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

/* Defaults depend on the job's type: see job_complete(). */
#define S restart_policy
static const struct field restart_policy_fields[] = {
	F_OPT_INT(attempts, "Attempts"),
	F_OPT_DURATION(interval, "Interval"),
	F_OPT_DURATION(delay, "Delay"),
	F_ENUM(
	    mode, "Mode", restart_mode_names, .flags = FIELD_HAS_DEFAULT, .number = RESTART_FAIL),
	F_BOOL_DEFAULT(render_templates, "RenderTemplates", OPT_FALSE),
};

#define RESTART_INTERVAL_MIN (5 * NS_PER_S)

static void
validate_restart(const void *obj, struct problems *p)
{
	const struct restart_policy *r = obj;

	if (r->attempts < 0 || r->interval < 0 || r->delay < 0)
		model_problem(p, "restart: attempts, interval and delay must not be negative");
	else if (r->attempts > 0 && r->interval < RESTART_INTERVAL_MIN)
		model_problem(p, "restart: interval must be at least 5s");
	else if (r->delay > 0 && r->attempts > r->interval / r->delay)
		model_problem(p,
		    "restart: %lld attempts with this delay do not fit into the interval",
		    (long long)r->attempts);
}
MODEL_TYPE(restart_policy, restart_policy_fields, .name = "restart", .validate = validate_restart);
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

#define MEMORY_MIN_MB 10

static void
validate_resources(const void *obj, struct problems *p)
{
	const struct resources *r = obj;

	if (r->cores < 0 || r->disk_mb < 0 || r->secrets_mb < 0)
		model_problem(p, "resources: numbers must not be negative");
	if (r->memory_max_mb < 0 && r->memory_max_mb != MEMORY_NO_LIMIT)
		model_problem(p, "resources: memory_max must not be negative, except %d: no limit",
		    MEMORY_NO_LIMIT);
	if (r->cores <= 0 && r->cpu < 1)
		model_problem(
		    p, "resources: cpu must be at least 1 MHz, not %lld", (long long)r->cpu);
	if (r->cores > 0 && r->cpu > 0)
		model_problem(p, "resources: set cpu or cores, not both");
	if (r->memory_mb < MEMORY_MIN_MB)
		model_problem(p, "resources: memory must be at least %d MB, not %lld",
		    MEMORY_MIN_MB, (long long)r->memory_mb);
	if (r->memory_max_mb > 0 && r->memory_max_mb < r->memory_mb)
		model_problem(p, "resources: memory_max (%lld MB) is below memory (%lld MB)",
		    (long long)r->memory_max_mb, (long long)r->memory_mb);
}
MODEL_TYPE(resources, resources_fields, .name = "resources", .validate = validate_resources);
#undef S

#define S log_config
static const struct field log_config_fields[] = {
	F_INT_DEFAULT(max_files, "MaxFiles", 10),
	F_INT_DEFAULT(max_file_size_mb, "MaxFileSizeMB", 10),
	F_BOOL_DEFAULT(disabled, "Disabled", OPT_FALSE),
	F_ENUM(destination, "Destination", log_destination_names, .flags = FIELD_OMIT_EMPTY),
};

static void
validate_logs(const void *obj, struct problems *p)
{
	const struct log_config *l = obj;

	if (l->max_files < 1 || l->max_file_size_mb < 1)
		model_problem(p, "logs: max_files and max_file_size must be at least 1");
}
MODEL_TYPE(log_config, log_config_fields, .name = "logs", .validate = validate_logs);
#undef S

#define S lifecycle
static const struct field lifecycle_fields[] = {
	F_ENUM(hook, "Hook", lifecycle_hook_names),
	F_BOOL(sidecar, "Sidecar"),
};

static void
validate_lifecycle(const void *obj, struct problems *p)
{
	const struct lifecycle *l = obj;

	if (l->hook == HOOK_NONE)
		model_problem(
		    p, "lifecycle: hook must be \"prestart\", \"poststart\" or \"poststop\"");
	if (l->hook == HOOK_POSTSTOP && l->sidecar)
		model_problem(p, "lifecycle: a poststop task cannot be a sidecar");
}
MODEL_TYPE(lifecycle, lifecycle_fields, .name = "lifecycle", .validate = validate_lifecycle);
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

/* Returns whether ".." is one of the parts of this path. */
static bool
path_climbs(const char *path)
{
	const char *at = path;

	while ((at = strstr(at, ".."))) {
		if ((at == path || at[-1] == '/') && (at[2] == '/' || !at[2]))
			return true;
		at += 2;
	}
	return false;
}

bool
path_leaves(const char *path, unsigned depth)
{
	for (; *path; path += strspn(path, "/")) {
		size_t len = strcspn(path, "/");

		if (len == 2 && strncmp(path, "..", 2) == 0 && depth-- == 0)
			return true;
		if (len > 2 || (len == 2 && strncmp(path, "..", 2) != 0) ||
		    (len == 1 && *path != '.'))
			depth++;
		path += len;
	}
	return false;
}

static void
validate_volume_mount(const void *obj, struct problems *p)
{
	const struct volume_mount *m = obj;

	if (!*str(m->destination))
		model_problem(p, "destination is missing");
	else if (path_climbs(m->destination))
		model_problem(p, "destination \"%.200s\" must not contain \"..\"", m->destination);
}
MODEL_TYPE(volume_mount, volume_mount_fields, .name = "volume_mount",
    .validate = validate_volume_mount, .title = 1 + offsetof(struct volume_mount, volume));
#undef S

#define S csi_plugin_block
static const struct field csi_plugin_block_fields[] = {
	F_STRING(id, "ID"),
	F_ENUM(type, "Type", csi_plugin_kind_names),
	F_STRING_DEFAULT(mount_dir, "MountDir", "/csi"),
	F_STRING_DEFAULT(stage_publish_base_dir, "StagePublishBaseDir", "/local/csi"),
	F_DURATION_DEFAULT(health_timeout, "HealthTimeout", 30 * NS_PER_S),
};

static void
validate_csi_plugin(const void *obj, struct problems *p)
{
	const struct csi_plugin_block *c = obj;

	if (!name_is_component(str(c->id)))
		model_problem(p,
		    "id must have 1 to 128 letters, digits, '.', '_' and '-' and no leading dot");
	if (c->type == CSI_PLUGIN_NONE)
		model_problem(p, "type must be \"controller\", \"node\" or \"monolith\"");
	if (*str(c->mount_dir) != '/' || *str(c->stage_publish_base_dir) != '/')
		model_problem(p, "mount_dir and stage_publish_base_dir must be absolute paths");
	else if (path_climbs(c->mount_dir) || path_climbs(c->stage_publish_base_dir))
		model_problem(p, "mount_dir and stage_publish_base_dir must not contain \"..\"");
	if (c->health_timeout < 0)
		model_problem(p, "health_timeout must not be negative");
}
MODEL_TYPE(csi_plugin_block, csi_plugin_block_fields, .name = "csi_plugin",
    .validate = validate_csi_plugin, .title = 1 + offsetof(struct csi_plugin_block, id));
#undef S

#define S task_action
static const struct field task_action_fields[] = {
	F_STRING(name, "Name"),
	F_STRING(command, "Command"),
	F_STRINGS(args, "Args"),
};

static void
validate_action(const void *obj, struct problems *p)
{
	const struct task_action *a = obj;
	size_t len = strlen(str(a->name));

	if (len == 0 || len > ACTION_NAME_MAX || strcspn(a->name, " \t\n\v\f\r") != len)
		model_problem(p, "an action's name must have 1 to %d characters and no space",
		    ACTION_NAME_MAX);
	if (!*str(a->command))
		model_problem(p, "command is missing");
}
MODEL_TYPE(task_action, task_action_fields, .name = "action", .validate = validate_action,
    .title = 1 + offsetof(struct task_action, name));
#undef S

const struct task_action *
task_action_of(const struct task *task, const char *name)
{
	for (size_t i = 0; i < task->actions.n; i++)
		if (str_eq(task->actions.v[i].name, name))
			return &task->actions.v[i];
	return NULL;
}

#define S dispatch_payload
static const struct field dispatch_payload_fields[] = {
	F_STRING(file, "File"),
};
MODEL_TYPE(dispatch_payload, dispatch_payload_fields, .name = "dispatch_payload");
#undef S

#define S task_artifact
static const struct field task_artifact_fields[] = {
	F_STRING(source, "GetterSource"),
	F_STRING_MAP(options, "GetterOptions"),
	F_STRING_MAP(headers, "GetterHeaders"),
	F_STRING(mode, "GetterMode"),
	F_BOOL(insecure, "GetterInsecure"),
	F_STRING(dest, "RelativeDest"),
	F_BOOL(chown, "Chown"),
};

static void
validate_artifact(const void *obj, struct problems *p)
{
	static const char *const modes[] = { "", "any", "file", "dir" };
	const struct task_artifact *a = obj;
	bool known = false;

	for (size_t i = 0; i < ELEMENTSOF(modes); i++)
		known |= str_eq(a->mode, modes[i]);
	if (!*str(a->source))
		model_problem(p, "source is missing");
	if (!known)
		model_problem(p, "mode must be \"any\", \"file\" or \"dir\"");
	if (path_leaves(str(a->dest), 1))
		model_problem(p, "destination \"%.200s\" leads out of the allocation", a->dest);
}
MODEL_TYPE(task_artifact, task_artifact_fields, .name = "artifact", .validate = validate_artifact);
#undef S

#define S task
static const struct field task_fields[] = {
	F_STRING(name, "Name"),
	F_STRING(driver, "Driver"),
	F_STRING(user, "User"),
	F_JSON(config, "Config", .flags = FIELD_AS_OBJECT),
	F_STRING_MAP(env, "Env"),
	F_LIST(constraints, "Constraints", constraint, IN_PLACE),
	F_JSON(affinities, "Affinities"),
	F_POINTER(resources, "Resources", resources),
	F_POINTER(restart_policy, "RestartPolicy", restart_policy, IN_PLACE),
	F_STRING_MAP(meta, "Meta"),
	F_DURATION(kill_timeout, "KillTimeout",
	    .flags = FIELD_CAN_UNSET | FIELD_HAS_DEFAULT | FIELD_IN_PLACE, .number = 5 * NS_PER_S),
	F_STRING(kill_signal, "KillSignal", IN_PLACE),
	F_DURATION(shutdown_delay, "ShutdownDelay",
	    .flags = FIELD_CAN_UNSET | FIELD_HAS_DEFAULT | FIELD_IN_PLACE),
	F_POINTER(log_config, "LogConfig", log_config),
	F_POINTER(lifecycle, "Lifecycle", lifecycle),
	F_BOOL(leader, "Leader", IN_PLACE),
	F_LIST(volume_mounts, "VolumeMounts", volume_mount),
	F_POINTER(csi_plugin, "CSIPluginConfig", csi_plugin_block),
	F_STRING(kind, "Kind"),
	F_LIST(services, "Services", service, IN_PLACE),
	F_LIST(templates, "Templates", task_template),
	F_LIST(artifacts, "Artifacts", task_artifact),
	F_JSON(vault, "Vault"),
	F_JSON(consul, "Consul"),
	F_POINTER(identity, "Identity", workload_identity),
	F_LIST(identities, "Identities", workload_identity),
	F_POINTER(dispatch_payload, "DispatchPayload", dispatch_payload),
	F_JSON(scaling_policies, "ScalingPolicies", IN_PLACE),
	F_LIST(actions, "Actions", task_action, IN_PLACE),
	F_JSON(schedule, "Schedule"),
	F_JSON(secrets, "Secrets"),
};

static void
validate_task(const void *obj, struct problems *p)
{
	const struct task *t = obj;
	size_t i;

	if (!name_is_task(str(t->name)))
		model_problem(p, "a task's name must have 1 to 128 letters, digits, '.', '_' "
				 "and '-' and no leading dot, and must not be \"alloc\"");
	if (!*str(t->driver))
		model_problem(p, "driver is missing");
	if (t->kill_timeout < 0 || t->shutdown_delay < 0)
		model_problem(p, "kill_timeout and shutdown_delay must not be negative");
	if (*str(t->kill_signal) && !is_signal_name(t->kill_signal))
		model_problem(p, "kill_signal \"%.40s\" is not a signal", t->kill_signal);
	for (i = 0; i < t->env.n; i++)
		if (!*str(t->env.v[i].key) || strchr(t->env.v[i].key, '='))
			model_problem(p, "\"%.100s\" cannot be the name of an environment variable",
			    str(t->env.v[i].key));
	for (i = 0; i < t->identities.n; i++)
		if (identity_of(t, str(t->identities.v[i].name)) != &t->identities.v[i])
			model_problem(p, "it has two identities with the name \"%.128s\"",
			    str(t->identities.v[i].name));
	for (i = 0; i < t->actions.n; i++)
		if (task_action_of(t, str(t->actions.v[i].name)) != &t->actions.v[i])
			model_problem(p, "it has two actions with the name \"%.128s\"",
			    str(t->actions.v[i].name));
	task_templates_validate(t, p);
}
MODEL_TYPE(task, task_fields, .name = "task", .validate = validate_task,
    .title = 1 + offsetof(struct task, name));
#undef S
