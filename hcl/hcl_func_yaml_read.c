/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_yaml_read.c: reads YAML with libyaml. Aliases share their value, and what goes through
 * values counts steps, so they do not multiply. Runs in: cli, job-parser. */
#include <string.h>
#include <yaml.h>

#include "common/list.h"
#include "hcl/hcl_doc.h"
#include "hcl/hcl_func.h"
#include "hcl/hcl_yaml_scalar.h"

struct anchor {
	const char *name;
	struct hcl_value *value;
	unsigned open; /* how many nodes with this anchor have not ended */
	SLIST_ENTRY(anchor) entry;
};

struct reader {
	struct hcl_call *c;
	yaml_parser_t parser;
	yaml_event_t event; /* the current one */
	SLIST_HEAD(, anchor) anchors;
	struct hcl_value *result;
};

static struct hcl_value *read_node(struct reader *r);

static void
refuse_yaml(struct reader *r, size_t line, const char *why)
{
	hcl_refuse_argument(r->c, 0, "line %zu of the YAML: %s", line + 1, why);
}

static void
refuse_event(struct reader *r, const char *why)
{
	refuse_yaml(r, r->event.start_mark.line, why);
}

static void
read_event(struct reader *r)
{
	hcl_step(r->c->h, 4);
	yaml_event_delete(&r->event);
	if (yaml_parser_parse(&r->parser, &r->event))
		return;
	memset(&r->event, 0, sizeof r->event);
	refuse_yaml(r, r->parser.problem_mark.line,
	    r->parser.problem ? r->parser.problem : "it cannot be read");
}

static struct anchor *
find_anchor(struct reader *r, const char *name)
{
	struct anchor *a;

	SLIST_FOREACH (a, &r->anchors, entry) {
		hcl_step(r->c->h, 1);
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
		a = hcl_new_object(r->c->h, struct anchor);
		a->name = hcl_strndup(r->c->h, (const char *)name, strlen((const char *)name));
		SLIST_INSERT_HEAD(&r->anchors, a, entry);
	}
	a->open++;
	return a;
}

static struct hcl_value *
close_anchor(struct anchor *a, struct hcl_value *v)
{
	if (a) {
		a->open--;
		a->value = v;
	}
	return v;
}

static struct hcl_value *
read_alias(struct reader *r)
{
	const struct anchor *a = find_anchor(r, (const char *)r->event.data.alias.anchor);

	if (a && a->open > 0)
		refuse_event(r, "an alias is inside the node that it repeats");
	if (!a || !a->value)
		refuse_event(r, "an alias has no anchor");
	return a->value;
}

static struct hcl_value *
resolve(struct reader *r)
{
	const char *tag = (const char *)r->event.data.scalar.tag, *why = NULL;
	yaml_scalar_style_t style = r->event.data.scalar.style;
	bool quoted =
	    style == YAML_SINGLE_QUOTED_SCALAR_STYLE || style == YAML_DOUBLE_QUOTED_SCALAR_STYLE;
	struct hcl_value *v;

	v = hcl_yaml_scalar(r->c->h, tag ? tag : "", (const char *)r->event.data.scalar.value,
	    r->event.data.scalar.length, quoted, &why);
	if (!v)
		refuse_event(r, why);
	return v;
}

/* A block without a tag is a string, but is resolved before: "yes" in one becomes "true". */
static struct hcl_value *
read_scalar(struct reader *r)
{
	struct anchor *a = open_anchor(r, r->event.data.scalar.anchor);
	struct hcl_value *v = resolve(r);

	if (!r->event.data.scalar.tag && !r->event.data.scalar.plain_implicit)
		v = hcl_convert(r->c->h, v, &hcl_type_string, NULL);
	return close_anchor(a, v);
}

static struct hcl_value *
read_sequence(struct reader *r)
{
	const yaml_char_t *tag = r->event.data.sequence_start.tag;
	struct anchor *a = open_anchor(r, r->event.data.sequence_start.anchor);
	struct hcl_items items = { .h = r->c->h };

	if (tag && *tag && strcmp((const char *)tag, YAML_SEQ_TAG) != 0)
		refuse_event(r, "a sequence has the tag of something else");
	for (read_event(r); r->event.type != YAML_SEQUENCE_END_EVENT; read_event(r))
		hcl_items_add(&items, read_node(r));
	return close_anchor(a, hcl_tuple(r->c->h, items.v, items.n));
}

struct members {
	struct hcl_items keys, values;
};

static void
merge_members(struct reader *r, struct members *m, const struct hcl_value *from)
{
	if (from->state != HCL_KNOWN || !hcl_is_mapping(from))
		refuse_event(r, "\"<<\" can only merge mappings");
	for (size_t i = 0; i < from->len; i++) {
		hcl_items_add(
		    &m->keys, hcl_string(r->c->h, from->members[i].key, from->members[i].key_len));
		hcl_items_add(&m->values, from->members[i].value);
	}
}

static bool
is_merge_key(const yaml_event_t *e)
{
	const char *tag = (const char *)e->data.scalar.tag;

	return tag && *tag
		   ? strcmp(tag, YAML_TAG("merge")) == 0
		   : e->data.scalar.length == 2 && memcmp(e->data.scalar.value, "<<", 2) == 0;
}

static void
read_merge(struct reader *r, struct members *m)
{
	struct hcl_value *from;

	read_event(r);
	from = read_node(r);
	if (from->state != HCL_KNOWN || from->kind != HCL_TUPLE) {
		merge_members(r, m, from);
		return;
	}
	for (size_t i = 0; i < from->len; i++)
		merge_members(r, m, from->items[i]);
}

static void
read_member(struct reader *r, struct members *m)
{
	struct hcl_value *key;

	if (r->event.type != YAML_SCALAR_EVENT)
		refuse_event(r, "the key of a mapping must be a string");
	if (is_merge_key(&r->event)) {
		read_merge(r, m);
		return;
	}
	key = resolve(r);
	if (hcl_is_null(key))
		refuse_event(r, "the key of a mapping must not be null");
	hcl_items_add(&m->keys, hcl_convert(r->c->h, key, &hcl_type_string, NULL));
	read_event(r);
	hcl_items_add(&m->values, read_node(r));
}

static struct hcl_value *
read_mapping(struct reader *r)
{
	const yaml_char_t *tag = r->event.data.mapping_start.tag;
	struct anchor *a = open_anchor(r, r->event.data.mapping_start.anchor);
	struct members m = { { .h = r->c->h }, { .h = r->c->h } };
	struct hcl_member *members;

	if (tag && *tag && strcmp((const char *)tag, YAML_MAP_TAG) != 0)
		refuse_event(r, "a mapping has the tag of something else");
	for (read_event(r); r->event.type != YAML_MAPPING_END_EVENT; read_event(r))
		read_member(r, &m);
	members = hcl_alloc(r->c->h, m.keys.n * sizeof *members);
	for (size_t i = 0; i < m.keys.n; i++)
		members[i] =
		    (struct hcl_member){ m.keys.v[i]->string, m.keys.v[i]->len, m.values.v[i] };
	return close_anchor(a, hcl_object(r->c->h, members, m.keys.n));
}

static struct hcl_value *
read_node(struct reader *r)
{
	struct hcl_value *v = NULL;

	hcl_enter(r->c->h, r->c->at);
	if (r->event.type == YAML_SCALAR_EVENT)
		v = read_scalar(r);
	else if (r->event.type == YAML_ALIAS_EVENT)
		v = read_alias(r);
	else if (r->event.type == YAML_SEQUENCE_START_EVENT)
		v = read_sequence(r);
	else if (r->event.type == YAML_MAPPING_START_EVENT)
		v = read_mapping(r);
	else
		refuse_event(r, "expected a value");
	hcl_exit(r->c->h);
	return v;
}

static void
read_stream(struct hcl *h, void *arg)
{
	struct reader *r = arg;

	(void)h;
	read_event(r);
	read_event(r);
	if (r->event.type != YAML_DOCUMENT_START_EVENT)
		refuse_event(r, "expected a document");
	read_event(r);
	r->result = read_node(r);
	read_event(r);
	read_event(r);
	if (r->event.type != YAML_STREAM_END_EVENT)
		refuse_event(r, "expected only one document");
}

static void
end_stream(void *arg)
{
	struct reader *r = arg;

	yaml_event_delete(&r->event);
	yaml_parser_delete(&r->parser);
}

/* libyaml's memory is not in the arena, so that its parser is deleted after errors too. */
struct hcl_value *
hcl_fn_yamldecode(struct hcl_call *c)
{
	struct reader *r = hcl_new_object(c->h, struct reader);

	r->c = c;
	hcl_count_bytes(c->h, 8 * c->args[0]->len);
	if (!yaml_parser_initialize(&r->parser))
		hcl_refuse_argument(c, 0, "no memory is left to read YAML");
	yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(
	    &r->parser, (const unsigned char *)c->args[0]->string, c->args[0]->len);
	hcl_finally(c->h, read_stream, r, end_stream);
	return r->result;
}
