// SPDX-License-Identifier: Apache-2.0
/* job_value.c: values of attributes as JSON of the API. Runs in: cli, job-parser. */
#include <stdint.h>
#include <string.h>

#include "common/duration.h"
#include "common/mem.h"
#include "hcl/hcl_number.h"
#include "jobspec/job_block.h"

struct range {
	int64_t min;
	uint64_t max;
};

static struct range
range_of(enum job_kind kind)
{
	switch (kind) {
	case JOB_UINT:
	case JOB_OPT_UINT:
		return (struct range){ 0, UINT64_MAX };
	case JOB_UINT8:
		return (struct range){ 0, UINT8_MAX };
	case JOB_UINT16:
	case JOB_UINT16S:
		return (struct range){ 0, UINT16_MAX };
	case JOB_OPT_UINT32:
		return (struct range){ 0, UINT32_MAX };
	case JOB_OPT_INT8:
		return (struct range){ INT8_MIN, INT8_MAX };
	default:
		return (struct range){ INT64_MIN, INT64_MAX };
	}
}

static struct hcl_value *
convert(struct hcl *h, struct hcl_value *v, const struct hcl_type *type, struct hcl_range at)
{
	const char *why = "";
	struct hcl_value *made = hcl_convert(h, v, type, &why);

	if (!made)
		hcl_fail(h, at, "wrong value: %s", why);
	if (!hcl_is_wholly_known(made))
		hcl_fail(h, at, "this value is not known when the file is read");
	return made;
}

static json_t *
read_number(struct hcl *h, enum job_kind kind, struct hcl_value *v, struct hcl_range at)
{
	struct range r = range_of(kind);
	int64_t n;

	v = convert(h, v, &hcl_type_number, at);
	if (kind == JOB_WRAPPED_INT8)
		return json_integer(
		    (int8_t)(uint8_t)(uint64_t)mpfr_get_sj(v->number->v, MPFR_RNDZ));
	if (!hcl_number_is_int(v->number))
		hcl_fail(h, at, "expected a whole number, found %s", hcl_number_text(h, v->number));
	if (!hcl_number_int64(v->number, &n) || n < r.min || (n > 0 && (uint64_t)n > r.max))
		hcl_fail(h, at, "expected a number from %lld to %llu, found %s", (long long)r.min,
		    (unsigned long long)r.max, hcl_number_text(h, v->number));
	return json_integer(n);
}

/* A number is nanoseconds; a text has units. */
static json_t *
read_duration(struct hcl *h, struct hcl_value *v, struct hcl_range at)
{
	struct err e = { 0 };
	int64_t ns;

	if (v->state != HCL_KNOWN)
		hcl_fail(h, at, "expected a duration such as \"30s\", found %s",
		    hcl_value_type_name(h, v));
	if (v->kind == HCL_STRING) {
		if (duration_parse(v->string, &ns, &e) < 0)
			hcl_fail(
			    h, at, "expected a duration such as \"30s\" or \"1h30m\": %s", e.msg);
		return json_integer(ns);
	}
	if (v->kind != HCL_NUMBER)
		hcl_fail(h, at, "expected a duration such as \"30s\", found %s",
		    hcl_value_type_name(h, v));
	return read_number(h, JOB_INT, v, at);
}

static json_t *
text_json(const struct hcl_value *v)
{
	return json_stringn_nocheck(v->string, v->len);
}

static json_t *
read_list(struct hcl *h, enum job_kind kind, struct hcl_value *v, struct hcl_range at)
{
	const struct hcl_type *item = kind == JOB_UINT16S ? &hcl_type_number : &hcl_type_string;
	json_t *list;

	v = convert(h, v, hcl_type_list(h, HCL_LIST, item), at);
	if (hcl_is_null(v))
		return json_null();
	for (size_t i = 0; i < v->len; i++) {
		if (hcl_is_null(v->items[i]))
			hcl_fail(h, at, "an element of this list is null");
		if (kind == JOB_UINT16S)
			json_decref(read_number(
			    h, kind, v->items[i], at)); /* may fail, before there is a list */
	}
	list = json_array();
	for (size_t i = 0; i < v->len; i++)
		json_array_append_new(list, kind == JOB_UINT16S
						? read_number(h, kind, v->items[i], at)
						: text_json(v->items[i]));
	return list;
}

static json_t *
read_string_map(struct hcl *h, struct hcl_value *v, struct hcl_range at)
{
	json_t *map;

	v = convert(h, v, hcl_type_list(h, HCL_MAP, &hcl_type_string), at);
	if (hcl_is_null(v))
		return json_null();
	for (size_t i = 0; i < v->len; i++)
		if (hcl_is_null(v->members[i].value))
			hcl_fail(h, at, "element \"%s\" is null", v->members[i].key);
	map = json_object();
	for (size_t i = 0; i < v->len; i++)
		json_object_setn_new_nocheck(
		    map, v->members[i].key, v->members[i].key_len, text_json(v->members[i].value));
	return map;
}

static bool
is_optional(enum job_kind kind)
{
	switch (kind) {
	case JOB_OPT_STRING:
	case JOB_OPT_INT:
	case JOB_OPT_UINT:
	case JOB_OPT_INT8:
	case JOB_WRAPPED_INT8:
	case JOB_OPT_UINT32:
	case JOB_OPT_BOOL:
		return true;
	default:
		return false;
	}
}

static json_t *
read_scalar(struct hcl *h, enum job_kind kind, struct hcl_value *v, struct hcl_range at)
{
	if (hcl_is_null(v) && is_optional(kind))
		return json_null();
	if (hcl_is_null(v))
		hcl_fail(h, at, "the value must not be null");
	if (kind == JOB_STRING || kind == JOB_OPT_STRING)
		return text_json(convert(h, v, &hcl_type_string, at));
	if (kind == JOB_BOOL || kind == JOB_OPT_BOOL)
		return json_boolean(convert(h, v, &hcl_type_bool, at)->boolean);
	return read_number(h, kind, v, at);
}

struct reading {
	enum job_kind kind;
	const struct hcl_expr *e;
	const struct hcl_scope *scope;
	json_t *json;
};

static void
read_value(struct hcl *h, void *arg)
{
	struct reading *r = arg;
	struct hcl_value *v = hcl_eval(h, r->e, r->scope);

	switch (r->kind) {
	case JOB_DURATION:
	case JOB_OPT_DURATION:
		r->json = read_duration(h, v, r->e->at);
		break;
	case JOB_STRINGS:
	case JOB_UINT16S:
		r->json = read_list(h, r->kind, v, r->e->at);
		break;
	case JOB_STRING_MAP:
		r->json = read_string_map(h, v, r->e->at);
		break;
	default:
		r->json = read_scalar(h, r->kind, v, r->e->at);
		break;
	}
}

json_t *
job_read_value(
    struct hcl *h, enum job_kind kind, const struct hcl_expr *e, const struct hcl_scope *scope)
{
	struct reading r = { kind, e, scope, NULL };

	return hcl_try(h, read_value, &r) ? r.json : NULL;
}

/* An object in an attribute of a map without a schema is a list of one, as a block is. */
static struct hcl_value *
free_value(struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope)
{
	struct hcl_value *v = hcl_eval(h, e, scope), **one;

	if (e->kind != HCL_EXPR_OBJECT)
		return v;
	one = hcl_alloc(h, sizeof(struct hcl_value *));
	*one = v;
	return hcl_tuple(h, one, 1);
}

static struct hcl_value *blocks_value(
    struct hcl *h, const struct hcl_block *first, const struct hcl_scope *scope);

static bool
is_first_of_type(const struct hcl_body *body, const struct hcl_block *b)
{
	for (const struct hcl_block *x = body->blocks; x != b; x = x->next)
		if (strcmp(x->type, b->type) == 0)
			return false;
	return true;
}

/* Attributes and blocks of a body without a schema, as members; of a block and an attribute with
 * one name the block counts. */
static struct hcl_value *
body_value(struct hcl *h, const struct hcl_body *body, const struct hcl_scope *scope)
{
	struct hcl_member *members;
	size_t n = 0;

	for (const struct hcl_attr *a = body->attrs; a; a = a->next)
		n++;
	for (const struct hcl_block *b = body->blocks; b; b = b->next)
		n++;
	members = hcl_alloc(h, n * sizeof *members);
	n = 0;
	for (const struct hcl_attr *a = body->attrs; a; a = a->next)
		members[n++] =
		    (struct hcl_member){ a->name, strlen(a->name), free_value(h, a->expr, scope) };
	for (const struct hcl_block *b = body->blocks; b; b = b->next)
		if (is_first_of_type(body, b))
			members[n++] = (struct hcl_member){ b->type, strlen(b->type),
				blocks_value(h, b, scope) };
	return hcl_object(h, members, n);
}

static struct hcl_value *
tuple_of_one(struct hcl *h, struct hcl_value *v)
{
	struct hcl_value **one = hcl_alloc(h, sizeof(struct hcl_value *));

	*one = v;
	return hcl_tuple(h, one, 1);
}

/* Labels become objects around the body, the first outermost. */
static struct hcl_value *
block_value(struct hcl *h, const struct hcl_block *b, const struct hcl_scope *scope)
{
	struct hcl_value *v = body_value(h, b->body, scope);

	for (size_t i = b->n_labels; i-- > 0;) {
		struct hcl_member *m = hcl_new_object(h, struct hcl_member);

		*m = (struct hcl_member){ b->labels[i].text, strlen(b->labels[i].text),
			tuple_of_one(h, v) };
		v = hcl_object(h, m, 1);
	}
	return v;
}

/* All blocks of this type from here on. */
static struct hcl_value *
blocks_value(struct hcl *h, const struct hcl_block *first, const struct hcl_scope *scope)
{
	struct hcl_value **items;
	size_t n = 0;

	for (const struct hcl_block *b = first; b; b = b->next)
		n += strcmp(b->type, first->type) == 0;
	items = hcl_alloc(h, n * sizeof(struct hcl_value *));
	n = 0;
	for (const struct hcl_block *b = first; b; b = b->next)
		if (strcmp(b->type, first->type) == 0)
			items[n++] = block_value(h, b, scope);
	return hcl_tuple(h, items, n);
}

struct map_reading {
	enum job_kind kind;
	struct hcl_range at;
	struct hcl_value *v;
	const struct hcl_expr *e;
	const struct hcl_block *b;
	const struct hcl_scope *scope;
	json_t *json;
};

static void
read_member(struct hcl *h, void *arg)
{
	struct map_reading *r = arg;

	r->v = r->e ? free_value(h, r->e, r->scope) : blocks_value(h, r->b, r->scope);
	if (r->kind == JOB_ANY_MAP)
		r->json = job_json(h, r->v, r->at);
	else if (r->kind == JOB_LISTS_MAP)
		r->json = read_list(h, JOB_STRINGS, r->v, r->at);
	else
		r->json = read_scalar(h, JOB_STRING, r->v, r->at);
}

/* A null in the map itself, not deeper, is as if it was not there. */
static void
set_member(json_t *map, const char *name, json_t *value)
{
	if (!json_is_null(value))
		json_object_set_new_nocheck(map, name, value);
}

json_t *
job_read_map(
    struct hcl *h, enum job_kind kind, const struct hcl_body *body, const struct hcl_scope *scope)
{
	json_t *map = json_object();

	for (const struct hcl_attr *a = body->attrs; a; a = a->next) {
		struct map_reading r = {
			.kind = kind, .at = a->expr->at, .e = a->expr, .scope = scope
		};

		if (hcl_try(h, read_member, &r))
			set_member(map, a->name, r.json);
	}
	for (const struct hcl_block *b = body->blocks; b; b = b->next) {
		struct map_reading r = { .kind = kind, .at = b->type_at, .b = b, .scope = scope };

		if (is_first_of_type(body, b) && hcl_try(h, read_member, &r))
			set_member(map, b->type, r.json);
	}
	return map;
}

/* A whole number that fits becomes one; any other is a double. */
static json_t *
number_json(const struct hcl_value *v)
{
	int64_t n;

	return hcl_number_int64(v->number, &n) ? json_integer(n)
					       : json_real(hcl_number_double(v->number));
}

static json_t *
value_json(const struct hcl_value *v)
{
	json_t *json;

	if (v->state == HCL_NULL)
		return json_null();
	if (v->kind == HCL_STRING)
		return text_json(v);
	if (v->kind == HCL_BOOL)
		return json_boolean(v->boolean);
	if (v->kind == HCL_NUMBER)
		return number_json(v);
	if (hcl_is_sequence(v)) {
		json = json_array();
		for (size_t i = 0; i < v->len; i++)
			json_array_append_new(json, value_json(v->items[i]));
		return json;
	}
	json = json_object();
	for (size_t i = 0; i < v->len; i++)
		json_object_setn_new_nocheck(json, v->members[i].key, v->members[i].key_len,
		    value_json(v->members[i].value));
	return json;
}

json_t *
job_json(struct hcl *h, const struct hcl_value *v, struct hcl_range at)
{
	if (!hcl_is_wholly_known(v))
		hcl_fail(h, at, "this value is not known when the file is read");
	return value_json(v);
}

json_t *
job_unset_value(enum job_kind kind)
{
	switch (kind) {
	case JOB_STRING:
	case JOB_EMPTY:
	case JOB_LABEL_TEXT:
		return json_string("");
	case JOB_INT:
	case JOB_UINT:
	case JOB_UINT8:
	case JOB_UINT16:
	case JOB_DURATION:
	case JOB_ZERO:
		return json_integer(0);
	case JOB_BOOL:
	case JOB_FALSE:
		return json_false();
	default:
		return json_null();
	}
}
