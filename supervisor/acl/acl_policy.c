// SPDX-License-Identifier: Apache-2.0
/* acl_policy.c: reads ACL policies. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "hcl/hcl_tree.h"
#include "supervisor/acl/acl_rules.h"
#include "supervisor/acl/acl_words.h"

#define PATTERNS_MAX 1024 /* namespaces; also variables, and host volumes */
#define PATTERN_MAX  128  /* bytes of a namespace or a pattern of them */
#define PATH_MAX_LEN 512  /* bytes of a variable's path or a pattern of them */

struct word {
	const char *word;
	uint64_t value;
};

/* The shorthands of acl_caps.def. */
enum { R = 1, W = 2, S = 4 };

/* clang-format off */
enum {
	CAPS_READ = 0
#define ACL_CAP(name, word, kinds) | ((kinds) & R ? CAP_##name : 0)
#include "supervisor/acl/acl_caps.def"
	, CAPS_WRITE = 0
#define ACL_CAP(name, word, kinds) | ((kinds) & W ? CAP_##name : 0)
#include "supervisor/acl/acl_caps.def"
	, CAPS_SCALE = 0
#define ACL_CAP(name, word, kinds) | ((kinds) & S ? CAP_##name : 0)
#include "supervisor/acl/acl_caps.def"
	, OPERATOR_READ = 0
#define ACL_OPERATOR_CAP(name, word, kinds) | ((kinds) & R ? OPERATOR_##name : 0)
#include "supervisor/acl/acl_caps.def"
	, OPERATOR_WRITE = 0
#define ACL_OPERATOR_CAP(name, word, kinds) | ((kinds) & W ? OPERATOR_##name : 0)
#include "supervisor/acl/acl_caps.def"
};
/* clang-format on */

static const struct word namespace_caps[] = {
#define ACL_CAP(name, word, kinds) { word, CAP_##name },
#include "supervisor/acl/acl_caps.def"
	{ 0 },
}, operator_caps[] = {
#define ACL_OPERATOR_CAP(name, word, kinds) { word, OPERATOR_##name },
#include "supervisor/acl/acl_caps.def"
	{ 0 },
}, namespace_policies[] = {
	{ "deny", CAP_DENY },
	{ "read", CAPS_READ },
	{ "scale", CAPS_SCALE },
	{ "write", CAPS_WRITE },
	{ 0 },
}, operator_policies[] = {
	{ "deny", OPERATOR_DENY },
	{ "read", OPERATOR_READ },
	{ "write", OPERATOR_WRITE },
	{ "scale", 0 },
	{ 0 },
}, host_caps[] = {
	{ "deny", HOST_DENY },
	{ "mount-readonly", HOST_READ },
	{ "mount-readwrite", HOST_WRITE },
	{ 0 },
}, host_policies[] = {
	{ "deny", HOST_DENY },
	{ "read", HOST_READ },
	{ "write", HOST_READ | HOST_WRITE },
	{ "scale", 0 },
	{ 0 },
}, variable_caps[] = {
	{ "deny", VARIABLE_DENY },
	{ "list", ACL_VARIABLE_LIST },
	{ "read", ACL_VARIABLE_READ | ACL_VARIABLE_LIST },
	{ "write", ACL_VARIABLE_WRITE },
	{ "destroy", ACL_VARIABLE_DESTROY },
	{ 0 },
}, levels[] = {
	{ "read", ACL_READ },
	{ "write", ACL_WRITE },
	{ "deny", ACL_DENY },
	{ "scale", ACL_NOTHING },
	{ 0 },
}, plugin_levels[] = {
	{ "list", ACL_LIST },
	{ "read", ACL_READ },
	{ "write", ACL_WRITE },
	{ "deny", ACL_DENY },
	{ 0 },
}, no_words[] = { { 0 } },
/* Nothing of these exists here; they are only checked. */
pool_policies[] = { { "deny", 0 }, { "read", 0 }, { "write", 0 }, { "scale", 0 }, { 0 } },
pool_caps[] = { { "deny", 0 }, { "read", 0 }, { "write", 0 }, { "delete", 0 }, { 0 } },
sentinel_caps[] = { { "deny", 0 }, { "sentinel-read", 0 }, { "sentinel-submit", 0 },
	{ "sentinel-delete", 0 }, { 0 } };

/* A kind of block. */
struct block {
	const char *key;
	bool named; /* its label is a name or pattern */
	const struct word *policies, *caps;
	size_t patterns; /* 1 + offset in struct acl_rules: where named blocks go */
	size_t level;    /* 1 + offset of an enum acl_level */
};

#define IN(member) (1 + offsetof(struct acl_rules, member))

static const struct block blocks[] = {
	{ "namespace", true, namespace_policies, namespace_caps, IN(namespaces), 0 },
	{ "node_pool", true, pool_policies, pool_caps, 0, 0 },
	{ "host_volume", true, host_policies, host_caps, IN(host_volumes), 0 },
	{ "agent", false, levels, no_words, 0, IN(agent) },
	{ "node", false, levels, no_words, 0, IN(node) },
	{ "plugin", false, plugin_levels, no_words, 0, IN(plugin) },
	{ "operator", false, operator_policies, operator_caps, 0, 0 },
	{ "quota", false, levels, no_words, 0, 0 },
	{ "sentinel", false, levels, sentinel_caps, 0, 0 },
};

struct reader {
	struct acl_rules *rules;
	bool strict; /* unknown words are faults; otherwise they are ignored */
	struct err *e;
};

DEFINE_CLEANUP(struct hcl *, hcl_free);

/* Adds the word's value to *sum. */
static int
add_word(const struct reader *rd, const struct word *words, const struct hcl_node *node,
    const char *where, uint64_t *sum)
{
	const char *text = node->kind == HCL_NODE_STRING ? node->text : NULL;

	for (; text && words->word; words++) {
		if (strcmp(words->word, text) == 0) {
			*sum |= words->value;
			return 0;
		}
	}
	if (!rd->strict)
		return 0;
	return text ? err_say(rd->e, -EINVAL, "%s: there is no word \"%.60s\"", where, text)
		    : err_say(rd->e, -EINVAL, "%s: expected a text, found %s", where,
			  hcl_node_kind_name(node->kind));
}

static int
add_words(const struct reader *rd, const struct word *words, const struct hcl_node *list,
    const char *where, uint64_t *sum)
{
	int r = 0;

	if (list->kind != HCL_NODE_LIST)
		return rd->strict ? err_say(rd->e, -EINVAL, "%s: expected a list", where) : 0;
	for (const struct hcl_node *n = list->first; n && r == 0; n = n->next)
		r = add_word(rd, words, n, where, sum);
	return r;
}

/* --- patterns --- */

static int
add_pattern(const struct reader *rd, struct acl_patterns *p, const char *pattern, uint64_t caps)
{
	for (size_t i = 0; i < p->n; i++) {
		if (strcmp(p->v[i].pattern, pattern) == 0) {
			p->v[i].caps |= caps;
			return 0;
		}
	}
	if (p->n == PATTERNS_MAX)
		return err_say(rd->e, -E2BIG,
		    "cannot read a token's policies: they name more than %d namespaces, variables "
		    "or volumes",
		    PATTERNS_MAX);
	p->v = mem_resize(p->v, p->n + 1, sizeof *p->v);
	p->v[p->n++] = (struct acl_pattern){ .pattern = mem_strdup(pattern), .caps = caps };
	return 0;
}

static int
check_name(const struct reader *rd, const char *key, const char *name)
{
	size_t len = strlen(name);

	if (len > PATTERN_MAX)
		return err_say(rd->e, -EINVAL,
		    "cannot read an ACL policy: the name of a %s has more than %d bytes", key,
		    PATTERN_MAX);
	if (rd->strict &&
	    (len == 0 || strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_*") != len))
		return err_say(rd->e, -EINVAL, "%s \"%.140s\": a name has letters, digits, - and *",
		    key, name);
	return 0;
}

/* --- blocks --- */

typedef int body_fn(
    const struct reader *rd, const struct block *b, const char *name, const struct hcl_node *body);

/* Calls fn for each object: node itself, or those in the list that it is (in JSON). */
static int
each_body(const struct reader *rd, const struct block *b, const char *name,
    const struct hcl_node *node, body_fn *fn)
{
	int r = 0;

	if (node->kind == HCL_NODE_OBJECT)
		return fn(rd, b, name, node);
	if (node->kind != HCL_NODE_LIST)
		return err_say(rd->e, -EINVAL, "cannot read an ACL policy: %s is %s",
		    node->key ? node->key : "an element", hcl_node_kind_name(node->kind));
	for (const struct hcl_node *n = node->first; n && r == 0; n = n->next)
		r = each_body(rd, b, name, n, fn);
	return r;
}

/* Reads path "…" { capabilities = […] } of the namespace `name`. */
static int
read_path(
    const struct reader *rd, const struct block *b, const char *name, const struct hcl_node *path)
{
	cleanup_free char *pattern = mem_printf("%s\n%s", name, path->key);
	uint64_t caps = 0;
	int r = 0;

	if (path->kind != HCL_NODE_OBJECT && path->kind != HCL_NODE_LIST)
		return rd->strict ? err_say(rd->e, -EINVAL, "variables: a path has no name") : 0;
	if (strlen(path->key) > PATH_MAX_LEN)
		return err_say(rd->e, -EINVAL,
		    "cannot read an ACL policy: a path of variables has more than %d bytes",
		    PATH_MAX_LEN);
	if (rd->strict && (!*path->key || *path->key == '/'))
		return err_say(rd->e, -EINVAL, "variables: the path \"%.140s\" %s", path->key,
		    *path->key ? "begins with /" : "is empty");
	for (const struct hcl_node *body = path->kind == HCL_NODE_LIST ? path->first : path;
	     body && r == 0; body = path->kind == HCL_NODE_LIST ? body->next : NULL) {
		for (const struct hcl_node *n = body->first; n && r == 0; n = n->next) {
			if (n->key && strcmp(n->key, "capabilities") == 0)
				r = add_words(rd, variable_caps, n, "variables", &caps);
			else if (rd->strict)
				r = err_say(rd->e, -EINVAL, "variables: unknown key \"%.60s\"",
				    n->key ?: "");
		}
	}
	return r < 0 ? r : add_pattern(rd, &rd->rules->variables, pattern, caps);
}

static int
read_paths(
    const struct reader *rd, const struct block *b, const char *name, const struct hcl_node *body)
{
	int r = 0;

	for (const struct hcl_node *n = body->first; n && r == 0; n = n->next)
		r = read_path(rd, b, name, n);
	return r;
}

static int
read_variables(
    const struct reader *rd, const struct block *b, const char *name, const struct hcl_node *body)
{
	int r = 0;

	if (rd->strict && !body->first)
		return err_say(rd->e, -EINVAL, "namespace \"%s\": variables has no path", name);
	for (const struct hcl_node *n = body->first; n && r == 0; n = n->next) {
		if (strcmp(n->key, "path") == 0)
			r = each_body(rd, b, name, n, read_paths);
		else if (rd->strict)
			r = err_say(rd->e, -EINVAL, "variables: unknown key \"%.60s\"", n->key);
	}
	return r;
}

/* A level is raised: deny wins over write, write over read. */
static void
apply(const struct reader *rd, const struct block *b, uint64_t policy, uint64_t caps)
{
	enum acl_level *level = b->level ? (void *)((char *)rd->rules + b->level - 1) : NULL;

	if (level && policy > *level)
		*level = (enum acl_level)policy;
	if (b->caps == operator_caps)
		rd->rules->operator|= policy | caps;
}

/* Reads the members of a block; name is NULL for one that has none. */
static int
read_body(
    const struct reader *rd, const struct block *b, const char *name, const struct hcl_node *body)
{
	uint64_t policy = 0, caps = 0;
	int r = 0;

	for (const struct hcl_node *n = body->first; n && r == 0; n = n->next) {
		if (strcmp(n->key, "policy") == 0)
			r = add_word(rd, b->policies, n, b->key, &policy);
		else if (strcmp(n->key, "capabilities") == 0 && b->caps != no_words)
			r = add_words(rd, b->caps, n, b->key, &caps);
		else if (strcmp(n->key, "variables") == 0 && b->caps == namespace_caps)
			r = each_body(rd, b, name, n, read_variables);
		else if (rd->strict)
			r = err_say(rd->e, -EINVAL, "%s: unknown key \"%.60s\"", b->key, n->key);
	}
	if (r < 0)
		return r;
	if (b->caps == namespace_caps) {
		if (caps & CAP_WRITE_HOST)
			caps |= CAP_REGISTER_HOST | CAP_DELETE_HOST;
		if (caps & CAP_REGISTER_HOST)
			caps |= CAP_CREATE_HOST;
		if (caps & CAP_CREATE_HOST)
			caps |= CAP_READ_HOST;
	}
	if (b->patterns)
		return add_pattern(
		    rd, (void *)((char *)rd->rules + b->patterns - 1), name, policy | caps);
	apply(rd, b, policy, caps);
	return 0;
}

/* Reads namespace "pattern" { … }; the label is the key. */
static int
read_named(
    const struct reader *rd, const struct block *b, const char *name, const struct hcl_node *body)
{
	int r = 0;

	for (const struct hcl_node *n = body->first; n && r == 0; n = n->next) {
		if (n->kind == HCL_NODE_OBJECT || n->kind == HCL_NODE_LIST) {
			r = check_name(rd, b->key, n->key);
			if (r == 0 && n->kind == HCL_NODE_OBJECT)
				r = read_body(rd, b, n->key, n);
			for (const struct hcl_node *m = n->kind == HCL_NODE_LIST ? n->first : NULL;
			     m && r == 0; m = m->next)
				if (m->kind == HCL_NODE_OBJECT)
					r = read_body(rd, b, n->key, m);
		} else if (rd->strict) {
			r = err_say(rd->e, -EINVAL, "%s: it has no name", b->key);
		}
	}
	return r;
}

static int
read_root(const struct reader *rd, const struct hcl_node *root)
{
	int r = 0;

	for (const struct hcl_node *n = root->first; n && r == 0; n = n->next) {
		size_t i = 0;

		while (i < ELEMENTSOF(blocks) && strcmp(n->key, blocks[i].key) != 0)
			i++;
		if (i < ELEMENTSOF(blocks))
			r = each_body(
			    rd, &blocks[i], NULL, n, blocks[i].named ? read_named : read_body);
		else if (rd->strict)
			r = err_say(rd->e, -EINVAL, "there is no block \"%.60s\"", n->key);
	}
	return r;
}

static int
read_policy(struct acl_rules *r, const char *hcl, const char *name, bool strict, struct err *e)
{
	cleanup_with(hcl_free) struct hcl *h = hcl_new(&hcl_tree_limits);
	const struct hcl_source source = { name, hcl, strlen(hcl) };
	const struct hcl_node *root = hcl_tree_parse(h, &source);

	if (!root)
		return err_say(e, -EINVAL, "%s", hcl_problem_line(h, hcl_problems(h)));
	if (strict && strlen(hcl) > 0 && !root->first)
		return err_say(e, -EINVAL, "the policy has no rules");
	return read_root(&(struct reader){ r, strict, e }, root);
}

int
acl_rules_add(struct acl_rules *r, const char *hcl, const char *name, struct err *e)
{
	return read_policy(r, hcl, name, false, e);
}

int
acl_rules_check(const char *hcl, const char *name, struct err *e)
{
	struct acl_rules none = { 0 };
	int r = read_policy(&none, hcl, name, true, e);

	acl_rules_done(&none);
	return r;
}

static void
free_patterns(struct acl_patterns *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i].pattern);
	free(p->v);
}

void
acl_rules_done(struct acl_rules *r)
{
	free_patterns(&r->namespaces);
	free_patterns(&r->host_volumes);
	free_patterns(&r->variables);
	*r = (struct acl_rules){ 0 };
}
