// SPDX-License-Identifier: Apache-2.0
/* job_read.c: reads a block of a job file by the table of blocks; expands "dynamic" blocks. Runs
 * in: cli, job-parser. */
#include <string.h>

#include "common/similar.h"
#include "hcl/hcl_doc.h"
#include "jobspec/job_block.h"

struct reader {
	struct hcl *h;
	const struct job_block *block;
	json_t *json;
};

static const struct job_field *
find_field(const struct job_block *block, const char *name)
{
	for (size_t i = 0; i < block->n; i++)
		if (block->fields[i].name && strcmp(block->fields[i].name, name) == 0)
			return &block->fields[i];
	return NULL;
}

static bool
is_block(const struct job_field *f)
{
	return f->block != NULL;
}

/* "did you mean" the name of another attribute, or block, of this block. */
static const char *
suggest(const struct reader *r, const char *name, bool block)
{
	const char *names[64], *similar;
	size_t n = 0;

	for (size_t i = 0; i < r->block->n && n < 64; i++) {
		const struct job_field *f = &r->block->fields[i];

		if (f->name && (is_block(f) || f->is_map) == block)
			names[n++] = f->name;
	}
	similar = similar_name(name, names, n);
	return similar ? hcl_printf(r->h, ": did you mean \"%s\"?", similar) : "";
}

static void
set(struct reader *r, const struct job_field *f, json_t *value)
{
	json_object_set_new_nocheck(r->json, f->json, value);
}

static bool
is_set(const struct reader *r, const struct job_field *f)
{
	const json_t *v = json_object_get(r->json, f->json);

	return v && !json_is_null(v);
}

static void
read_attr(struct reader *r, const struct hcl_attr *a, const struct hcl_scope *scope)
{
	const struct job_field *f = find_field(r->block, a->name);
	json_t *value;

	if (!f) {
		hcl_error(r->h, a->name_at, "unknown attribute \"%s\" in a %s block%s", a->name,
		    job_block_name(r->block), suggest(r, a->name, false));
		return;
	}
	if (is_block(f) || (f->is_map && !f->or_attr)) {
		hcl_error(r->h, a->name_at, "\"%s\" is a block: write %s { … } without \"=\"",
		    a->name, a->name);
		return;
	}
	value = job_read_value(r->h, f->kind, a->expr, scope);
	if (!value)
		value = job_unset_value(f->kind); /* so that it does not count as missing too */
	set(r, f, value);
}

static size_t
label_count(const struct job_block *block)
{
	return block->n > 0 && block->fields[0].kind == JOB_LABEL_TEXT;
}

/* A block as it is read: from the file, or one that a dynamic block makes. */
struct source {
	const struct hcl_block *block;
	const struct hcl_body *body;
	const struct hcl_scope *scope;
	size_t n_labels;
	const struct hcl_label *labels;
};

static bool
check_labels(struct reader *r, const struct job_field *f, const struct source *s)
{
	size_t expected = label_count(f->block);

	if (s->n_labels == expected)
		return true;
	if (s->n_labels > expected)
		hcl_error(r->h, s->labels[expected].at, "a %s block has %s, found \"%s\"", f->name,
		    expected == 0 ? "no label" : "one label", s->labels[expected].text);
	else
		hcl_error(r->h, s->block->type_at, "a %s block needs a name: %s \"name\" { … }",
		    f->name, f->name);
	return false;
}

static void
read_one_block(struct reader *r, const struct job_field *f, const struct source *s)
{
	json_t *made, *list;

	if (!check_labels(r, f, s))
		return;
	if ((f->kind == JOB_ONE || f->kind == JOB_ONE_OMIT) && is_set(r, f)) {
		hcl_error(r->h, s->block->type_at, "only one %s block is allowed here", f->name);
		return;
	}
	made = job_read_block(r->h, f->block, s->body, s->scope,
	    s->n_labels > 0 ? s->labels[0].text : NULL, s->block->type_at);
	if (f->kind == JOB_ONE || f->kind == JOB_ONE_OMIT) {
		set(r, f, made);
		return;
	}
	list = json_object_get(r->json, f->json);
	if (!list || json_is_null(list)) {
		list = f->kind == JOB_MANY ? json_array() : json_object();
		set(r, f, list);
	}
	if (f->kind == JOB_MANY)
		json_array_append_new(list, made);
	else
		json_object_set_new_nocheck(list, s->labels[0].text, made);
}

static void
read_map_block(struct reader *r, const struct job_field *f, const struct source *s)
{
	if (is_set(r, f))
		hcl_error(r->h, s->block->type_at, "only one %s block is allowed here", f->name);
	else if (s->n_labels > 0)
		hcl_error(r->h, s->labels[0].at, "a %s block has no label", f->name);
	else
		set(r, f, job_read_map(r->h, f->kind, s->body, s->scope));
}

static void
read_source(struct reader *r, const char *type, const struct source *s)
{
	const struct job_field *f = find_field(r->block, type);

	if (!f)
		hcl_error(r->h, s->block->type_at, "unknown block \"%s\" in a %s block%s", type,
		    job_block_name(r->block), suggest(r, type, true));
	else if (is_block(f))
		read_one_block(r, f, s);
	else if (f->is_map)
		read_map_block(r, f, s);
	else
		hcl_error(
		    r->h, s->block->type_at, "\"%s\" is an attribute: write %s = …", type, type);
}

struct dynamic {
	struct reader *r;
	const struct hcl_block *block;
	const struct hcl_scope *scope;
	const struct hcl_expr *for_each, *labels;
	const char *iterator;
	const struct hcl_body *content;
};

static void
read_dynamic_attrs(struct dynamic *d)
{
	struct hcl *h = d->r->h;

	d->iterator = d->block->labels[0].text;
	for (const struct hcl_attr *a = d->block->body->attrs; a; a = a->next) {
		if (strcmp(a->name, "for_each") == 0)
			d->for_each = a->expr;
		else if (strcmp(a->name, "labels") == 0)
			d->labels = a->expr;
		else if (strcmp(a->name, "iterator") != 0)
			hcl_fail(h, a->name_at,
			    "a dynamic block has the attributes for_each, iterator and labels, not "
			    "\"%s\"",
			    a->name);
		else if (hcl_expr_keyword(a->expr))
			d->iterator = hcl_expr_keyword(a->expr);
		else
			hcl_fail(h, a->expr->at, "the iterator must be a name");
	}
	for (const struct hcl_block *b = d->block->body->blocks; b; b = b->next) {
		if (strcmp(b->type, "content") != 0 || d->content)
			hcl_fail(
			    h, b->type_at, "a dynamic block has one block inside, \"content\"");
		d->content = b->body;
	}
	if (!d->for_each)
		hcl_fail(h, d->block->type_at, "a dynamic block needs the attribute for_each");
	if (!d->content)
		hcl_fail(h, d->block->type_at, "a dynamic block needs the block content");
}

static void
read_dynamic_labels(struct dynamic *d, struct source *s)
{
	struct hcl *h = d->r->h;
	struct hcl_label *labels;
	struct hcl_value *v;
	const char *why = "";

	if (!d->labels)
		return;
	v = hcl_convert(h, hcl_eval(h, d->labels, s->scope),
	    hcl_type_list(h, HCL_LIST, &hcl_type_string), &why);
	if (!v || !hcl_is_wholly_known(v) || hcl_is_null(v))
		hcl_fail(h, d->labels->at, "labels must be a list of strings");
	labels = hcl_alloc(h, v->len * sizeof *labels);
	for (size_t i = 0; i < v->len; i++) {
		if (hcl_is_null(v->items[i]))
			hcl_fail(h, d->labels->at, "a label must not be null");
		labels[i] = (struct hcl_label){ v->items[i]->string, d->labels->at };
	}
	s->labels = labels;
	s->n_labels = v->len;
}

static void
expand_once(struct dynamic *d, struct hcl_value *key, struct hcl_value *value)
{
	struct hcl *h = d->r->h;
	struct hcl_member *members = hcl_alloc(h, 2 * sizeof *members);
	struct hcl_variable *variable = hcl_new_object(h, struct hcl_variable);
	struct hcl_scope *scope = hcl_new_object(h, struct hcl_scope);
	struct source s = { .block = d->block, .body = d->content };

	members[0] = (struct hcl_member){ "key", 3, key };
	members[1] = (struct hcl_member){ "value", 5, value };
	*variable = (struct hcl_variable){ d->iterator, hcl_object(h, members, 2) };
	*scope = (struct hcl_scope){ .up = d->scope, .variables = variable, .n = 1 };
	s.scope = scope;
	read_dynamic_labels(d, &s);
	read_source(d->r, d->block->labels[0].text, &s);
}

static void
expand(struct hcl *h, void *arg)
{
	struct dynamic *d = arg;
	struct hcl_value *list, *key, *value;

	if (d->block->n_labels != 1)
		hcl_fail(h, d->block->type_at,
		    "a dynamic block needs the type of the blocks that it makes: dynamic \"type\" "
		    "{ … }");
	read_dynamic_attrs(d);
	list = hcl_eval(h, d->for_each, d->scope);
	if (list->state != HCL_KNOWN || (!hcl_is_sequence(list) && !hcl_is_mapping(list)))
		hcl_fail(h, d->for_each->at, "for_each must be a list, a set or a map, found %s",
		    hcl_value_type_name(h, list));
	for (size_t i = 0; i < list->len; i++) {
		value = hcl_element(h, list, i, &key);
		expand_once(d, key, value);
	}
}

static void
read_blocks(struct reader *r, const struct hcl_body *body, const struct hcl_scope *scope)
{
	for (const struct hcl_block *b = body->blocks; b; b = b->next) {
		struct source s = { b, b->body, scope, b->n_labels, b->labels };
		struct dynamic d = { .r = r, .block = b, .scope = scope };

		if (strcmp(b->type, "dynamic") == 0)
			(void)hcl_try(r->h, expand, &d);
		else
			read_source(r, b->type, &s);
	}
}

static void
complete(struct reader *r, struct hcl_range at)
{
	for (size_t i = 0; i < r->block->n; i++) {
		const struct job_field *f = &r->block->fields[i];

		if (json_object_get(r->json, f->json))
			continue;
		if (f->required)
			hcl_error(r->h, at, "a %s block needs the attribute \"%s\"",
			    job_block_name(r->block), f->name);
		if (f->kind != JOB_ONE_OMIT)
			set(r, f, job_unset_value(f->kind));
	}
}

struct entry {
	struct reader *r;
	const struct hcl_body *body;
	const struct hcl_scope *scope;
	struct hcl_range at;
};

static void
read_body(struct hcl *h, void *arg)
{
	struct entry *x = arg;

	hcl_enter(h, x->at);
	for (const struct hcl_attr *a = x->body->attrs; a; a = a->next)
		read_attr(x->r, a, x->scope);
	read_blocks(x->r, x->body, x->scope);
	hcl_exit(h);
}

json_t *
job_read_block(struct hcl *h, const struct job_block *block, const struct hcl_body *body,
    const struct hcl_scope *scope, const char *label, struct hcl_range at)
{
	struct reader r = { .h = h, .block = block, .json = json_object() };
	struct entry x = { &r, body, scope, at };

	if (label)
		set(&r, &block->fields[0], json_string_nocheck(label));
	(void)hcl_try(h, read_body, &x);
	complete(&r, at);
	job_finish_rule(block, r.json);
	return r.json;
}
