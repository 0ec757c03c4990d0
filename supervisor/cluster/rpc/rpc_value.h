/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_value.h: calls to servers for what the templates of tasks show. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_RPC_RPC_VALUE_H
#define DROVER_SUPERVISOR_CLUSTER_RPC_RPC_VALUE_H

#include "supervisor/cluster/rpc/rpc.h"

/* A variable of an answer, without its lock. */
struct rpc_variable {
	char *namespace, *path;
	uint64_t create_index, modify_index;
	int64_t create_time, modify_time;
	struct string_map items;
};

/* Variables.Read. Variables.List is an rpc_query_req. */
struct rpc_variable_req {
	char *path;
	struct rpc_query query;
};

struct rpc_variable_rep {
	struct rpc_variable *data; /* NULL: there is none */
	struct rpc_meta meta;
};

struct rpc_variables_rep {
	MODEL_LIST(struct rpc_variable) data;
	struct rpc_meta meta;
};

/* ServiceRegistration.GetService. ServiceRegistration.List is an rpc_query_req. */
struct rpc_service_req {
	char *service_name;
	char *choose; /* "count|key" */
	struct rpc_query query;
};

struct rpc_service_rep {
	MODEL_LIST(struct service_registration) services;
	struct rpc_meta meta;
};

struct rpc_service_name {
	char *service_name;
	struct strings tags;
};

struct rpc_service_namespace {
	char *namespace;
	MODEL_LIST(struct rpc_service_name) services;
};

struct rpc_service_list_rep {
	MODEL_LIST(struct rpc_service_namespace) services;
	struct rpc_meta meta;
};

MODEL_DECLARE(rpc_variable);
MODEL_DECLARE(rpc_variable_req);
MODEL_DECLARE(rpc_variable_rep);
MODEL_DECLARE(rpc_variables_rep);
MODEL_DECLARE(rpc_service_req);
MODEL_DECLARE(rpc_service_rep);
MODEL_DECLARE(rpc_service_name);
MODEL_DECLARE(rpc_service_namespace);
MODEL_DECLARE(rpc_service_list_rep);

#endif
