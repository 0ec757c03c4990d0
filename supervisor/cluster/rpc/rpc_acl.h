/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc_acl.h: the servers' answers about an ACL token: its owner, roles and policies. Runs in:
 * supervisor.
 */
#ifndef DROVER_SUPERVISOR_CLUSTER_RPC_RPC_ACL_H
#define DROVER_SUPERVISOR_CLUSTER_RPC_RPC_ACL_H

#include "supervisor/cluster/rpc/rpc.h"

struct rpc_role_link {
	char *id, *name;
};

struct rpc_token {
	char *accessor_id, *name;
	char *type; /* "client" or "management" */
	struct strings policies;
	MODEL_LIST(struct rpc_role_link) roles;
	int64_t expiration_time; /* 0: never */
};

/* Claims of a workload's token. */
struct acl_claims {
	char *namespace, *alloc_id, *task;
};

/* The identity of a request: one of these two; neither for a node. */
struct acl_identity {
	struct rpc_token *token;
	struct acl_claims *claims;
};

/* ACL.WhoAmI. The request is rpc_query_req. */
struct rpc_who_rep {
	struct acl_identity *identity;
	struct rpc_meta meta;
};

/* ACL.GetRolesByID. */
struct rpc_roles_req {
	struct strings role_ids;
	struct rpc_query query;
};

struct rpc_policy_link {
	char *name;
};

struct rpc_role {
	MODEL_LIST(struct rpc_policy_link) policies;
};

struct rpc_roles_rep {
	MODEL_MAP(struct rpc_role) roles;
	struct rpc_meta meta;
};

/* ACL.GetPolicies; for a workload ACL.GetClaimPolicies, whose request is rpc_query_req. */
struct rpc_policies_req {
	struct strings names;
	struct rpc_query query;
};

struct rpc_policy {
	char *name, *rules; /* HCL */
};

struct rpc_policies_rep {
	MODEL_MAP(struct rpc_policy) policies;
	struct rpc_meta meta;
};

/* The fields of a server's request that say who sends it and which object it is about. */
struct rpc_caller {
	char *auth_token, *namespace, *alloc_id, *task;
};

MODEL_DECLARE(rpc_role_link);
MODEL_DECLARE(rpc_token);
MODEL_DECLARE(acl_claims);
MODEL_DECLARE(acl_identity);
MODEL_DECLARE(rpc_who_rep);
MODEL_DECLARE(rpc_roles_req);
MODEL_DECLARE(rpc_policy_link);
MODEL_DECLARE(rpc_role);
MODEL_DECLARE(rpc_roles_rep);
MODEL_DECLARE(rpc_policies_req);
MODEL_DECLARE(rpc_policy);
MODEL_DECLARE(rpc_policies_rep);
MODEL_DECLARE(rpc_caller);

#endif
