// SPDX-License-Identifier: Apache-2.0
/* acl.c: field tables of ACL policies, tokens and roles. Runs in: supervisor. */
#include "model/acl.h"

#include "model/engine/table.h"

#define S acl_job
static const struct field acl_job_fields[] = {
	F_STRING(namespace, "Namespace"),
	F_STRING(job_id, "JobID"),
	F_STRING(group, "Group"),
	F_STRING(task, "Task"),
};
MODEL_TYPE(acl_job, acl_job_fields, .name = "JobACL");
#undef S

#define S acl_policy
#define STUB_FIELDS                                                                                \
	F_STRING(name, "Name"), F_STRING(description, "Description"),                              \
	    F_POINTER(job, "JobACL", acl_job), F_UINT(create_index, "CreateIndex"),                \
	    F_UINT(modify_index, "ModifyIndex")
static const struct field acl_policy_fields[] = { F_STRING(rules, "Rules"), STUB_FIELDS };
static const struct field acl_policy_stub_fields[] = { STUB_FIELDS };
MODEL_TYPE(acl_policy, acl_policy_fields, .name = "policy",
    .title = 1 + offsetof(struct acl_policy, name));
const struct type acl_policy_stub_type = { .size = sizeof(struct acl_policy),
	.fields = acl_policy_stub_fields,
	.n = ELEMENTSOF(acl_policy_stub_fields),
	.name = "policy" };
#undef STUB_FIELDS
#undef S

#define S acl_link
static const struct field acl_link_fields[] = {
	F_STRING(id, "ID", .flags = FIELD_OMIT_EMPTY),
	F_STRING(name, "Name"),
};
MODEL_TYPE(acl_link, acl_link_fields, .name = "link");
#undef S

#define S acl_token
#define STUB_FIELDS                                                                                \
	F_STRING(accessor_id, "AccessorID"), F_STRING(name, "Name"), F_STRING(type, "Type"),       \
	    F_STRINGS(policies, "Policies"), F_LIST(roles, "Roles", acl_link),                     \
	    F_BOOL(global, "Global"), F_TIME(create_time, "CreateTime"),                           \
	    F_TIME(expiration_time, "ExpirationTime", .flags = FIELD_OMIT_EMPTY),                  \
	    F_UINT(create_index, "CreateIndex"), F_UINT(modify_index, "ModifyIndex")
static const struct field acl_token_fields[] = {
	F_STRING(secret_id, "SecretID", .flags = FIELD_SEALED),
	F_STRING(expiration_ttl, "ExpirationTTL"),
	STUB_FIELDS,
};
static const struct field acl_token_stub_fields[] = { STUB_FIELDS };
MODEL_TYPE(acl_token, acl_token_fields, .name = "token",
    .title = 1 + offsetof(struct acl_token, accessor_id));
const struct type acl_token_stub_type = { .size = sizeof(struct acl_token),
	.fields = acl_token_stub_fields,
	.n = ELEMENTSOF(acl_token_stub_fields),
	.name = "token" };
#undef STUB_FIELDS
#undef S

#define S acl_role
static const struct field acl_role_fields[] = {
	F_STRING(id, "ID"),
	F_STRING(name, "Name"),
	F_STRING(description, "Description"),
	F_LIST(policies, "Policies", acl_link),
	F_UINT(create_index, "CreateIndex"),
	F_UINT(modify_index, "ModifyIndex"),
};
MODEL_TYPE(acl_role, acl_role_fields, .name = "role", .title = 1 + offsetof(struct acl_role, name));
#undef S
