/* SPDX-License-Identifier: Apache-2.0 */
/* task.h: a task of a job, and the blocks that groups have too. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_TASK_H
#define DROVER_MODEL_TASK_H

#include "model/csi.h"
#include "model/engine/field.h"
#include "model/identity.h"
#include "model/network.h"
#include "model/service.h"
#include "model/task_template.h"

struct constraint {
	char *l_target, *r_target, *operand;
};

struct restart_policy {
	int64_t attempts, interval, delay;
	enum restart_mode { RESTART_NONE, RESTART_FAIL, RESTART_DELAY } mode;
	enum opt_bool render_templates;
};

struct requested_device {
	char *name;
	int64_t count;
	json_t *constraints, *affinities;
};

/* memory_max of a task that may use as much memory as the machine has. */
#define MEMORY_NO_LIMIT (-1)

struct resources {
	int64_t cpu /* MHz */, cores;
	int64_t memory_mb, memory_max_mb, disk_mb, iops, secrets_mb;
	MODEL_LIST(struct network_resource) networks;
	MODEL_LIST(struct requested_device) devices;
	json_t *numa;
};

enum log_destination { LOG_TO_NONE, LOG_TO_FILES, LOG_TO_JOURNALD, LOG_TO_BOTH };
struct log_config {
	int64_t max_files, max_file_size_mb;
	enum opt_bool disabled;
	enum log_destination destination;
};

struct lifecycle {
	enum lifecycle_hook { HOOK_NONE, HOOK_PRESTART, HOOK_POSTSTART, HOOK_POSTSTOP } hook;
	bool sidecar;
};

/* The names are the API's, including the hyphens of host-to-task. */
enum mount_propagation {
	PROPAGATION_NONE,
	PROPAGATION_PRIVATE,
	PROPAGATION_HOST_TO_TASK,
	PROPAGATION_BIDIRECTIONAL
};

struct volume_mount {
	char *volume; /* the alias in the group's volumes */
	char *destination;
	bool read_only;
	enum mount_propagation propagation_mode;
	char *selinux_label;
};

struct csi_plugin_block {
	char *id;
	enum csi_plugin_kind {
		CSI_PLUGIN_NONE,
		CSI_PLUGIN_CONTROLLER,
		CSI_PLUGIN_NODE,
		CSI_PLUGIN_MONOLITH
	} type;
	char *mount_dir, *stage_publish_base_dir;
	int64_t health_timeout;
};

/* A named command that users with the permission can run inside the task. */
struct task_action {
	char *name, *command;
	struct strings args;
};

/* The file in the task's directory `local` that gets the payload of a dispatched job. */
struct dispatch_payload {
	char *file;
};

/* A file or directory that is fetched before the task starts. */
struct task_artifact {
	char *source, *mode, *dest; /* dest: NULL: in local/ */
	struct string_map options, headers;
	bool insecure, chown;
};

struct task {
	char *name, *driver, *user;
	json_t *config; /* the driver's block, an object; or NULL */
	struct string_map env, meta;
	MODEL_LIST(struct constraint) constraints;
	struct resources *resources;
	struct restart_policy *restart_policy;
	struct lifecycle *lifecycle; /* NULL: it is a main task */
	struct log_config *log_config;
	MODEL_LIST(struct volume_mount) volume_mounts;
	struct csi_plugin_block *csi_plugin;       /* NULL: it is not a CSI plugin */
	struct dispatch_payload *dispatch_payload; /* may be NULL */
	int64_t kill_timeout, shutdown_delay;
	char *kill_signal, *kind;
	bool leader;
	MODEL_LIST(struct service) services;
	struct workload_identity *identity; /* the default one; NULL if not set */
	MODEL_LIST(struct workload_identity) identities;
	MODEL_LIST(struct task_action) actions;
	MODEL_LIST(struct task_artifact) artifacts;
	MODEL_LIST(struct task_template) templates;
	/* Stored and shown, but used only by code with a parser of its own. */
	json_t *affinities, *vault, *consul, *scaling_policies, *schedule, *secrets;
};

MODEL_DECLARE(constraint);
MODEL_DECLARE(restart_policy);
MODEL_DECLARE(requested_device);
MODEL_DECLARE(resources);
MODEL_DECLARE(log_config);
MODEL_DECLARE(lifecycle);
MODEL_DECLARE(volume_mount);
MODEL_DECLARE(csi_plugin_block);
MODEL_DECLARE(task_action);
MODEL_DECLARE(dispatch_payload);
MODEL_DECLARE(task_artifact);
MODEL_DECLARE(task);

extern const char *const restart_mode_names[RESTART_DELAY + 1];
extern const char *const lifecycle_hook_names[HOOK_POSTSTOP + 1];
extern const char *const csi_plugin_kind_names[CSI_PLUGIN_MONOLITH + 1];
extern const char *const log_destination_names[LOG_TO_BOTH + 1];
extern const char *const mount_propagation_names[PROPAGATION_BIDIRECTIONAL + 1];

/* Return the task's identity or action of that name, or NULL. */
const struct workload_identity *identity_of(const struct task *task, const char *name);
const struct task_action *task_action_of(const struct task *task, const char *name);
/* Returns whether more parts of this path are ".." than the names before them and `depth`. */
bool path_leaves(const char *path, unsigned depth);
/* Returns whether name is a signal: "SIGHUP" or "HUP". */
bool is_signal_name(const char *name);

#endif
