/* SPDX-License-Identifier: Apache-2.0 */
/* acl_rules.h: decides what ACL policies permit on this node. Pure. Runs in: supervisor. Policies
 * are HCL text from the servers. The capabilities of a namespace add up, and deny removes all; an
 * exact name wins over patterns, and a closer pattern over others. Unknown words permit nothing. */
#ifndef DROVER_SUPERVISOR_ACL_ACL_RULES_H
#define DROVER_SUPERVISOR_ACL_ACL_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* The permission that a request needs. */
enum acl_need {
	ACL_MANAGEMENT, /* the default: a management token */
	ACL_OPEN,       /* no permission */
	ACL_NODE_READ,
	ACL_NODE_WRITE,
	ACL_AGENT_READ,
	ACL_AGENT_WRITE,
	/* Permissions in a namespace. */
	ACL_READ_JOB,
	ACL_PARSE,     /* parse-job or submit-job */
	ACL_COLLECT,   /* submit-job or gc-allocation */
	ACL_LIFECYCLE, /* alloc-lifecycle */
	ACL_EXEC,      /* alloc-exec */
	ACL_EXEC_NODE, /* alloc-exec and alloc-node-exec: the task is not isolated */
	ACL_READ_FS,
	ACL_READ_LOGS, /* read-logs or read-fs */
};

struct acl_namespace {
	char *pattern;
	uint32_t caps;
};

enum acl_level { ACL_NOTHING, ACL_READ, ACL_WRITE, ACL_DENY };

/* Zero permits nothing. */
struct acl_rules {
	bool management;
	enum acl_level agent, node;
	struct acl_namespace *namespaces;
	size_t n;
};

/* Adds one policy's text. Returns 0, or -EINVAL, -E2BIG with *e; then *r must be freed. */
int acl_rules_add(struct acl_rules *r, const char *hcl, const char *name, struct err *e);
void acl_rules_done(struct acl_rules *r);

bool acl_rules_permit(const struct acl_rules *r, enum acl_need need, const char *namespace);

#endif
