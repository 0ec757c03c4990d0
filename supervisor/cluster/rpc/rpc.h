/* SPDX-License-Identifier: Apache-2.0 */
/* rpc.h: arguments and answers of the calls between node and servers. Every body on the link is one
 * of these structs or a model struct, encoded by model_to_msgpack() and decoded by
 * model_from_msgpack(). Runs in: supervisor. MODEL_DECLARE makes rpc_x_type, _init, _done … for
 * each. Requests are sent with MODEL_COMPACT, except Node.Register, because a server would keep nil
 * for a missing block. */
#ifndef DROVER_SUPERVISOR_CLUSTER_RPC_RPC_H
#define DROVER_SUPERVISOR_CLUSTER_RPC_RPC_H

#include "model/engine/msgpack.h"
#include "model/node.h"
#include "model/rpc_meta.h"
#include "model/service.h"

/* QueryOptions, part of every read request. */
struct rpc_query {
	char *region, *namespace, *auth_token;
	uint64_t min_query_index; /* if above 0: blocks until the index is higher */
	int64_t max_query_time;   /* duration; 0: the server's 300 s */
	bool allow_stale;
	char *prefix, *filter, *next_token;
	int64_t per_page;
	bool reverse;
};

/* WriteRequest, part of every other request. */
struct rpc_write {
	char *region, *namespace, *auth_token, *idempotency_token;
};

/* For calls without other fields. */
struct rpc_query_req {
	struct rpc_query query;
};

struct rpc_meta_rep {
	struct rpc_meta meta;
};

/* Node.Register. The answer is rpc_node_rep. */
struct rpc_register_req {
	struct node *node;
	struct rpc_write write;
};

/* Node.UpdateStatus. The answer is rpc_node_rep. */
struct rpc_status_req {
	char *node_id;
	enum node_status status;
	bool force_identity_renewal;
	struct rpc_write write;
};

struct rpc_server {
	char *rpc_advertise_addr; /* "10.0.0.1:4647" */
	int64_t rpc_major_version, rpc_minor_version;
	char *datacenter;
};

struct rpc_node_rep {
	int64_t heartbeat_ttl; /* duration; 0: the stored status is "down" */
	struct strings eval_ids;
	uint64_t eval_create_index, node_modify_index, features;
	char *leader_rpc_addr; /* empty: the server knows no leader */
	int64_t num_nodes;
	MODEL_LIST(struct rpc_server) servers;
	enum node_eligibility scheduling_eligibility;
	char *signed_identity; /* a new node identity, or empty */
	struct rpc_meta meta;
};

/* NodeSpecificRequest: Node.GetClientAllocs, Node.GetNode. */
struct rpc_node_req {
	char *node_id, *secret_id;
	struct rpc_query query;
};

struct rpc_client_allocs_rep {
	struct int_map allocs; /* maps an alloc id to its AllocModifyIndex */
	struct string_map migrate_tokens;
	struct rpc_meta meta;
};

struct rpc_get_node_rep {
	struct node *node;
	struct rpc_meta meta;
};

/* Node.EmitEvents; the key is the node's id. The answer is rpc_meta_rep. */
struct rpc_node_events {
	MODEL_LIST(struct node_event) events;
};

struct rpc_events_req {
	MODEL_MAP(struct rpc_node_events) node_events;
	struct rpc_write write;
};

/* Node.Deregister. The answer is rpc_node_rep. */
struct rpc_deregister_req {
	char *node_id;
	struct rpc_write write;
};

/* Node.UpdateDrain, for a node that leaves. The answer is rpc_node_rep. */
struct rpc_drain_req {
	char *node_id;
	struct drain_strategy *drain_strategy;
	bool mark_eligible;
	struct string_map meta;
	struct rpc_write write;
};

/* ServiceRegistration.Upsert; its namespace is empty. The answer is rpc_meta_rep. */
struct rpc_services_req {
	MODEL_LIST(struct service_registration) services;
	struct rpc_write write;
};

/* ServiceRegistration.DeleteByID; its namespace is the service's. */
struct rpc_service_delete_req {
	char *id;
	struct rpc_write write;
};

MODEL_DECLARE(rpc_query_req);
MODEL_DECLARE(rpc_meta_rep);
MODEL_DECLARE(rpc_register_req);
MODEL_DECLARE(rpc_status_req);
MODEL_DECLARE(rpc_server);
MODEL_DECLARE(rpc_node_rep);
MODEL_DECLARE(rpc_node_req);
MODEL_DECLARE(rpc_client_allocs_rep);
MODEL_DECLARE(rpc_get_node_rep);
MODEL_DECLARE(rpc_node_events);
MODEL_DECLARE(rpc_events_req);
MODEL_DECLARE(rpc_deregister_req);
MODEL_DECLARE(rpc_drain_req);
MODEL_DECLARE(rpc_services_req);
MODEL_DECLARE(rpc_service_delete_req);

#endif
