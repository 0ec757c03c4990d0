// SPDX-License-Identifier: Apache-2.0
/*
 * config_reader.c: reads values and bodies of the configuration, with tables of the known keys.
 * Runs in: the launcher's configuration child.
 */
#include "config/config_reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/duration.h"
#include "common/similar.h"

#define KEYS_MAX 100 /* of a block */

/* --- errors and warnings --- */

void
config_say(struct config_sink *sink, bool is_error, const char *text)
{
	sink->n_errors += is_error;
	if (++sink->n_problems < CONFIG_PROBLEMS_MAX)
		sink->problem(sink->arg, is_error, text);
	else if (sink->n_problems == CONFIG_PROBLEMS_MAX)
		sink->problem(sink->arg, is_error, "further problems are not shown");
}

int
config_fail(struct config_reader *c, struct hcl_range at, const char *fmt, ...)
{
	char sentence[ERR_MSG_SIZE / 2];
	struct hcl_problem problem = { .at = at, .text = sentence };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(sentence, sizeof sentence, fmt, ap);
	va_end(ap);
	if (c->sink->n_problems < CONFIG_PROBLEMS_MAX)
		config_say(c->sink, true, hcl_problem_text(c->h, &problem));
	else
		config_say(c->sink, true, "");
	return -EINVAL;
}

int
config_wrong(
    struct config_reader *c, const struct hcl_node *node, const char *key, const char *what)
{
	return config_fail(
	    c, node->at, "%s: expected %s, found %s", key, what, hcl_node_kind_name(node->kind));
}

void
config_warn(struct config_reader *c, struct hcl_range at, const char *key, const char *why)
{
	char sentence[ERR_MSG_SIZE];
	struct hcl_problem problem = { .at = at, .text = sentence };

	if (c->sink->n_problems >= CONFIG_PROBLEMS_MAX)
		return;
	(void)snprintf(sentence, sizeof sentence, "'%.64s' %s", key, why);
	config_say(c->sink, false, hcl_problem_line(c->h, &problem));
}

static void
warn_unknown(struct config_reader *c, const struct hcl_node *node, const struct config_attr *known)
{
	const char *names[KEYS_MAX], *similar;
	char why[128] = "is unknown and has no effect";
	size_t n = 0;

	if (c->sink->n_problems >= CONFIG_PROBLEMS_MAX)
		return; /* the search below takes time */
	while (n < KEYS_MAX && known[n].key) {
		names[n] = known[n].key;
		n++;
	}
	similar = similar_name(node->key, names, n);
	if (similar)
		(void)snprintf(
		    why, sizeof why, "is unknown and has no effect: did you mean \"%s\"?", similar);
	config_warn(c, node->key_at, node->key, why);
}

/* --- values --- */

int
config_get_text(
    struct config_reader *c, const struct hcl_node *node, const char *key, char *ret, size_t size)
{
	size_t len;

	/* Accepts numbers and booleans too, as Nomad does: meta { rack = 12 }. */
	if (node->kind != HCL_NODE_STRING && node->kind != HCL_NODE_NUMBER &&
	    node->kind != HCL_NODE_BOOL)
		return config_wrong(c, node, key, "a string");
	len = strlen(node->text);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)node->text[i] < 0x20 || node->text[i] == 0x7f)
			return config_fail(
			    c, node->at, "%s: expected a string without control characters", key);
	if (len >= size)
		return config_fail(c, node->at, "%s: expected at most %zu bytes", key, size - 1);
	memset(ret, 0, size);
	memcpy(ret, node->text, len);
	return 0;
}

int
config_get_bool(struct config_reader *c, const struct hcl_node *node, const char *key, bool *ret)
{
	bool is_text = node->kind == HCL_NODE_BOOL || node->kind == HCL_NODE_STRING;

	if (is_text && (strcmp(node->text, "true") == 0 || strcmp(node->text, "1") == 0)) {
		*ret = true;
		return 0;
	}
	if (is_text && (strcmp(node->text, "false") == 0 || strcmp(node->text, "0") == 0)) {
		*ret = false;
		return 0;
	}
	if (node->kind == HCL_NODE_STRING)
		return config_fail(
		    c, node->at, "%s: expected true or false, found \"%.64s\"", key, node->text);
	return config_wrong(c, node, key, "true or false");
}

bool
config_take_number(const char **at, uint64_t most, uint64_t *ret)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*ret = strtoull(*at, &end, 10);
	*at = end;
	return errno == 0 && *ret <= most;
}

int
config_get_number(struct config_reader *c, const struct hcl_node *node, const char *key,
    uint64_t most, uint64_t *ret)
{
	char what[64];
	const char *at = node->text;
	uint64_t v = 0;

	(void)snprintf(
	    what, sizeof what, "a whole number from 0 to %llu", (unsigned long long)most);
	if (node->kind != HCL_NODE_NUMBER && node->kind != HCL_NODE_STRING)
		return config_wrong(c, node, key, what);
	if (!config_take_number(&at, most, &v) || *at)
		return config_fail(
		    c, node->at, "%s: expected %s, found '%.64s'", key, what, node->text);
	*ret = v;
	return 0;
}

int
config_check_path(struct config_reader *c, struct hcl_range at, const char *key, const char *path)
{
	const char *part = path;

	if (*path != '/')
		return config_fail(
		    c, at, "%s: expected an absolute path, found \"%.64s\"", key, path);
	while (part && part[1]) {
		size_t len = strcspn(++part, "/");

		if (len == 0 || (len == 1 && part[0] == '.') ||
		    (len == 2 && part[0] == '.' && part[1] == '.'))
			return config_fail(c, at,
			    "%s: expected a path without '.', '..' and empty parts, found "
			    "\"%.200s\"",
			    key, path);
		part = part[len] ? part + len : NULL;
		if (part && !part[1])
			return config_fail(c, at,
			    "%s: expected a path that does not end with '/', found \"%.200s\"", key,
			    path);
	}
	return 0;
}

int
config_get_path(struct config_reader *c, const struct hcl_node *node, const char *key,
    char ret[CONFIG_PATH_SIZE])
{
	size_t len;
	int r;

	if (node->kind != HCL_NODE_STRING)
		return config_wrong(c, node, key, "a path");
	r = config_get_text(c, node, key, ret, CONFIG_PATH_SIZE);
	if (r < 0)
		return r;
	len = strlen(ret);
	if (len > 1 && ret[len - 1] == '/')
		ret[len - 1] = '\0';
	return config_check_path(c, node->at, key, ret);
}

int
config_get_duration(
    struct config_reader *c, const struct hcl_node *node, uint64_t least_ms, uint64_t *ret_ms)
{
	struct err why = { 0 };
	int64_t ns = 0;

	if (node->kind != HCL_NODE_STRING)
		return config_wrong(c, node, node->key, "a duration such as \"30s\"");
	if (duration_parse(node->text, &ns, &why) < 0)
		return config_fail(c, node->at, "%s: %.200s", node->key, why.msg);
	if (ns < (int64_t)least_ms * NS_PER_MS)
		return config_fail(c, node->at,
		    "%s: expected a duration of at least %llums, found \"%.64s\"", node->key,
		    (unsigned long long)least_ms, node->text);
	*ret_ms = (uint64_t)(ns / NS_PER_MS);
	return 0;
}

int
config_each_string(
    struct config_reader *c, const struct hcl_node *node, const char *key, config_attr_fn *fn)
{
	int r = 0;

	if (node->kind != HCL_NODE_LIST)
		return config_wrong(c, node, key, "a list of strings");
	for (const struct hcl_node *n = node->first; n; n = n->next)
		if ((n->kind == HCL_NODE_STRING ? fn(c, n) : config_wrong(c, n, key, "a string")) <
		    0)
			r = -EINVAL;
	return r;
}

/* --- bodies --- */

int
config_read_blocks(
    struct config_reader *c, const struct hcl_node *node, const struct config_attr *known)
{
	int r = 0;

	if (node->kind == HCL_NODE_OBJECT)
		return config_read_body(c, node, known);
	if (node->kind != HCL_NODE_LIST)
		return config_wrong(c, node, node->key, "a block");
	for (const struct hcl_node *n = node->first; n; n = n->next)
		if ((n->kind == HCL_NODE_OBJECT ? config_read_body(c, n, known)
						: config_wrong(c, n, node->key, "a block")) < 0)
			r = -EINVAL;
	return r;
}

static int
read_attr(struct config_reader *c, const struct hcl_node *node, const struct config_attr *a)
{
	char *at = (char *)c->config + a->offset;

	switch (a->kind) {
	case ATTR_CALL:
		return a->fn(c, node);
	case ATTR_TEXT:
		if (node->kind == HCL_NODE_STRING && node->text[0] == '\0')
			return 0;
		return config_get_text(c, node, node->key, at, a->size);
	case ATTR_BOOL:
		return config_get_bool(c, node, node->key, (bool *)at);
	case ATTR_NUMBER:
		return config_get_number(c, node, node->key, a->most, (uint64_t *)(void *)at);
	case ATTR_BLOCK:
		return config_read_blocks(c, node, a->inside);
	case ATTR_UNUSED:
		config_warn(c, node->key_at, node->key, a->why);
		return 0;
	}
	return 0;
}

static bool
is_repeatable(const struct config_attr *a)
{
	return a->kind == ATTR_BLOCK || a->kind == ATTR_UNUSED;
}

int
config_read_body(
    struct config_reader *c, const struct hcl_node *body, const struct config_attr *known)
{
	uint64_t seen = 0;
	int r = 0;

	for (const struct hcl_node *n = body->first; n; n = n->next) {
		const struct config_attr *a = known;

		while (a->key && strcmp(a->key, n->key) != 0)
			a++;
		if (!a->key && !a->fn) {
			warn_unknown(c, n, known);
			continue;
		}
		if (n->kind == HCL_NODE_NULL)
			continue;
		if (a->key && !is_repeatable(a)) {
			if (seen >> (a - known) & 1) {
				r = config_fail(c, n->key_at, "'%s' occurs twice", n->key);
				continue;
			}
			seen |= 1ull << (a - known);
		}
		if ((a->key ? read_attr(c, n, a) : a->fn(c, n)) < 0)
			r = -EINVAL;
	}
	return r;
}
