/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_serve.h: requests that servers send to a node, and its answers. An answer without its own
 * struct is rpc_meta_rep; an empty answer is the byte 0x80. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_RPC_RPC_SERVE_H
#define DROVER_SUPERVISOR_CLUSTER_RPC_RPC_SERVE_H

#include "model/node_answers.h"
#include "model/stats.h"
#include "supervisor/cluster/rpc/rpc.h"

/* Allocations.Signal, Restart, Stats, Checks, GarbageCollect: each method uses some of these
 * fields. ClientStats.Stats, NodeMeta.Read and Allocations.GarbageCollectAll use rpc_node_req. */
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

#endif
