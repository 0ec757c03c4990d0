// SPDX-License-Identifier: Apache-2.0
/* acl_rules.c: decides what ACL policies permit. Runs in: supervisor. */
#include "supervisor/acl/acl_rules.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/glob.h"
#include "common/mem.h"
#include "supervisor/acl/acl_words.h"

/* What acl_needs.def has beside capabilities. */
enum { BODY = 1, PLUGIN = 2 };

/* A need is met by any bit of `any` together with all bits of `all`. */
static const struct {
	uint64_t any, all;
	unsigned more;
	bool in_namespace;
} needs[ACL_NEEDS] = {
#define ACL_NEED(...)
#define ACL_NEED_IN(name, any, all, more, words) [ACL_##name] = { any, all, more, true },
#include "supervisor/acl/acl_needs.def"
};

/* Counts the characters of the name that the stars match. */
static long
get_distance(const char *pattern, const char *name)
{
	long distance = (long)strlen(name) - (long)strlen(pattern);

	for (; *pattern; pattern++)
		distance += *pattern == '*';
	return distance;
}

static uint64_t
find_exact(const struct acl_patterns *p, const char *name, bool *ret_found)
{
	for (size_t i = 0; i < p->n; i++) {
		if (strcmp(p->v[i].pattern, name) == 0) {
			*ret_found = true;
			return p->v[i].caps;
		}
	}
	*ret_found = false;
	return 0;
}

/* If two patterns match equally closely, both must permit the request. */
static uint64_t
find_closest(const struct acl_patterns *p, const char *name)
{
	long closest = -1;
	uint64_t caps = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct acl_pattern *a = &p->v[i];
		long distance;

		if (!strchr(a->pattern, '*') || !glob_fits(a->pattern, name))
			continue;
		distance = get_distance(a->pattern, name);
		if (closest < 0 || distance < closest) {
			closest = distance;
			caps = a->caps;
		} else if (distance == closest) {
			caps = (caps & a->caps) | ((caps | a->caps) & CAP_DENY);
		}
	}
	return caps;
}

static uint64_t
without_denied(uint64_t caps)
{
	return caps & CAP_DENY ? 0 : caps;
}

static uint64_t
find_caps(const struct acl_patterns *p, const char *name)
{
	bool found;
	uint64_t caps = find_exact(p, name, &found);

	return without_denied(found ? caps : find_closest(p, name));
}

static bool
reads(enum acl_level level)
{
	return level == ACL_READ || level == ACL_WRITE;
}

/* As with the servers, write on plugins permits neither to list nor to read them. */
static bool
permit_outside(const struct acl_rules *r, enum acl_need need)
{
	switch (need) {
	case ACL_OPEN:
	case ACL_VALID:
		return true;
	case ACL_NODE_READ:
		return reads(r->node);
	case ACL_NODE_WRITE:
		return r->node == ACL_WRITE;
	case ACL_AGENT_READ:
		return reads(r->agent);
	case ACL_AGENT_WRITE:
		return r->agent == ACL_WRITE;
	case ACL_PLUGIN_LIST:
		return r->plugin == ACL_LIST || r->plugin == ACL_READ;
	case ACL_PLUGIN_READ:
		return r->plugin == ACL_READ;
	case ACL_KEYRING_READ:
		return without_denied(r->operator) & OPERATOR_KEYRING_READ;
	case ACL_KEYRING_ROTATE:
		return without_denied(r->operator) & OPERATOR_KEYRING_ROTATE;
	case ACL_KEYRING_DELETE:
		return without_denied(r->operator) & OPERATOR_KEYRING_DELETE;
	default:
		return false;
	}
}

static bool
are_enough(const struct acl_rules *r, enum acl_need need, uint64_t caps)
{
	caps = without_denied(caps);
	return (caps & needs[need].any) && (caps & needs[need].all) == needs[need].all &&
	       (!(needs[need].more & PLUGIN) || r->plugin == ACL_READ);
}

bool
acl_rules_permit(const struct acl_rules *r, enum acl_need need, const char *namespace)
{
	if (need >= ACL_NEEDS)
		return false;
	if (r->management)
		return true;
	if (!needs[need].in_namespace)
		return permit_outside(r, need);
	return strcmp(namespace, "*") != 0 &&
	       are_enough(r, need, find_caps(&r->namespaces, namespace));
}

bool
acl_rules_permit_any(const struct acl_rules *r, enum acl_need need)
{
	if (need >= ACL_NEEDS)
		return false;
	if (r->management || !needs[need].in_namespace)
		return acl_rules_permit(r, need, "");
	for (size_t i = 0; i < r->namespaces.n; i++)
		if (are_enough(r, need, r->namespaces.v[i].caps))
			return true;
	return false;
}

bool
acl_rules_permit_host_volume(const struct acl_rules *r, const char *name, bool writes)
{
	uint64_t enough = writes ? HOST_WRITE : HOST_READ | HOST_WRITE;

	return r->management || (find_caps(&r->host_volumes, name) & enough);
}

bool
acl_need_is_of_body(enum acl_need need)
{
	return need < ACL_NEEDS && (needs[need].more & BODY);
}

static bool
is_own(const struct acl_claim *c, const char *namespace, const char *path)
{
	cleanup_free char *job = NULL, *group = NULL, *task = NULL;

	if (!c || strcmp(namespace, c->namespace) != 0)
		return false;
	job = mem_printf("nomad/jobs/%s", c->job);
	group = mem_printf("%s/%s", job, c->group);
	task = mem_printf("%s/%s", group, c->task);
	return strcmp(path, "nomad/jobs") == 0 || strcmp(path, job) == 0 ||
	       strcmp(path, group) == 0 || strcmp(path, task) == 0;
}

bool
acl_rules_permit_variable(const struct acl_rules *r, const struct acl_claim *claim,
    const char *namespace, const char *path, enum acl_variable what)
{
	cleanup_free char *name = mem_printf("%s\n%s", namespace, path);
	uint64_t caps;
	bool found;

	if (r->management)
		return true;
	caps = find_exact(&r->variables, name, &found);
	if (!found)
		caps = is_own(claim, namespace, path) ? ACL_VARIABLE_READ | ACL_VARIABLE_LIST
						      : find_closest(&r->variables, name);
	return without_denied(caps) & (uint64_t)what;
}
