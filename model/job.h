/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h: a job and its groups, as in Nomad's API (tasks: task.h). After job_complete() each field
 * that has a default is set. Runs in: supervisor, cli.
 */
#ifndef DROVER_MODEL_JOB_H
#define DROVER_MODEL_JOB_H

#include "model/engine/field.h"
#include "model/job_parent.h"
#include "model/service.h"
#include "model/task.h"

enum job_kind { JOB_TYPE_NONE, JOB_SERVICE, JOB_BATCH, JOB_SYSTEM, JOB_SYSBATCH };
enum job_status { JOB_STATUS_NONE, JOB_PENDING, JOB_RUNNING, JOB_DEAD };

struct reschedule_policy {
	int64_t attempts;
	int64_t interval, delay, max_delay;
	enum delay_function {
		DELAY_NONE,
		DELAY_CONSTANT,
		DELAY_EXPONENTIAL,
		DELAY_FIBONACCI
	} delay_function;
	enum opt_bool unlimited;
};

struct update_strategy {
	int64_t stagger;
	int64_t max_parallel;
	char *health_check;
	int64_t min_healthy_time, healthy_deadline, progress_deadline;
	enum opt_bool auto_revert, auto_promote;
	int64_t canary;
};

struct migrate_strategy {
	int64_t max_parallel;
	char *health_check;
	int64_t min_healthy_time, healthy_deadline;
};

struct ephemeral_disk {
	enum opt_bool sticky, migrate;
	int64_t size_mb;
};

struct disconnect_strategy {
	int64_t lost_after, stop_on_client_after;
	enum opt_bool replace;
	char *reconcile;
};

/* The group's `volume` block. Its key in the group's map is the alias that volume_mount uses. */
struct volume_request {
	char *name;
	enum volume_kind { VOLUME_NONE, VOLUME_HOST, VOLUME_CSI } type;
	char *source;
	bool read_only;
	enum csi_access access_mode;
	enum csi_attachment attachment_mode;
	struct mount_options *mount_options; /* may be NULL */
	bool per_alloc;
	bool sticky;
};

struct task_group {
	char *name;
	int64_t count;
	MODEL_LIST(struct constraint) constraints;
	json_t *affinities, *spreads;
	MODEL_LIST(struct task) tasks;
	struct restart_policy *restart_policy;
	struct reschedule_policy *reschedule_policy;
	struct update_strategy *update;
	struct migrate_strategy *migrate;
	struct ephemeral_disk *ephemeral_disk;
	struct disconnect_strategy *disconnect;
	MODEL_MAP(struct volume_request) volumes;
	struct string_map meta;
	int64_t shutdown_delay;
	int64_t stop_after_client_disconnect, max_client_disconnect, max_run_duration;
	enum opt_bool prevent_reschedule_on_lost;
	MODEL_LIST(struct network_resource) networks;
	MODEL_LIST(struct service) services;
	json_t *consul, *scaling;
};

struct job {
	char *id, *name, *namespace, *region, *parent_id;
	enum job_kind type;
	int64_t priority;
	enum opt_bool all_at_once;
	bool stop;
	struct strings datacenters;
	char *node_pool;
	MODEL_LIST(struct constraint) constraints;
	json_t *affinities, *spreads;
	MODEL_LIST(struct task_group) task_groups;
	struct update_strategy *update;
	struct periodic_config *periodic;            /* NULL if the job is not periodic */
	struct parameterized_job *parameterized;     /* NULL if it is not parameterized */
	json_t *multiregion, *ui, *version_tag;      /* NULL if not set */
	struct reschedule_policy *reschedule_policy; /* for groups without their own */
	struct migrate_strategy *migrate;
	bool dispatched;
	char *dispatch_idempotency_token,
	    *payload; /* payload: base64 of the Snappy bytes as received */
	struct string_map meta;
	char *consul_token, *consul_namespace, *vault_token, *vault_namespace, *nomad_token_id;
	enum job_status status;
	char *status_description;
	bool stable;
	uint64_t version;
	int64_t submit_time; /* ns */
	uint64_t create_index, modify_index, job_modify_index;
};

MODEL_DECLARE(reschedule_policy);
MODEL_DECLARE(update_strategy);
MODEL_DECLARE(migrate_strategy);
MODEL_DECLARE(ephemeral_disk);
MODEL_DECLARE(disconnect_strategy);
MODEL_DECLARE(volume_request);
/* Sets *ret to the id of the volume for the group's alloc of that index: "data", or "data[3]" with
 * per_alloc. The caller frees *ret. */
void volume_request_source(const struct volume_request *vr, int64_t index, char **ret);
MODEL_DECLARE(task_group);
MODEL_DECLARE(job);

extern const char *const job_kind_names[JOB_SYSBATCH + 1];
extern const char *const job_status_names[JOB_DEAD + 1];

/* Fills in Nomad's defaults and completes each task's restart block from its group's. */
void job_complete(struct job *job);
const struct task_group *job_group(const struct job *job, const char *name);
const struct task *group_task(const struct task_group *group, const char *name);
/* Returns stop_after_client_disconnect or disconnect.stop_on_client_after in ms; 0 if neither is
 * set, so that there is no lease. */
uint64_t group_stop_after_ms(const struct task_group *group);
/* Returns the size of the group's ephemeral_disk, or 0 if it has none. */
int64_t group_disk_mb(const struct task_group *group);
/* Returns the network that the group's allocs have of their own; NULL: they use the host's. */
const struct network_resource *group_own_network(const struct task_group *group);
#endif
