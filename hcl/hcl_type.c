/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_type.c: types of values: names, comparison, and the common type of several. Runs in: all
 * users of hcl/ that evaluate. */
#include <string.h>

#include "hcl/hcl_text.h"

const struct hcl_type hcl_type_any = { .kind = HCL_ANY };
const struct hcl_type hcl_type_string = { .kind = HCL_STRING };
const struct hcl_type hcl_type_number = { .kind = HCL_NUMBER };
const struct hcl_type hcl_type_bool = { .kind = HCL_BOOL };

const struct hcl_type *
hcl_type_list(struct hcl *h, enum hcl_kind kind, const struct hcl_type *item)
{
	struct hcl_type *t = hcl_new_object(h, struct hcl_type);

	t->kind = kind;
	t->item = item;
	return t;
}

static const struct hcl_type *
type_of_tuple(struct hcl *h, const struct hcl_value *v)
{
	struct hcl_type *t = hcl_new_object(h, struct hcl_type);

	t->kind = HCL_TUPLE;
	t->n = v->len;
	t->items = hcl_alloc(h, v->len * sizeof *t->items);
	for (size_t i = 0; i < v->len; i++)
		t->items[i] = hcl_type_of(h, v->items[i]);
	return t;
}

static const struct hcl_type *
type_of_object(struct hcl *h, const struct hcl_value *v)
{
	struct hcl_type *t = hcl_new_object(h, struct hcl_type);
	struct hcl_type_member *members = hcl_alloc(h, v->len * sizeof *members);

	t->kind = HCL_OBJECT;
	t->n = v->len;
	t->members = members;
	for (size_t i = 0; i < v->len; i++)
		members[i] = (struct hcl_type_member){
			.name = v->members[i].key,
			.type = hcl_type_of(h, v->members[i].value),
		};
	return t;
}

const struct hcl_type *
hcl_type_of(struct hcl *h, const struct hcl_value *v)
{
	hcl_step(h, 1);
	if (v->type)
		return v->type;
	switch (v->kind) {
	case HCL_STRING:
		return &hcl_type_string;
	case HCL_NUMBER:
		return &hcl_type_number;
	case HCL_BOOL:
		return &hcl_type_bool;
	case HCL_TUPLE:
		return type_of_tuple(h, v);
	case HCL_OBJECT:
		return type_of_object(h, v);
	default:
		return &hcl_type_any;
	}
}

bool
hcl_type_equal(const struct hcl_type *a, const struct hcl_type *b)
{
	if (a == b)
		return true;
	if (a->kind != b->kind || a->n != b->n)
		return false;
	if (a->kind == HCL_LIST || a->kind == HCL_SET || a->kind == HCL_MAP)
		return hcl_type_equal(a->item, b->item);
	for (size_t i = 0; i < a->n; i++) {
		if (a->kind == HCL_TUPLE && !hcl_type_equal(a->items[i], b->items[i]))
			return false;
		if (a->kind == HCL_OBJECT &&
		    (strcmp(a->members[i].name, b->members[i].name) != 0 ||
			!hcl_type_equal(a->members[i].type, b->members[i].type)))
			return false;
	}
	return true;
}

const char *
hcl_type_name(struct hcl *h, const struct hcl_type *type)
{
	switch (type->kind) {
	case HCL_STRING:
		return "string";
	case HCL_NUMBER:
		return "number";
	case HCL_BOOL:
		return "bool";
	case HCL_LIST:
		return hcl_printf(h, "list of %s", hcl_type_name(h, type->item));
	case HCL_SET:
		return hcl_printf(h, "set of %s", hcl_type_name(h, type->item));
	case HCL_MAP:
		return hcl_printf(h, "map of %s", hcl_type_name(h, type->item));
	case HCL_TUPLE:
		return "tuple";
	case HCL_OBJECT:
		return "object";
	default:
		return "any type";
	}
}

const char *
hcl_value_type_name(struct hcl *h, const struct hcl_value *v)
{
	if (v->state == HCL_NULL)
		return "null";
	return hcl_type_name(h, v->type ? v->type : &(const struct hcl_type){ .kind = v->kind });
}

static bool
all_of_kind(const struct hcl_type **types, size_t n, enum hcl_kind a, enum hcl_kind b)
{
	for (size_t i = 0; i < n; i++)
		if (types[i]->kind != a && types[i]->kind != b)
			return false;
	return true;
}

static bool
all_equal(const struct hcl_type **types, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (!hcl_type_equal(types[0], types[i]))
			return false;
	return true;
}

/* Strings, numbers and booleans have the string in common; numbers and booleans alone nothing. */
static const struct hcl_type *
unify_primitives(const struct hcl_type **types, size_t n)
{
	bool has_string = false;

	for (size_t i = 0; i < n; i++) {
		if (types[i]->kind > HCL_BOOL)
			return NULL;
		has_string |= types[i]->kind == HCL_STRING;
	}
	return has_string ? &hcl_type_string : NULL;
}

/* The element types of all, however they are arranged. */
static const struct hcl_type *
unify_elements(struct hcl *h, const struct hcl_type **types, size_t n, enum hcl_kind kind)
{
	const struct hcl_type **all, *item;
	size_t total = 0, at = 0;

	for (size_t i = 0; i < n; i++)
		total += types[i]->item ? 1 : types[i]->n;
	all = hcl_alloc(h, total * sizeof(struct hcl_type *));
	for (size_t i = 0; i < n; i++) {
		if (types[i]->item)
			all[at++] = types[i]->item;
		for (size_t j = 0; j < types[i]->n && !types[i]->item; j++)
			all[at++] = types[i]->kind == HCL_TUPLE ? types[i]->items[j]
								: types[i]->members[j].type;
	}
	item = total == 0 ? &hcl_type_any : hcl_unify(h, all, total);
	return item ? hcl_type_list(h, kind, item) : NULL;
}

static bool
same_shape(const struct hcl_type **types, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (types[i]->kind != types[0]->kind || types[i]->n != types[0]->n)
			return false;
		for (size_t j = 0; j < types[i]->n && types[0]->kind == HCL_OBJECT; j++)
			if (strcmp(types[i]->members[j].name, types[0]->members[j].name) != 0)
				return false;
	}
	return true;
}

/* Tuples of one length, or objects with the same members, in their places. NULL if a place has
 * nothing in common. */
static const struct hcl_type *
unify_places(struct hcl *h, const struct hcl_type **types, size_t n)
{
	size_t places = types[0]->n;
	struct hcl_type *t = hcl_new_object(h, struct hcl_type);
	const struct hcl_type **items = hcl_alloc(h, places * sizeof(struct hcl_type *));
	struct hcl_type_member *members = hcl_alloc(h, places * sizeof *members);
	const struct hcl_type **column = hcl_alloc(h, n * sizeof(struct hcl_type *));

	for (size_t j = 0; j < places; j++) {
		for (size_t i = 0; i < n; i++)
			column[i] = types[i]->kind == HCL_OBJECT ? types[i]->members[j].type
								 : types[i]->items[j];
		items[j] = hcl_unify(h, column, n);
		if (!items[j])
			return NULL;
		if (types[0]->kind == HCL_OBJECT)
			members[j] =
			    (struct hcl_type_member){ types[0]->members[j].name, items[j], false };
	}
	t->kind = types[0]->kind;
	t->n = places;
	t->items = t->kind == HCL_TUPLE ? items : NULL;
	t->members = t->kind == HCL_OBJECT ? members : NULL;
	return t;
}

const struct hcl_type *
hcl_unify(struct hcl *h, const struct hcl_type **types, size_t n)
{
	hcl_step(h, n);
	if (n == 0)
		return &hcl_type_any;
	if (all_equal(types, n))
		return types[0];
	for (size_t i = 0; i < n; i++)
		if (types[i]->kind == HCL_ANY)
			return &hcl_type_any;
	if (all_of_kind(types, n, HCL_TUPLE, HCL_TUPLE) && same_shape(types, n))
		return unify_places(h, types, n);
	if (all_of_kind(types, n, HCL_OBJECT, HCL_OBJECT) && same_shape(types, n))
		return unify_places(h, types, n);
	if (all_of_kind(types, n, HCL_MAP, HCL_OBJECT))
		return unify_elements(h, types, n, HCL_MAP);
	if (all_of_kind(types, n, HCL_SET, HCL_SET))
		return unify_elements(h, types, n, HCL_SET);
	if (all_of_kind(types, n, HCL_LIST, HCL_TUPLE))
		return unify_elements(h, types, n, HCL_LIST);
	return unify_primitives(types, n);
}
