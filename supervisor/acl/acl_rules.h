/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acl_rules.h: reads ACL policies and decides what they permit. Pure. Runs in: supervisor. Policies
 * are HCL or JSON. The capabilities of a namespace add up, and deny removes all; an exact name wins
 * over patterns, and a closer pattern over others.
 */
#ifndef DROVER_SUPERVISOR_ACL_ACL_RULES_H
#define DROVER_SUPERVISOR_ACL_ACL_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* The permission that a request needs: ACL_MANAGEMENT, the default, and those of acl_needs.def. */
enum acl_need {
#define ACL_NEED(name, ...)    ACL_##name,
#define ACL_NEED_IN(name, ...) ACL_##name,
#include "supervisor/acl/acl_needs.def"
	ACL_NEEDS
};

struct acl_pattern {
	char *pattern; /* "*" matches any characters */
	uint64_t caps;
};

struct acl_patterns {
	struct acl_pattern *v;
	size_t n;
};

enum acl_level { ACL_NOTHING, ACL_LIST, ACL_READ, ACL_WRITE, ACL_DENY };

/* Zero permits nothing. */
struct acl_rules {
	bool management;
	enum acl_level agent, node, plugin;
	uint64_t operator;
	struct acl_patterns namespaces, host_volumes;
	struct acl_patterns variables; /* pattern: namespace, newline, path */
};

/* Adds one policy's text. Unknown words permit nothing. Returns 0, or -EINVAL, -E2BIG with *e; then
 * *r must be freed. */
int acl_rules_add(struct acl_rules *r, const char *hcl, const char *name, struct err *e);
/* Checks a policy before it is stored: each word must be known. Returns 0 or -EINVAL with *e. */
int acl_rules_check(const char *hcl, const char *name, struct err *e);
void acl_rules_done(struct acl_rules *r);

/* For a need of a namespace. Only management has all namespaces ("*") at once. */
bool acl_rules_permit(const struct acl_rules *r, enum acl_need need, const char *namespace);
/* Returns whether there is a namespace in which the rules permit it. */
bool acl_rules_permit_any(const struct acl_rules *r, enum acl_need need);
bool acl_rules_permit_host_volume(const struct acl_rules *r, const char *name, bool writes);

/* Returns true if the namespace is that of the object in the body, which the handler checks. */
bool acl_need_is_of_body(enum acl_need need);

/* The task that a workload identity belongs to. */
struct acl_claim {
	const char *namespace, *job, *group, *task;
};

enum acl_variable {
	ACL_VARIABLE_LIST = 1 << 1,
	ACL_VARIABLE_READ = 1 << 2,
	ACL_VARIABLE_WRITE = 1 << 3,
	ACL_VARIABLE_DESTROY = 1 << 4,
};

/* claim is NULL if the request has no workload identity. A workload may list and read the variables
 * nomad/jobs, nomad/jobs/JOB, nomad/jobs/JOB/GROUP and nomad/jobs/JOB/GROUP/TASK of its own. */
bool acl_rules_permit_variable(const struct acl_rules *r, const struct acl_claim *claim,
    const char *namespace, const char *path, enum acl_variable what);

#endif
