/* SPDX-License-Identifier: Apache-2.0 */
/* acl.h: ACL policies, tokens and roles of the embedded server. Runs in: supervisor. */
#ifndef DROVER_MODEL_ACL_H
#define DROVER_MODEL_ACL_H

#include "model/engine/field.h"

/* The tasks whose identities have a policy: all of the namespace, or of a job, group or task. */
struct acl_job {
	char *namespace, *job_id, *group, *task;
};

struct acl_policy {
	char *name, *description;
	char *rules;         /* HCL or JSON */
	struct acl_job *job; /* NULL: no task has it */
	uint64_t create_index, modify_index;
};

struct acl_link {
	char *id, *name;
};

struct acl_token {
	char *accessor_id, *secret_id;
	char *name;
	char *type; /* "client" or "management" */
	struct strings policies;
	MODEL_LIST(struct acl_link) roles;
	bool global;
	int64_t create_time;
	int64_t expiration_time; /* 0: never */
	char *expiration_ttl;    /* a duration */
	uint64_t create_index, modify_index;
};

struct acl_role {
	char *id, *name, *description;
	MODEL_LIST(struct acl_link) policies; /* without ids */
	uint64_t create_index, modify_index;
};

MODEL_DECLARE(acl_job);
MODEL_DECLARE(acl_policy);
MODEL_DECLARE(acl_link);
MODEL_DECLARE(acl_token);
MODEL_DECLARE(acl_role);
/* As lists show them: policies without rules, tokens without secrets. */
extern const struct type acl_policy_stub_type, acl_token_stub_type;

#endif
