// SPDX-License-Identifier: Apache-2.0
/* config_audit.c: reads audit { }: the log of requests. Runs in: the launcher's configuration
 * child, cli. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_reader.h"

#define ROTATE_BYTES_MAX 1000000000000ull
#define ROTATE_FILES_MAX 100000
#define A(c)             (&(c)->config->audit)

/* --- values --- */

/* Checks for the only value, or one of two values, that a key may have. */
static int
read_word(struct config_reader *c, const struct hcl_node *node, const char *one, const char *other,
    bool *ret_is_other)
{
	char word[32];
	int r = config_get_text(c, node, node->key, word, sizeof word);

	if (r < 0)
		return r;
	if (other && strcmp(word, other) == 0) {
		*ret_is_other = true;
		return 0;
	}
	if (strcmp(word, one) != 0)
		return config_fail(c, node->at, "%s: expected \"%s\"%s%s%s, found \"%s\"",
		    node->key, one, other ? " or \"" : "", other ?: "", other ? "\"" : "", word);
	if (other)
		*ret_is_other = false;
	return 0;
}

static int
read_mode(struct config_reader *c, const struct hcl_node *node)
{
	char text[8], *end;
	unsigned long mode;
	int r = config_get_text(c, node, node->key, text, sizeof text);

	if (r < 0)
		return r;
	mode = strtoul(text, &end, 8);
	if (text[0] < '0' || text[0] > '7' || *end || (mode & ~0666ul) || (mode & 0600) != 0600)
		return config_fail(c, node->at,
		    "mode: expected permissions such as \"0600\" or \"0640\", found \"%s\"", text);
	A(c)->mode = (uint32_t)mode;
	return 0;
}

static int
read_number(struct config_reader *c, const struct hcl_node *node, uint64_t most, uint64_t *ret)
{
	const char *at = node->text;
	uint64_t n;

	if ((node->kind != HCL_NODE_NUMBER && node->kind != HCL_NODE_STRING) ||
	    !config_take_number(&at, most, &n) || *at)
		return config_fail(c, node->at, "%s: expected a whole number from 0 to %llu",
		    node->key, (unsigned long long)most);
	*ret = n;
	return 0;
}

/* --- sink --- */

static int
read_sink_member(struct config_reader *c, const struct hcl_node *n)
{
	struct config_audit *a = A(c);

	if (strcmp(n->key, "type") == 0)
		return read_word(c, n, "file", NULL, NULL);
	if (strcmp(n->key, "format") == 0)
		return read_word(c, n, "json", NULL, NULL);
	if (strcmp(n->key, "delivery_guarantee") == 0)
		return read_word(c, n, "enforced", "best-effort", &a->best_effort);
	if (strcmp(n->key, "path") == 0)
		return config_get_path(c, n, n->key, a->path);
	if (strcmp(n->key, "mode") == 0)
		return read_mode(c, n);
	if (strcmp(n->key, "rotate_bytes") == 0)
		return read_number(c, n, ROTATE_BYTES_MAX, &a->rotate_bytes);
	if (strcmp(n->key, "rotate_max_files") == 0)
		return read_number(c, n, ROTATE_FILES_MAX, &a->rotate_max_files);
	if (strcmp(n->key, "rotate_duration") == 0)
		return config_get_duration(c, n, 1000, &a->rotate_ms);
	config_warn(c, n->key_at, n->key, "is unknown and has no effect");
	return 0;
}

/* Returns the body of a block with a name; node is the object under the name. NULL: it was reported
 * as an error. */
static const struct hcl_node *
named_body(struct config_reader *c, const struct hcl_node *node, const char *what)
{
	const struct hcl_node *body = node->kind == HCL_NODE_LIST ? node->first : node;

	if (!body || body->kind != HCL_NODE_OBJECT || (node->kind == HCL_NODE_LIST && body->next)) {
		(void)config_wrong(c, node, what, "a name and a block");
		return NULL;
	}
	if (strlen(node->key) >= CONFIG_NAME_SIZE) {
		(void)config_fail(c, node->key_at, "%s: expected a name of at most %d bytes", what,
		    CONFIG_NAME_SIZE - 1);
		return NULL;
	}
	return body;
}

static int
read_sink(struct config_reader *c, const struct hcl_node *node)
{
	const struct hcl_node *body = named_body(c, node, "sink");
	struct config_audit *a = A(c);
	int r = 0;

	if (!body)
		return -EINVAL;
	if (a->sink[0] && strcmp(a->sink, node->key) != 0)
		return config_fail(c, node->key_at,
		    "sink \"%.64s\": there is one already, \"%s\", and entries are written to one",
		    node->key, a->sink);
	(void)strcpy(a->sink, node->key);
	for (const struct hcl_node *n = body->first; n && r == 0; n = n->next)
		r = read_sink_member(c, n);
	return r;
}

static const struct config_attr sink_attrs[] = { { .fn = read_sink } };

/* --- filter --- */

static int
add_pattern(struct config_reader *c, struct config_audit_filter *f, enum audit_member member,
    const struct hcl_node *node)
{
	struct config_audit_pattern *p = &f->patterns[f->n_patterns];

	if (f->n_patterns == AUDIT_PATTERNS_MAX)
		return config_fail(c, node->at,
		    "filter \"%s\": expected at most %d patterns in all", f->name,
		    AUDIT_PATTERNS_MAX);
	p->member = member;
	f->n_patterns++;
	return config_get_text(c, node, "filter", p->text, sizeof p->text);
}

static int
read_patterns(struct config_reader *c, struct config_audit_filter *f, enum audit_member member,
    const struct hcl_node *node)
{
	int r = 0;

	if (node->kind != HCL_NODE_LIST)
		return config_wrong(c, node, node->key, "a list of strings");
	for (const struct hcl_node *n = node->first; n && r == 0; n = n->next)
		r = n->kind == HCL_NODE_STRING ? add_pattern(c, f, member, n)
					       : config_wrong(c, n, node->key, "a string");
	return r;
}

static int
read_filter_member(struct config_reader *c, struct config_audit_filter *f, const struct hcl_node *n)
{
	static const char *const keys[AUDIT_MEMBERS] = { [AUDIT_ENDPOINT] = "endpoints",
		[AUDIT_STAGE] = "stages",
		[AUDIT_OPERATION] = "operations" };

	if (strcmp(n->key, "type") == 0)
		return read_word(c, n, "HTTPEvent", NULL, NULL);
	for (unsigned m = 0; m < AUDIT_MEMBERS; m++)
		if (strcmp(n->key, keys[m]) == 0)
			return read_patterns(c, f, (enum audit_member)m, n);
	config_warn(c, n->key_at, n->key, "is unknown and has no effect");
	return 0;
}

/* A filter of the same name in a later file replaces the earlier one. */
static int
read_filter(struct config_reader *c, const struct hcl_node *node)
{
	const struct hcl_node *body = named_body(c, node, "filter");
	struct config_audit *a = A(c);
	struct config_audit_filter *f;
	uint32_t i = 0;
	int r = 0;

	if (!body)
		return -EINVAL;
	while (i < a->n_filters && strcmp(a->filters[i].name, node->key) != 0)
		i++;
	if (i == AUDIT_FILTERS_MAX)
		return config_fail(
		    c, node->key_at, "filter: expected at most %d", AUDIT_FILTERS_MAX);
	f = &a->filters[i];
	*f = (struct config_audit_filter){ 0 };
	(void)strcpy(f->name, node->key);
	if (i == a->n_filters)
		a->n_filters++;
	for (const struct hcl_node *n = body->first; n && r == 0; n = n->next)
		r = read_filter_member(c, f, n);
	return r;
}

static const struct config_attr filter_attrs[] = { { .fn = read_filter } };

const struct config_attr config_audit_attrs[] = {
	BOOL("enabled", audit.enabled),
	BLOCK("sink", sink_attrs),
	BLOCK("filter", filter_attrs),
	{ 0 },
};
