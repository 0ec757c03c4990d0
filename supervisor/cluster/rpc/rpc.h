/* SPDX-License-Identifier: Apache-2.0 */
/* rpc.h: arguments and answers of the calls between node and servers. Every body on the link is one
 * of these structs or a model struct, encoded by model_to_msgpack() and decoded by
 * model_from_msgpack(). Runs in: supervisor. MODEL_DECLARE makes rpc_x_type, _init, _done … for
 * each. Requests are sent with MODEL_COMPACT, except Node.Register, because a server would keep nil
 * for a missing block. */
#ifndef DROVER_SUPERVISOR_CLUSTER_RPC_RPC_H
#define DROVER_SUPERVISOR_CLUSTER_RPC_RPC_H

#include "model/alloc.h"
#include "model/engine/msgpack.h"
#include "model/node.h"
#include "model/rpc_meta.h"
#include "model/volume.h"

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

/* Alloc.GetAllocs. */
struct rpc_allocs_req {
	struct strings alloc_ids;
	struct rpc_query query;
};

/* Raw allocs for rpc_alloc_decode(), decoded one by one, so that one invalid alloc does not affect
 * the others. */
struct rpc_allocs_rep {
	struct raws allocs;
	struct rpc_meta meta;
};

/* Decodes one alloc of rpc_allocs_rep into an initialised alloc. Fields that an older server does
 * not have stay unset; job_complete() fills them in. Returns as model_from_msgpack(); after -EINVAL
 * and -EMSGSIZE *ret has the identity of the alloc (ids, group, indexes, desired status) if that
 * can be decoded, so that it can be reported as failed with *e. */
int rpc_alloc_decode(const struct raw *raw, struct alloc *ret, struct err *e);

/* Alloc.GetAlloc. */
struct rpc_alloc_req {
	char *alloc_id;
	struct rpc_query query;
};

struct rpc_get_alloc_rep {
	struct alloc *alloc; /* NULL: the servers do not have it */
	struct rpc_meta meta;
};

/* Node.UpdateAlloc: of each alloc what alloc_update_type has. The answer is rpc_meta_rep. */
struct rpc_update_req {
	MODEL_LIST(struct alloc)
	allocs; /* list_add(alloc, …), then model_copy(&alloc_update_type, …) */
	struct rpc_write write;
};

/* Node.EmitEvents; the key is the node's id. The answer is rpc_meta_rep. */
struct rpc_node_events {
	MODEL_LIST(struct node_event) events;
};

struct rpc_events_req {
	MODEL_MAP(struct rpc_node_events) node_events;
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

/* Alloc.SignIdentities. */
struct rpc_identity {
	char *alloc_id, *identity_name, *workload_identifier, *interpolated_workload_identifier;
	int64_t workload_type; /* 0 task, 1 service */
	/* In an answer: the token, or the reason why it was not signed. */
	char *jwt;
	int64_t expiration; /* time; 0: never */
	char *reason;
};

struct rpc_sign_req {
	MODEL_LIST(struct rpc_identity) identities;
	struct rpc_query query;
};

struct rpc_sign_rep {
	MODEL_LIST(struct rpc_identity) signed_identities;
	MODEL_LIST(struct rpc_identity) rejections;
	struct rpc_meta meta;
};

/* CSIVolume.Claim. */
struct rpc_claim_req {
	char *volume_id, *alloc_id, *node_id, *external_node_id;
	enum claim_mode claim;
	enum csi_access access_mode;
	enum csi_attachment attachment_mode;
	enum claim_state state;
	struct rpc_write write; /* namespace: the job's */
};

struct rpc_claim_rep {
	struct string_map publish_context;
	struct csi_volume *volume;
	struct rpc_meta meta;
};

/* CSIVolume.Unpublish. The answer is rpc_meta_rep. */
struct rpc_unpublish_req {
	char *volume_id;
	struct csi_claim *claim; /* state: CLAIM_UNPUBLISHING */
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
MODEL_DECLARE(rpc_allocs_req);
MODEL_DECLARE(rpc_allocs_rep);
MODEL_DECLARE(rpc_alloc_req);
MODEL_DECLARE(rpc_get_alloc_rep);
MODEL_DECLARE(rpc_update_req);
MODEL_DECLARE(rpc_node_events);
MODEL_DECLARE(rpc_events_req);
MODEL_DECLARE(rpc_drain_req);
MODEL_DECLARE(rpc_identity);
MODEL_DECLARE(rpc_sign_req);
MODEL_DECLARE(rpc_sign_rep);
MODEL_DECLARE(rpc_claim_req);
MODEL_DECLARE(rpc_claim_rep);
MODEL_DECLARE(rpc_unpublish_req);
MODEL_DECLARE(rpc_services_req);
MODEL_DECLARE(rpc_service_delete_req);

#endif
