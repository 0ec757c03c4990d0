/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_read.c: reads YAML. What goes through values counts steps, so aliases do not multiply.
 * Runs in: cli, job-parser, template-renderer. */
#include "lang/yaml_read.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "common/list.h"

struct anchor {
	const char *name;
	void *value;
	unsigned open; /* how many nodes with this anchor have not ended */
	SLIST_ENTRY(anchor) entry;
};

struct reader {
	struct arena *arena;
	const struct yaml_maker *m;
	void *arg;
	yaml_parser_t parser;
	yaml_event_t event; /* the current one */
	SLIST_HEAD(, anchor) anchors;
	void *result;
};

struct pairs {
	struct yaml_pair *v;
	size_t n, room;
};

static void *read_node(struct reader *r);

static void
fail(struct reader *r, size_t line, const char *why)
{
	r->m->fail(r->arg, line, why);
	abort(); /* it has returned */
}

static void
fail_here(struct reader *r, const char *why)
{
	fail(r, r->event.start_mark.line, why);
}

static void
read_event(struct reader *r)
{
	arena_step(r->arena, 4);
	yaml_event_delete(&r->event);
	if (yaml_parser_parse(&r->parser, &r->event))
		return;
	memset(&r->event, 0, sizeof r->event);
	fail(r, r->parser.problem_mark.line,
	    r->parser.problem ? r->parser.problem : "it cannot be read");
}

static struct anchor *
find_anchor(struct reader *r, const char *name)
{
	struct anchor *a;

	SLIST_FOREACH (a, &r->anchors, entry) {
		arena_step(r->arena, 1);
		if (strcmp(a->name, name) == 0)
			return a;
	}
	return NULL;
}

/* Returns NULL for a node without an anchor. */
static struct anchor *
open_anchor(struct reader *r, const yaml_char_t *name)
{
	struct anchor *a;

	if (!name || !*name)
		return NULL;
	a = find_anchor(r, (const char *)name);
	if (!a) {
		a = arena_new(r->arena, struct anchor);
		a->name = arena_strndup(r->arena, (const char *)name, strlen((const char *)name));
		SLIST_INSERT_HEAD(&r->anchors, a, entry);
	}
	a->open++;
	return a;
}

static void *
close_anchor(struct anchor *a, void *v)
{
	if (a) {
		a->open--;
		a->value = v;
	}
	return v;
}

static void *
read_alias(struct reader *r)
{
	const struct anchor *a = find_anchor(r, (const char *)r->event.data.alias.anchor);

	if (a && a->open > 0)
		fail_here(r, "an alias is inside the node that it repeats");
	if (!a || !a->value)
		fail_here(r, "an alias has no anchor");
	return a->value;
}

static void *
make_scalar(struct reader *r, bool key)
{
	const char *tag = (const char *)r->event.data.scalar.tag;
	yaml_scalar_style_t style = r->event.data.scalar.style;
	struct yaml_scalar s = { .tag = tag ? tag : "",
		.s = (const char *)r->event.data.scalar.value,
		.len = r->event.data.scalar.length,
		.quoted = style == YAML_SINGLE_QUOTED_SCALAR_STYLE ||
			  style == YAML_DOUBLE_QUOTED_SCALAR_STYLE,
		.plain = r->event.data.scalar.plain_implicit,
		.key = key,
		.line = r->event.start_mark.line };

	return r->m->scalar(r->arg, &s);
}

static void *
read_scalar(struct reader *r)
{
	struct anchor *a = open_anchor(r, r->event.data.scalar.anchor);

	return close_anchor(a, make_scalar(r, false));
}

static void
add_pair(struct reader *r, struct pairs *pairs, struct yaml_pair pair)
{
	struct yaml_pair *grown;

	if (pairs->n == pairs->room) {
		pairs->room = 2 * pairs->room + 4;
		grown = arena_alloc(r->arena, pairs->room * sizeof *grown);
		if (pairs->n > 0)
			memcpy(grown, pairs->v, pairs->n * sizeof *grown);
		pairs->v = grown;
	}
	pairs->v[pairs->n++] = pair;
}

static void *
read_sequence(struct reader *r)
{
	const yaml_char_t *tag = r->event.data.sequence_start.tag;
	struct anchor *a = open_anchor(r, r->event.data.sequence_start.anchor);
	struct pairs items = { 0 };
	void **values;

	if (tag && *tag && strcmp((const char *)tag, YAML_SEQ_TAG) != 0)
		fail_here(r, "a sequence has the tag of something else");
	for (read_event(r); r->event.type != YAML_SEQUENCE_END_EVENT; read_event(r))
		add_pair(r, &items, (struct yaml_pair){ .value = read_node(r) });
	values = arena_alloc(r->arena, items.n * sizeof *values);
	for (size_t i = 0; i < items.n; i++)
		values[i] = items.v[i].value;
	return close_anchor(a, r->m->list(r->arg, values, items.n));
}

static bool
is_merge_key(const yaml_event_t *e)
{
	const char *tag = (const char *)e->data.scalar.tag;

	return e->type == YAML_SCALAR_EVENT &&
	       (tag && *tag
		       ? strcmp(tag, YAML_TAG("merge")) == 0
		       : e->data.scalar.length == 2 && memcmp(e->data.scalar.value, "<<", 2) == 0);
}

static void
read_member(struct reader *r, struct pairs *pairs)
{
	struct yaml_pair pair = { 0 };

	if (r->event.type != YAML_SCALAR_EVENT && r->m->scalar_keys)
		fail_here(r, "the key of a mapping must be a string");
	if (!is_merge_key(&r->event))
		pair.key = r->event.type == YAML_SCALAR_EVENT ? make_scalar(r, true) : read_node(r);
	read_event(r);
	pair.value = read_node(r);
	pair.line = r->event.start_mark.line;
	add_pair(r, pairs, pair);
}

static void *
read_mapping(struct reader *r)
{
	const yaml_char_t *tag = r->event.data.mapping_start.tag;
	struct anchor *a = open_anchor(r, r->event.data.mapping_start.anchor);
	struct pairs pairs = { 0 };

	if (tag && *tag && strcmp((const char *)tag, YAML_MAP_TAG) != 0)
		fail_here(r, "a mapping has the tag of something else");
	for (read_event(r); r->event.type != YAML_MAPPING_END_EVENT; read_event(r))
		read_member(r, &pairs);
	return close_anchor(a, r->m->map(r->arg, pairs.v, pairs.n));
}

static void *
read_node(struct reader *r)
{
	void *v = NULL;

	r->m->enter(r->arg);
	if (r->event.type == YAML_SCALAR_EVENT)
		v = read_scalar(r);
	else if (r->event.type == YAML_ALIAS_EVENT)
		v = read_alias(r);
	else if (r->event.type == YAML_SEQUENCE_START_EVENT)
		v = read_sequence(r);
	else if (r->event.type == YAML_MAPPING_START_EVENT)
		v = read_mapping(r);
	else
		fail_here(r, "expected a value");
	r->m->leave(r->arg);
	return v;
}

static void
read_stream(void *reader)
{
	struct reader *r = reader;

	read_event(r);
	read_event(r);
	if (r->event.type != YAML_DOCUMENT_START_EVENT) {
		if (r->m->one_document)
			fail_here(r, "expected a document");
		return;
	}
	read_event(r);
	r->result = read_node(r);
	if (!r->m->one_document)
		return;
	read_event(r);
	read_event(r);
	if (r->event.type != YAML_STREAM_END_EVENT)
		fail_here(r, "expected only one document");
}

/* libyaml's memory is not in the arena, so that its parser is deleted after errors too. */
void *
yaml_read(struct arena *a, const char *s, size_t len, const struct yaml_maker *m, void *arg)
{
	struct reader *r = arena_new(a, struct reader);
	bool ok;

	*r = (struct reader){ .arena = a, .m = m, .arg = arg };
	arena_count_bytes(a, 8 * len);
	if (!yaml_parser_initialize(&r->parser))
		fail(r, 0, "no memory is left to read YAML");
	yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r->parser, (const unsigned char *)s, len);
	ok = arena_try(a, read_stream, r);
	yaml_event_delete(&r->event);
	yaml_parser_delete(&r->parser);
	if (!ok)
		arena_leave(a);
	return r->result;
}
