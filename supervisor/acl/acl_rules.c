// SPDX-License-Identifier: Apache-2.0
/* acl_rules.c: evaluates the servers' ACL policies for requests to this node. Runs in: supervisor.
 */
#include "supervisor/acl/acl_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/glob.h"
#include "hcl/hcl_tree.h"
#include "common/mem.h"

#define NAMESPACES_MAX 1024
#define PATTERN_MAX    128 /* bytes of a namespace or pattern */

enum cap {
	CAP_DENY = 1,
	CAP_READ_JOB = 1 << 1,
	CAP_SUBMIT_JOB = 1 << 2,
	CAP_GC = 1 << 3,
	CAP_LIFECYCLE = 1 << 4,
	CAP_EXEC = 1 << 5,
	CAP_EXEC_NODE = 1 << 6,
	CAP_READ_FS = 1 << 7,
	CAP_READ_LOGS = 1 << 8,
	CAP_PARSE_JOB = 1 << 9,
};

/* No shorthand policy includes alloc-node-exec. */
#define CAPS_WRITE                                                                                 \
	(CAP_READ_JOB | CAP_PARSE_JOB | CAP_SUBMIT_JOB | CAP_LIFECYCLE | CAP_EXEC | CAP_READ_FS |  \
	    CAP_READ_LOGS)

static const struct word {
	const char *word;
	unsigned value;
} capabilities[] = {
	{ "deny", CAP_DENY },
	{ "read-job", CAP_READ_JOB },
	{ "submit-job", CAP_SUBMIT_JOB },
	{ "parse-job", CAP_PARSE_JOB },
	{ "gc-allocation", CAP_GC },
	{ "alloc-lifecycle", CAP_LIFECYCLE },
	{ "alloc-exec", CAP_EXEC },
	{ "alloc-node-exec", CAP_EXEC_NODE },
	{ "read-fs", CAP_READ_FS },
	{ "read-logs", CAP_READ_LOGS },
	{ 0 },
}, namespace_policies[] = {
	{ "deny", CAP_DENY },
	{ "read", CAP_READ_JOB | CAP_PARSE_JOB },
	{ "scale", CAP_READ_JOB },
	{ "write", CAPS_WRITE },
	{ 0 },
}, levels[] = {
	{ "read", ACL_READ },
	{ "write", ACL_WRITE },
	{ "deny", ACL_DENY },
	{ 0 },
};

/* A need is met by any bit of `caps` together with all bits of `all`. */
static const struct {
	uint32_t caps, all;
} needs[] = {
	[ACL_READ_JOB] = { CAP_READ_JOB, 0 },
	[ACL_PARSE] = { CAP_PARSE_JOB | CAP_SUBMIT_JOB, 0 },
	[ACL_COLLECT] = { CAP_SUBMIT_JOB | CAP_GC, 0 },
	[ACL_LIFECYCLE] = { CAP_LIFECYCLE, 0 },
	[ACL_EXEC] = { CAP_EXEC, 0 },
	[ACL_EXEC_NODE] = { CAP_EXEC, CAP_EXEC_NODE },
	[ACL_READ_FS] = { CAP_READ_FS, 0 },
	[ACL_READ_LOGS] = { CAP_READ_FS | CAP_READ_LOGS, 0 },
};

/* Returns 0 for capabilities of other versions and for those that this node does not use. */
static unsigned
look_up(const struct word *words, const struct hcl_node *node)
{
	if (node->kind != HCL_NODE_STRING)
		return 0;
	while (words->word && strcmp(words->word, node->text) != 0)
		words++;
	return words->value;
}

DEFINE_CLEANUP(struct hcl *, hcl_free);

/* Reading policies. */

typedef int block_fn(struct acl_rules *r, const struct hcl_node *body, struct err *e);

/* Reads a block; in JSON it may be a list of blocks. */
static int
each_block(struct acl_rules *r, const struct hcl_node *node, block_fn *fn, struct err *e)
{
	int res = 0;

	if (node->kind == HCL_NODE_OBJECT)
		return fn(r, node, e);
	if (node->kind != HCL_NODE_LIST)
		return err_say(e, -EINVAL, "cannot read an ACL policy of the servers: %s is %s",
		    node->key ? node->key : "an element", hcl_node_kind_name(node->kind));
	for (const struct hcl_node *n = node->first; n && res == 0; n = n->next)
		res = n->kind == HCL_NODE_OBJECT ? fn(r, n, e) : each_block(r, n, fn, e);
	return res;
}

static uint32_t
read_caps(const struct hcl_node *body)
{
	uint32_t caps = 0;

	for (const struct hcl_node *n = body->first; n; n = n->next) {
		if (strcmp(n->key, "policy") == 0)
			caps |= look_up(namespace_policies, n);
		else if (strcmp(n->key, "capabilities") == 0)
			for (const struct hcl_node *c = n->first; c; c = c->next)
				caps |= look_up(capabilities, c);
	}
	return caps;
}

/* Finds or adds the rule of a namespace; NULL if there are NAMESPACES_MAX others. */
static struct acl_namespace *
get_namespace(struct acl_rules *r, const char *pattern)
{
	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->namespaces[i].pattern, pattern) == 0)
			return &r->namespaces[i];
	if (r->n == NAMESPACES_MAX)
		return NULL;
	r->namespaces = mem_resize(r->namespaces, r->n + 1, sizeof *r->namespaces);
	r->namespaces[r->n] = (struct acl_namespace){ .pattern = mem_strdup(pattern) };
	return &r->namespaces[r->n++];
}

static int
add_namespace(struct acl_rules *r, const char *pattern, uint32_t caps, struct err *e)
{
	struct acl_namespace *ns;

	if (strlen(pattern) > PATTERN_MAX)
		return err_say(e, -EINVAL,
		    "cannot read an ACL policy of the servers: a namespace has more than %d bytes",
		    PATTERN_MAX);
	ns = get_namespace(r, pattern);
	if (!ns)
		return err_say(e, -E2BIG,
		    "cannot read a token's policies: they name more than %d namespaces",
		    NAMESPACES_MAX);
	ns->caps |= caps;
	return 0;
}

/* Reads namespace "pattern" { … }; the label is the key. */
static int
read_namespaces(struct acl_rules *r, const struct hcl_node *body, struct err *e)
{
	int res = 0;

	for (const struct hcl_node *ns = body->first; ns && res == 0; ns = ns->next) {
		const struct hcl_node *block = ns->kind == HCL_NODE_LIST ? ns->first : ns;

		for (; block && res == 0; block = ns->kind == HCL_NODE_LIST ? block->next : NULL)
			if (block->kind == HCL_NODE_OBJECT)
				res = add_namespace(r, ns->key, read_caps(block), e);
	}
	return res;
}

/* Merges two levels: deny wins over write, write over read. */
static void
raise_level(enum acl_level *level, const struct hcl_node *body)
{
	for (const struct hcl_node *n = body->first; n; n = n->next) {
		enum acl_level found =
		    strcmp(n->key, "policy") == 0 ? look_up(levels, n) : ACL_NOTHING;

		if (found > *level)
			*level = found;
	}
}

static int
read_agent(struct acl_rules *r, const struct hcl_node *body, struct err *e)
{
	(void)e;
	raise_level(&r->agent, body);
	return 0;
}

static int
read_node(struct acl_rules *r, const struct hcl_node *body, struct err *e)
{
	(void)e;
	raise_level(&r->node, body);
	return 0;
}

int
acl_rules_add(struct acl_rules *r, const char *hcl, const char *name, struct err *e)
{
	static const struct {
		const char *key;
		block_fn *fn;
	} blocks[] = { { "namespace", read_namespaces }, { "agent", read_agent },
		{ "node", read_node } };
	cleanup_with(hcl_free) struct hcl *h = hcl_new(&hcl_tree_limits);
	const struct hcl_source source = { name, hcl, strlen(hcl) };
	const struct hcl_node *root = hcl_tree_parse(h, &source);
	int res = 0;

	if (!root)
		return err_say(e, -EINVAL, "%s", hcl_problem_line(h, hcl_problems(h)));
	for (const struct hcl_node *n = root->first; n && res == 0; n = n->next)
		for (size_t i = 0; i < ELEMENTSOF(blocks) && res == 0; i++)
			if (strcmp(n->key, blocks[i].key) == 0)
				res = each_block(r, n, blocks[i].fn, e);
	return res;
}

void
acl_rules_done(struct acl_rules *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->namespaces[i].pattern);
	free(r->namespaces);
	*r = (struct acl_rules){ 0 };
}

/* Deciding. */

/* Counts the characters of the name that the stars match. */
static long
get_distance(const char *pattern, const char *name)
{
	long distance = (long)strlen(name) - (long)strlen(pattern);

	for (; *pattern; pattern++)
		distance += *pattern == '*';
	return distance;
}

/* If two patterns match equally closely, both must permit the request. */
static uint32_t
get_caps(const struct acl_rules *r, const char *name)
{
	long closest = -1;
	uint32_t caps = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct acl_namespace *ns = &r->namespaces[i];
		long distance;

		if (strcmp(ns->pattern, name) == 0)
			return ns->caps;
		if (!strchr(ns->pattern, '*') || !glob_fits(ns->pattern, name))
			continue;
		distance = get_distance(ns->pattern, name);
		if (closest < 0 || distance < closest) {
			closest = distance;
			caps = ns->caps;
		} else if (distance == closest) {
			caps &= ns->caps;
		}
	}
	return caps;
}

bool
acl_rules_permit(const struct acl_rules *r, enum acl_need need, const char *namespace)
{
	uint32_t caps;

	switch (need) {
	case ACL_OPEN:
		return true;
	case ACL_NODE_READ:
		return r->management || r->node == ACL_READ || r->node == ACL_WRITE;
	case ACL_NODE_WRITE:
		return r->management || r->node == ACL_WRITE;
	case ACL_AGENT_READ:
		return r->management || r->agent == ACL_READ || r->agent == ACL_WRITE;
	case ACL_AGENT_WRITE:
		return r->management || r->agent == ACL_WRITE;
	default:
		break;
	}
	if (r->management || need < ACL_READ_JOB || need > ACL_READ_LOGS)
		return r->management;
	/* Only a management token may use all namespaces at once. */
	caps = strcmp(namespace, "*") == 0 ? 0 : get_caps(r, namespace);
	return !(caps & CAP_DENY) && (caps & needs[need].caps) &&
	       (caps & needs[need].all) == needs[need].all;
}
