/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_set.c: functions about sets. Runs in: cli, job-parser. */
#include <string.h>

#include "hcl/hcl_func.h"

static struct hcl_value *
convert_argument(struct hcl_call *c, size_t i, const struct hcl_type *type)
{
	const char *why = "";
	struct hcl_value *v = hcl_convert(c->h, c->args[i], type, &why);

	if (!v)
		hcl_refuse_argument(c, i, "argument %zu: %s", i + 1, why);
	return v;
}

/* Converts all arguments to sets of their common type. Returns whether all elements are known. */
static bool
unify_sets(struct hcl_call *c)
{
	const struct hcl_type **types = hcl_alloc(c->h, c->n * sizeof(struct hcl_type *)), *item;
	const struct hcl_type *any = hcl_type_list(c->h, HCL_SET, &hcl_type_any);
	bool known = true;
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		c->args[i] = convert_argument(c, i, any);
		if (c->args[i]->len > 0 || c->args[i]->type->item->kind != HCL_ANY)
			types[n++] = c->args[i]->type->item;
	}
	item = n == 0 ? &hcl_type_any : hcl_unify(c->h, types, n);
	if (!item)
		hcl_refuse_argument(c, c->n, "the sets must have a common element type");
	for (size_t i = 0; i < c->n; i++) {
		c->args[i] = convert_argument(c, i, hcl_type_list(c->h, HCL_SET, item));
		known &= hcl_is_wholly_known(c->args[i]);
	}
	return known;
}

struct hcl_value *
hcl_fn_setunion(struct hcl_call *c)
{
	struct hcl_value **items;
	size_t total = 0, n = 0;

	(void)unify_sets(c);
	for (size_t i = 0; i < c->n; i++)
		total += c->args[i]->len;
	items = hcl_alloc(c->h, total * sizeof(struct hcl_value *));
	for (size_t i = 0; i < c->n; i++)
		for (size_t j = 0; j < c->args[i]->len; j++)
			items[n++] = c->args[i]->items[j];
	return hcl_set(c->h, c->args[0]->type->item, items, n);
}

static bool
is_in_set(struct hcl *h, const struct hcl_value *set, const struct hcl_value *v)
{
	size_t from = 0, to = set->len;

	while (from < to) {
		size_t middle = (from + to) / 2;
		int r = hcl_compare(h, set->items[middle], v);

		if (r == 0)
			return true;
		if (r < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return false;
}

struct hcl_value *
hcl_fn_setintersection(struct hcl_call *c)
{
	const struct hcl_value *first;
	struct hcl_value **items;
	size_t n = 0, i;

	if (!unify_sets(c))
		return hcl_unknown(c->h, c->args[0]->type);
	first = c->args[0];
	items = hcl_alloc(c->h, first->len * sizeof(struct hcl_value *));
	for (size_t j = 0; j < first->len; j++) {
		for (i = 1; i < c->n && is_in_set(c->h, c->args[i], first->items[j]); i++)
			;
		if (i == c->n)
			items[n++] = first->items[j];
	}
	return hcl_set(c->h, first->type->item, items, n);
}

/* The type of the elements that argument i contributes. */
static const struct hcl_type *
factor_type(struct hcl_call *c, size_t i)
{
	const struct hcl_type *type = hcl_arg_type(c, i), *common;

	if (!hcl_is_sequence(c->args[i]))
		hcl_refuse_argument(c, i, "argument %zu must be a set or list", i + 1);
	if (type->kind != HCL_TUPLE)
		return type->item;
	if (type->n == 0)
		return &hcl_type_any;
	common = hcl_unify(c->h, type->items, type->n);
	if (!common)
		hcl_refuse_argument(
		    c, i, "the elements of argument %zu must have a common type", i + 1);
	return common;
}

/* Makes the tuples in the order in which the last argument's elements change fastest. */
static void
multiply(struct hcl_call *c, struct hcl_value **tuples, size_t total)
{
	size_t repeat = total;

	hcl_step(c->h, total * c->n);
	for (size_t t = 0; t < total; t++)
		tuples[t] = hcl_tuple(c->h, hcl_alloc(c->h, c->n * sizeof(struct hcl_value *)), 0);
	for (size_t i = 0; i < c->n; i++) {
		repeat /= c->args[i]->len;
		for (size_t t = 0; t < total; t++)
			tuples[t]->items[i] = c->args[i]->items[t / repeat % c->args[i]->len];
	}
	for (size_t t = 0; t < total; t++)
		tuples[t] = hcl_tuple(c->h, tuples[t]->items, c->n);
}

struct hcl_value *
hcl_fn_setproduct(struct hcl_call *c)
{
	struct hcl_type *tuple = hcl_new_object(c->h, struct hcl_type);
	struct hcl_value **tuples;
	bool ordered = true;
	size_t total = 1;

	if (c->n < 2)
		hcl_refuse_argument(c, c->n, "at least two arguments are required");
	tuple->kind = HCL_TUPLE;
	tuple->n = c->n;
	tuple->items = hcl_alloc(c->h, c->n * sizeof(struct hcl_type *));
	for (size_t i = 0; i < c->n; i++) {
		tuple->items[i] = factor_type(c, i);
		ordered &= c->args[i]->kind != HCL_SET;
		if (__builtin_mul_overflow(total, c->args[i]->len, &total) ||
		    total > SIZE_MAX / sizeof(struct hcl_value *) / c->n)
			hcl_refuse_argument(c, c->n, "the result is too large");
	}
	hcl_step(c->h, total);
	for (size_t i = 0; i < c->n && total > 0; i++)
		c->args[i] = convert_argument(c, i, hcl_type_list(c->h, HCL_LIST, tuple->items[i]));
	tuples = hcl_alloc(c->h, total * sizeof(struct hcl_value *));
	if (total > 0)
		multiply(c, tuples, total);
	return ordered ? hcl_list(c->h, tuple, tuples, total) : hcl_set(c->h, tuple, tuples, total);
}
