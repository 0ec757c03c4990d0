/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_acl.c: field tables of the servers' answers about ACL tokens. Runs in: supervisor. */
#include "supervisor/cluster/rpc/rpc_acl.h"

#include "supervisor/cluster/rpc/rpc_table.h"

#define S rpc_role_link
static const struct field rpc_role_link_fields[] = { F_STRING(id, "ID"), F_STRING(name, "Name") };
MODEL_TYPE(rpc_role_link, rpc_role_link_fields, .name = "role");
#undef S

#define S rpc_token
static const struct field rpc_token_fields[] = {
	F_STRING(accessor_id, "AccessorID"),
	F_STRING(name, "Name"),
	F_STRING(type, "Type"),
	F_STRINGS(policies, "Policies"),
	F_LIST(roles, "Roles", rpc_role_link),
	F_TIME(expiration_time, "ExpirationTime"),
};
MODEL_TYPE(rpc_token, rpc_token_fields, .name = "token");
#undef S

#define S acl_claims
static const struct field acl_claims_fields[] = {
	F_STRING(namespace, "Namespace"),
	F_STRING(alloc_id, "AllocationID"),
	F_STRING(task, "TaskName"),
};
MODEL_TYPE(acl_claims, acl_claims_fields, .name = "claims");
#undef S

#define S acl_identity
static const struct field acl_identity_fields[] = {
	F_POINTER(token, "ACLToken", rpc_token),
	F_POINTER(claims, "Claims", acl_claims),
};
MODEL_TYPE(acl_identity, acl_identity_fields, .name = "identity");
#undef S

#define S rpc_who_rep
static const struct field rpc_who_rep_fields[] = {
	F_POINTER(identity, "Identity", acl_identity),
	RPC_META,
};
MODEL_TYPE(rpc_who_rep, rpc_who_rep_fields, .name = "answer");
#undef S

#define S rpc_roles_req
static const struct field rpc_roles_req_fields[] = {
	F_STRINGS(role_ids, "ACLRoleIDs"),
	RPC_QUERY,
};
MODEL_TYPE(rpc_roles_req, rpc_roles_req_fields, .name = "request");
#undef S

#define S rpc_policy_link
static const struct field rpc_policy_link_fields[] = { F_STRING(name, "Name") };
MODEL_TYPE(rpc_policy_link, rpc_policy_link_fields, .name = "policy");
#undef S

#define S rpc_role
static const struct field rpc_role_fields[] = { F_LIST(policies, "Policies", rpc_policy_link) };
MODEL_TYPE(rpc_role, rpc_role_fields, .name = "role");
#undef S

#define S rpc_roles_rep
static const struct field rpc_roles_rep_fields[] = {
	F_MAP(roles, "ACLRoles", rpc_role),
	RPC_META,
};
MODEL_TYPE(rpc_roles_rep, rpc_roles_rep_fields, .name = "answer");
#undef S

#define S rpc_policies_req
static const struct field rpc_policies_req_fields[] = {
	F_STRINGS(names, "Names"),
	RPC_QUERY,
};
MODEL_TYPE(rpc_policies_req, rpc_policies_req_fields, .name = "request");
#undef S

#define S rpc_policy
static const struct field rpc_policy_fields[] = {
	F_STRING(name, "Name"),
	F_STRING(rules, "Rules"),
};
MODEL_TYPE(rpc_policy, rpc_policy_fields, .name = "policy");
#undef S

#define S rpc_policies_rep
static const struct field rpc_policies_rep_fields[] = {
	F_MAP(policies, "Policies", rpc_policy),
	RPC_META,
};
MODEL_TYPE(rpc_policies_rep, rpc_policies_rep_fields, .name = "answer");
#undef S

#define S rpc_caller
static const struct field rpc_caller_fields[] = {
	F_STRING(auth_token, "AuthToken"),
	F_STRING(namespace, "Namespace"),
	F_STRING(alloc_id, "AllocID"),
	F_STRING(task, "Task"),
};
MODEL_TYPE(rpc_caller, rpc_caller_fields, .name = "request");
#undef S
