/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_convert.c: converts values to types. Runs in: cli, job-parser. */
#include <string.h>

#include "hcl/hcl_number.h"

struct conversion {
	struct hcl *h;
	const char *why; /* the innermost reason */
};

static struct hcl_value *convert(
    struct conversion *c, struct hcl_value *v, const struct hcl_type *type);

static struct hcl_value *
refuse_type(struct conversion *c, const struct hcl_value *v, const struct hcl_type *type)
{
	if (!c->why)
		c->why = hcl_printf(c->h, "expected %s, found %s", hcl_type_name(c->h, type),
		    hcl_value_type_name(c->h, v));
	return NULL;
}

static struct hcl_value *
to_string(struct conversion *c, struct hcl_value *v)
{
	if (v->kind == HCL_BOOL)
		return hcl_text(c->h, v->boolean ? "true" : "false");
	if (v->kind == HCL_NUMBER)
		return hcl_text(c->h, hcl_number_text(c->h, v->number));
	return refuse_type(c, v, &hcl_type_string);
}

static struct hcl_value *
to_number(struct conversion *c, struct hcl_value *v)
{
	struct hcl_value *n;

	if (v->kind != HCL_STRING)
		return refuse_type(c, v, &hcl_type_number);
	n = hcl_parse_number(c->h, v->string, v->len);
	if (!n)
		c->why = hcl_printf(c->h, "\"%.40s\" is not a number", v->string);
	return n;
}

static struct hcl_value *
to_bool(struct conversion *c, struct hcl_value *v)
{
	if (v->kind != HCL_STRING)
		return refuse_type(c, v, &hcl_type_bool);
	if (strcmp(v->string, "true") == 0 || strcmp(v->string, "1") == 0)
		return hcl_bool(c->h, true);
	if (strcmp(v->string, "false") == 0 || strcmp(v->string, "0") == 0)
		return hcl_bool(c->h, false);
	c->why = hcl_printf(c->h, "expected \"true\" or \"false\", found \"%.40s\"", v->string);
	return NULL;
}

/* The common type of the elements, for a target such as "list of any". */
static const struct hcl_type *
common_item_type(struct conversion *c, const struct hcl_value *v)
{
	const struct hcl_type **types = hcl_alloc(c->h, v->len * sizeof(struct hcl_type *));
	const struct hcl_type *common;

	if (v->type && v->type->item)
		return v->type->item;
	for (size_t i = 0; i < v->len; i++)
		types[i] = hcl_type_of(c->h, hcl_is_mapping(v) ? v->members[i].value : v->items[i]);
	common = hcl_unify(c->h, types, v->len);
	for (size_t i = 0; i < v->len && common && common->kind == HCL_ANY; i++)
		if (types[i]->kind != HCL_ANY)
			common = NULL;
	if (!common)
		c->why = "all elements must have the same type";
	return common;
}

static bool
has_any(const struct hcl_type *t)
{
	if (t->item)
		return has_any(t->item);
	for (size_t i = 0; i < t->n; i++)
		if (has_any(t->items ? t->items[i] : t->members[i].type))
			return true;
	return t->kind == HCL_ANY;
}

/* After elements were converted to a type with "any" inside, finds the type that all have, and
 * converts them to it if `mix`. */
static const struct hcl_type *
settle_items(struct conversion *c, struct hcl_value **items, size_t n, bool mix)
{
	const struct hcl_type **types = hcl_alloc(c->h, n * sizeof(struct hcl_type *)), *common;

	for (size_t i = 0; i < n; i++)
		types[i] = hcl_type_of(c->h, items[i]);
	common = hcl_unify(c->h, types, n);
	for (size_t i = 0; i < n && common; i++) {
		if (hcl_type_equal(types[i], common))
			continue;
		items[i] = mix ? convert(c, items[i], common) : NULL;
		if (!items[i])
			common = NULL;
	}
	if (!common && !c->why)
		c->why = "all elements must have the same type";
	return common;
}

/* Whether v has no elements that could show that their type cannot be converted. */
static bool
is_empty_of_other(struct conversion *c, const struct hcl_value *v, const struct hcl_type *item)
{
	return v->len == 0 && v->type && !hcl_type_converts(c->h, v->type->item, item);
}

/* Returns the type that the elements of v get in a collection of this type; NULL with the problem
 * if v cannot be one. accepted: whether v is of the right kind. */
static const struct hcl_type *
element_type(struct conversion *c, struct hcl_value *v, const struct hcl_type *type, bool accepted)
{
	const struct hcl_type *item = type->item;

	if (accepted && item->kind == HCL_ANY)
		item = common_item_type(c, v);
	if (item && (!accepted || is_empty_of_other(c, v, item))) {
		(void)refuse_type(c, v, type);
		return NULL;
	}
	return item;
}

static struct hcl_value *
to_list(struct conversion *c, struct hcl_value *v, const struct hcl_type *type)
{
	const struct hcl_type *item = element_type(c, v, type, hcl_is_sequence(v));
	struct hcl_value **items;

	if (!item)
		return NULL;
	items = hcl_alloc(c->h, v->len * sizeof(struct hcl_value *));
	for (size_t i = 0; i < v->len; i++) {
		items[i] = convert(c, v->items[i], item);
		if (!items[i])
			return NULL;
	}
	if (v->len > 0 && has_any(item))
		item =
		    settle_items(c, items, v->len, v->kind == HCL_TUPLE && type->kind == HCL_LIST);
	if (!item)
		return NULL;
	return type->kind == HCL_SET ? hcl_set(c->h, item, items, v->len)
				     : hcl_list(c->h, item, items, v->len);
}

static struct hcl_value *
to_map(struct conversion *c, struct hcl_value *v, const struct hcl_type *type)
{
	const struct hcl_type *item = element_type(c, v, type, hcl_is_mapping(v));
	struct hcl_member *members;
	struct hcl_value **items;

	if (!item)
		return NULL;
	members = hcl_alloc(c->h, v->len * sizeof *members);
	items = hcl_alloc(c->h, v->len * sizeof(struct hcl_value *));
	for (size_t i = 0; i < v->len; i++) {
		items[i] = convert(c, v->members[i].value, item);
		if (!items[i]) {
			c->why = hcl_printf(c->h, "element \"%s\": %s", v->members[i].key, c->why);
			return NULL;
		}
	}
	if (v->len > 0 && has_any(item))
		item = settle_items(c, items, v->len, item->kind != HCL_TUPLE);
	if (!item)
		return NULL;
	for (size_t i = 0; i < v->len; i++) {
		members[i] = v->members[i];
		members[i].value = items[i];
	}
	return hcl_map(c->h, item, members, v->len);
}

static struct hcl_value *
to_tuple(struct conversion *c, struct hcl_value *v, const struct hcl_type *type)
{
	struct hcl_value **items;

	if (v->kind != HCL_TUPLE)
		return refuse_type(c, v, type);
	if (v->len != type->n) {
		c->why = hcl_printf(c->h, "expected %zu elements, found %zu", type->n, v->len);
		return NULL;
	}
	items = hcl_alloc(c->h, v->len * sizeof(struct hcl_value *));
	for (size_t i = 0; i < v->len; i++) {
		items[i] = convert(c, v->items[i], type->items[i]);
		if (!items[i])
			return NULL;
	}
	return hcl_tuple(c->h, items, v->len);
}

/* Members that the type does not have are left out. */
static struct hcl_value *
to_object(struct conversion *c, struct hcl_value *v, const struct hcl_type *type)
{
	struct hcl_member *members;

	if (!hcl_is_mapping(v))
		return refuse_type(c, v, type);
	members = hcl_alloc(c->h, type->n * sizeof *members);
	for (size_t i = 0; i < type->n; i++) {
		const struct hcl_type_member *m = &type->members[i];
		struct hcl_value *found = hcl_get(v, m->name, strlen(m->name));

		if (!found && !m->optional) {
			c->why = hcl_printf(c->h, "attribute \"%s\" is required", m->name);
			return NULL;
		}
		members[i] = (struct hcl_member){ .key = m->name, .key_len = strlen(m->name) };
		members[i].value = found ? convert(c, found, m->type) : hcl_null(c->h, m->type);
		if (!members[i].value) {
			c->why = hcl_printf(c->h, "attribute \"%s\": %s", m->name, c->why);
			return NULL;
		}
	}
	return hcl_object(c->h, members, type->n);
}

static struct hcl_value *
convert(struct conversion *c, struct hcl_value *v, const struct hcl_type *type)
{
	hcl_step(c->h, 1);
	if (type->kind == HCL_ANY)
		return v;
	if (v->state != HCL_KNOWN)
		return v->state == HCL_NULL ? hcl_null(c->h, type) : hcl_unknown(c->h, type);
	switch (type->kind) {
	case HCL_STRING:
		return v->kind == HCL_STRING ? v : to_string(c, v);
	case HCL_NUMBER:
		return v->kind == HCL_NUMBER ? v : to_number(c, v);
	case HCL_BOOL:
		return v->kind == HCL_BOOL ? v : to_bool(c, v);
	case HCL_LIST:
	case HCL_SET:
		return to_list(c, v, type);
	case HCL_MAP:
		return to_map(c, v, type);
	case HCL_TUPLE:
		return to_tuple(c, v, type);
	default:
		return to_object(c, v, type);
	}
}

struct hcl_value *
hcl_convert(struct hcl *h, struct hcl_value *v, const struct hcl_type *type, const char **ret_why)
{
	struct conversion c = { .h = h };
	struct hcl_value *made = convert(&c, v, type);

	if (!made && ret_why)
		*ret_why = c.why;
	return made;
}
