/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_type.c: types of values: names, comparison, and the common type of several. Runs in: cli,
 * job-parser. */
#include <string.h>

#include "hcl/hcl_value.h"

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
