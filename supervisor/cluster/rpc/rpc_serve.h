/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_serve.h: requests that servers send to a node, and its answers. An answer without its own
 * struct is rpc_meta_rep; an empty answer is the byte 0x80. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_RPC_RPC_SERVE_H
#define DROVER_SUPERVISOR_CLUSTER_RPC_RPC_SERVE_H

#include "model/node_answers.h"
#include "model/stats.h"
#include "supervisor/cluster/rpc/rpc.h"

/* Allocations.Signal, Restart, Stats, Checks, GarbageCollect, SetPauseState, GetPauseState: each
 * uses some of these fields. ClientStats.Stats, NodeMeta.Read and Allocations.GarbageCollectAll use
 * rpc_node_req. */
struct rpc_task_req {
	char *alloc_id, *task; /* for Signal; empty: all tasks */
	char *task_name;       /* the name of the field in Restart */
	bool all_tasks;
	char *signal, *schedule_state;
	struct rpc_query query;
};

struct rpc_alloc_usage_rep {
	struct alloc_usage *stats;
	struct rpc_meta meta;
};

/* Allocations.Checks: a map by id; nil without checks. */
struct rpc_checks_rep {
	MODEL_MAP(struct check_result) results;
	struct rpc_meta meta;
};

struct rpc_host_stats_rep {
	struct host_stats *host_stats;
	struct rpc_meta meta;
};

/* Allocations.Exec. */
struct rpc_exec_req {
	char *alloc_id, *task;
	bool tty;
	struct strings cmd;
	char *job_id, *action;
	struct rpc_query query;
};

/* An object that follows the request on the stream. Each field is optional; an object without
 * fields is a heartbeat. */
struct rpc_exec_input {
	bool has_stdin, has_size, close;
	const char *data; /* points into the object; NULL: none */
	size_t len;
	int64_t height, width;
};

/* FileSystem.List, Stat, Stream, Logs. */
struct rpc_fs_req {
	char *alloc_id, *path;
	char *task, *log_type; /* Logs: "stdout" or "stderr" */
	int64_t offset, limit; /* a limit of 0 or less means none */
	char *origin;          /* "start" or "end"; empty: start */
	bool plain_text, follow;
	struct rpc_query query;
};

struct rpc_fs_stat_rep {
	struct rpc_file *info;
	struct rpc_meta meta;
};

/* Agent.Monitor. */
struct rpc_monitor_req {
	char *log_level;
	bool log_json, log_include_location, plain_text;
	char *node_id, *server_id;
	struct rpc_query query;
};

/* NodeMeta.Apply. A null value removes the key. */
struct rpc_meta_apply_req {
	char *node_id;
	json_t *meta;
	struct rpc_query query;
};

/* NodeIdentity.Get. */
struct rpc_claims_rep {
	json_t *claims;
};

/* The first object of a stream, and the answer of the accepting side. */
struct rpc_stream_open {
	char *method;
};

struct rpc_stream_accept {
	char *error;
};

/* CSI.NodeDetachVolume, NodeExpandVolume. */
struct rpc_csi_node_req {
	char *plugin_id, *volume_id, *volume_namespace, *alloc_id, *node_id, *external_id;
	enum csi_attachment attachment_mode;
	enum csi_access access_mode;
	bool read_only;
	struct csi_capacity_range {
		int64_t required_bytes, limit_bytes;
	} * capacity;
	struct csi_claim *claim;
};

/* CSI.Controller*: each uses some of these fields. The file system in MountOptions is FSType, but
 * Filesystem in ControllerAttachVolume. */
struct rpc_csi_mount_options {
	char *fs_type, *filesystem;
	struct strings mount_flags;
};

struct rpc_csi_controller_req {
	char *controller_node_id, *plugin_id;
	char *volume_id;          /* Validate, Attach, Detach: the plugin's own id */
	char *external_volume_id; /* Expand, Delete */
	char *client_csi_node_id, *name;
	enum csi_attachment attachment_mode;
	enum csi_access access_mode;
	MODEL_LIST(struct csi_capability) volume_capabilities;
	struct csi_capability *volume_capability;
	struct rpc_csi_mount_options *mount_options;
	bool read_only;
	struct string_map secrets, parameters, context, volume_context;
	int64_t capacity_min, capacity_max; /* bytes */
	struct csi_capacity_range *capacity_range;
	char *snapshot_id, *clone_id;
	struct csi_topology_request *requested_topologies;
	int64_t max_entries;
	char *starting_token;
	char *external_source_volume_id, *id; /* snapshots */
};

MODEL_DECLARE(rpc_task_req);
MODEL_DECLARE(rpc_alloc_usage_rep);
MODEL_DECLARE(rpc_checks_rep);
MODEL_DECLARE(rpc_host_stats_rep);
MODEL_DECLARE(rpc_exec_req);
MODEL_DECLARE(rpc_fs_req);
MODEL_DECLARE(rpc_fs_stat_rep);
MODEL_DECLARE(rpc_monitor_req);
MODEL_DECLARE(rpc_meta_apply_req);
MODEL_DECLARE(rpc_claims_rep);
MODEL_DECLARE(rpc_stream_open);
MODEL_DECLARE(rpc_stream_accept);
MODEL_DECLARE(csi_capacity_range);
MODEL_DECLARE(rpc_csi_node_req);
MODEL_DECLARE(rpc_csi_mount_options);
MODEL_DECLARE(rpc_csi_controller_req);

/* One frame of a server's stream: bytes, or the error that ends it. */
struct rpc_frame {
	bool failed, event;
	int64_t code;        /* 0: none */
	const char *message; /* points into the object, as payload does; not NUL-terminated */
	const char *payload; /* NULL: none */
	size_t message_len, len;
};

/* Returns 0, or -EBADMSG with *e. Unknown keys are ignored. */
int rpc_frame_parse(const void *data, size_t len, struct rpc_frame *ret, struct err *e);
int rpc_exec_input_parse(const void *data, size_t len, struct rpc_exec_input *ret, struct err *e);

/* Append one frame of a stream: bytes (none: the heartbeat of a plain stream), or the error that
 * ends it, with an HTTP status. t->failed is set if memory runs out. */
void rpc_frame_data(struct text *t, const void *data, size_t len);
void rpc_frame_error(struct text *t, int code, const char *message);
/* Append one object for a command on another node; an object without fields is a heartbeat. */
void rpc_exec_input_put(struct text *t, const struct rpc_exec_input *in);

#endif
