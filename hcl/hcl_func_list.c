/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_list.c: functions about lists and tuples. Runs in: cli, job-parser. */
#include <stdlib.h>
#include <string.h>

#include "hcl/hcl_func.h"
#include "hcl/hcl_number.h"

static bool
is_list_or_tuple(const struct hcl_value *v)
{
	return v->kind == HCL_LIST || v->kind == HCL_TUPLE;
}

/* The items as a list or a tuple, as `like` is one. */
static struct hcl_value *
sequence_like(struct hcl_call *c, const struct hcl_value *like, struct hcl_value **items, size_t n)
{
	if (like->kind == HCL_TUPLE)
		return hcl_tuple(c->h, items, n);
	return hcl_list(c->h, like->type->item, items, n);
}

static struct hcl_value **
new_items(struct hcl_call *c, size_t n)
{
	hcl_step(c->h, n);
	return hcl_alloc(c->h, n * sizeof(struct hcl_value *));
}

struct hcl_value *
hcl_fn_chunklist(struct hcl_call *c)
{
	struct hcl_value *list = hcl_arg_list(c, 0, &hcl_type_any), **chunks;
	int64_t size = hcl_arg_int(c, 1);
	size_t n = 0, most = size > 0 && (uint64_t)size < list->len ? (size_t)size : list->len;

	if (size < 0)
		hcl_refuse_argument(c, 1, "the size must not be negative");
	chunks = new_items(c, list->len);
	for (size_t i = 0; i < list->len; i += most) {
		size_t some = list->len - i < most ? list->len - i : most;

		chunks[n++] = hcl_list(c->h, list->type->item, list->items + i, some);
	}
	return hcl_list(c->h, list->type, chunks, n);
}

struct hcl_value *
hcl_fn_coalesce(struct hcl_call *c)
{
	const struct hcl_type **types = hcl_alloc(c->h, c->n * sizeof(struct hcl_type *)), *common;
	struct hcl_value *v;
	const char *why = "";

	for (size_t i = 0; i < c->n; i++)
		types[i] = hcl_arg_type(c, i);
	common = c->n > 0 ? hcl_unify(c->h, types, c->n) : NULL;
	if (!common)
		hcl_refuse_argument(c, c->n, "all arguments must have the same type");
	for (size_t i = 0; i < c->n; i++) {
		if (c->args[i]->state == HCL_UNKNOWN)
			return hcl_unknown(c->h, common);
		if (hcl_is_null(c->args[i]))
			continue;
		v = hcl_convert(c->h, c->args[i], common, &why);
		if (!v)
			hcl_refuse_argument(c, i, "%s", why);
		return v;
	}
	hcl_refuse_argument(c, c->n, "all arguments are null");
}

struct hcl_value *
hcl_fn_coalescelist(struct hcl_call *c)
{
	for (size_t i = 0; i < c->n; i++) {
		if (c->args[i]->state == HCL_UNKNOWN)
			return hcl_unknown(c->h, &hcl_type_any);
		if (!is_list_or_tuple(c->args[i]))
			hcl_refuse_argument(c, i, "argument %zu must be a list", i + 1);
	}
	for (size_t i = 0; i < c->n; i++)
		if (!hcl_is_null(c->args[i]) && c->args[i]->len > 0)
			return c->args[i];
	hcl_refuse_argument(c, c->n, "no argument is a list with elements");
}

struct hcl_value *
hcl_fn_compact(struct hcl_call *c)
{
	struct hcl_value *list = hcl_arg_list(c, 0, &hcl_type_string), **items;
	size_t n = 0;

	if (!hcl_is_wholly_known(list))
		return hcl_unknown(c->h, list->type);
	items = new_items(c, list->len);
	for (size_t i = 0; i < list->len; i++)
		if (!hcl_is_null(list->items[i]) && list->items[i]->len > 0)
			items[n++] = list->items[i];
	return hcl_list(c->h, &hcl_type_string, items, n);
}

/* The type of a list with the elements of all arguments; NULL if it must be a tuple. */
static const struct hcl_type *
common_list_type(struct hcl_call *c)
{
	const struct hcl_type **types = hcl_alloc(c->h, c->n * sizeof(struct hcl_type *)), *common;

	for (size_t i = 0; i < c->n; i++) {
		if (c->args[i]->kind != HCL_LIST)
			return NULL;
		types[i] = c->args[i]->type;
	}
	common = hcl_unify(c->h, types, c->n);
	return common && common->kind == HCL_LIST ? common : NULL;
}

struct hcl_value *
hcl_fn_concat(struct hcl_call *c)
{
	const struct hcl_type *list_type;
	struct hcl_value **items;
	const char *why = "";
	size_t total = 0, n = 0;

	if (c->n == 0)
		hcl_refuse_argument(c, 0, "at least one argument is required");
	list_type = common_list_type(c);
	for (size_t i = 0; i < c->n; i++) {
		if (!is_list_or_tuple(c->args[i]))
			hcl_refuse_argument(c, i, "argument %zu must be a list, not %s", i + 1,
			    hcl_value_type_name(c->h, c->args[i]));
		if (list_type)
			c->args[i] = hcl_convert(c->h, c->args[i], list_type, &why);
		if (!c->args[i])
			hcl_refuse_argument(c, i, "argument %zu: %s", i + 1, why);
		total += c->args[i]->len;
	}
	items = new_items(c, total);
	for (size_t i = 0; i < c->n; n += c->args[i++]->len)
		if (c->args[i]->len > 0)
			memcpy(items + n, c->args[i]->items,
			    c->args[i]->len * sizeof(struct hcl_value *));
	return list_type ? hcl_list(c->h, list_type->item, items, total)
			 : hcl_tuple(c->h, items, total);
}

/* A null without a type could be equal to anything, as in the original. */
struct hcl_value *
hcl_fn_contains(struct hcl_call *c)
{
	const struct hcl_value *list = c->args[0], *wanted = c->args[1];
	bool unknown = false;

	if (!hcl_is_sequence(list))
		hcl_refuse_argument(c, 0, "the first argument must be a list, tuple or set");
	if (hcl_is_null(wanted) && wanted->kind == HCL_ANY)
		return hcl_unknown(c->h, &hcl_type_bool);
	for (size_t i = 0; i < list->len; i++) {
		hcl_step(c->h, 1);
		if (!hcl_is_wholly_known(list->items[i]) || !hcl_is_wholly_known(wanted))
			unknown = true;
		else if (hcl_equal(c->h, wanted, list->items[i]))
			return hcl_bool(c->h, true);
	}
	return unknown ? hcl_unknown(c->h, &hcl_type_bool) : hcl_bool(c->h, false);
}

struct hcl_value *
hcl_fn_distinct(struct hcl_call *c)
{
	struct hcl_value *list = hcl_arg_list(c, 0, &hcl_type_any), **items;
	size_t n = 0, j;

	if (!hcl_is_wholly_known(list))
		return hcl_unknown(c->h, list->type);
	items = new_items(c, list->len);
	for (size_t i = 0; i < list->len; i++) {
		for (j = 0; j < n && !hcl_equal(c->h, items[j], list->items[i]); j++)
			hcl_step(c->h, 1);
		if (j == n)
			items[n++] = list->items[i];
	}
	return hcl_list(c->h, list->type->item, items, n);
}

struct hcl_value *
hcl_fn_element(struct hcl_call *c)
{
	const struct hcl_value *list = c->args[0];
	int64_t i = hcl_arg_int(c, 1);

	if (!is_list_or_tuple(list))
		hcl_refuse_argument(
		    c, 0, "a %s has no elements with an index", hcl_value_type_name(c->h, list));
	if (list->len == 0)
		hcl_refuse_argument(c, 0, "the list has no elements");
	i %= (int64_t)list->len;
	return list->items[i < 0 ? i + (int64_t)list->len : i];
}

static size_t
count_flat(struct hcl_call *c, const struct hcl_value *v)
{
	size_t n = 0;

	hcl_step(c->h, 1);
	if (!hcl_is_sequence(v) || v->state != HCL_KNOWN)
		return 1;
	for (size_t i = 0; i < v->len; i++)
		n += count_flat(c, v->items[i]);
	return n;
}

static void
add_flat(struct hcl_value *v, struct hcl_value **items, size_t *n, bool *unknown)
{
	if (v->state == HCL_UNKNOWN && (v->kind == HCL_ANY || hcl_is_sequence(v)))
		*unknown = true;
	if (!hcl_is_sequence(v) || v->state != HCL_KNOWN) {
		items[(*n)++] = v;
		return;
	}
	for (size_t i = 0; i < v->len; i++)
		add_flat(v->items[i], items, n, unknown);
}

struct hcl_value *
hcl_fn_flatten(struct hcl_call *c)
{
	struct hcl_value **items;
	bool unknown = false;
	size_t n = 0;

	if (!hcl_is_sequence(c->args[0]))
		hcl_refuse_argument(c, 0, "only lists, sets and tuples can be flattened");
	items = new_items(c, count_flat(c, c->args[0]));
	add_flat(c->args[0], items, &n, &unknown);
	return unknown ? hcl_unknown(c->h, &hcl_type_any) : hcl_tuple(c->h, items, n);
}

/* Returns whether the first argument is a list or tuple; if not, it is a map. */
static bool
takes_index(struct hcl_call *c)
{
	bool list = is_list_or_tuple(c->args[0]);

	if (!list && c->args[0]->kind != HCL_MAP)
		hcl_refuse_argument(c, 0, "the first argument must be a list, tuple or map");
	return list;
}

struct hcl_value *
hcl_fn_hasindex(struct hcl_call *c)
{
	const struct hcl_value *all = c->args[0], *key = c->args[1];
	int64_t i;

	if (!takes_index(c))
		return hcl_bool(
		    c->h, key->kind == HCL_STRING && hcl_get(all, key->string, key->len) != NULL);
	return hcl_bool(c->h, key->kind == HCL_NUMBER && hcl_number_int64(key->number, &i) &&
				  i >= 0 && (uint64_t)i < all->len);
}

struct hcl_value *
hcl_fn_index(struct hcl_call *c)
{
	const struct hcl_value *key = c->args[1];
	bool list = takes_index(c);

	if (key->kind != (list ? HCL_NUMBER : HCL_STRING))
		hcl_refuse_argument(c, 1, "the key must be a %s", list ? "whole number" : "string");
	return hcl_index(c->h, c->at, c->args[0], c->args[1]);
}

struct hcl_value *
hcl_fn_length(struct hcl_call *c)
{
	const struct hcl_value *v = c->args[0];

	if (!hcl_is_sequence(v) && v->kind != HCL_MAP)
		hcl_refuse_argument(c, 0, "the argument must be a list, map or tuple%s",
		    v->kind == HCL_STRING ? ": for a string there is strlen()" : "");
	return hcl_int(c->h, (int64_t)v->len);
}

struct hcl_value *
hcl_fn_slice(struct hcl_call *c)
{
	const struct hcl_value *list = c->args[0];
	int64_t from, to;

	if (!is_list_or_tuple(list))
		hcl_refuse_argument(c, 0, "the first argument must be a list or tuple");
	from = hcl_arg_int(c, 1);
	to = hcl_arg_int(c, 2);
	if (from < 0 || from > to)
		hcl_refuse_argument(c, 1, "the start must be between 0 and the end");
	if ((uint64_t)to > list->len)
		hcl_refuse_argument(
		    c, 2, "the end must not be greater than the length, %zu", list->len);
	return sequence_like(c, list, list->items + from, (size_t)(to - from));
}

static int
compare_text(const void *a, const void *b)
{
	const struct hcl_value *x = *(struct hcl_value *const *)a,
			       *y = *(struct hcl_value *const *)b;
	int r = memcmp(x->string, y->string, x->len < y->len ? x->len : y->len);

	return r ? r : x->len < y->len ? -1 : x->len > y->len;
}

struct hcl_value *
hcl_fn_sort(struct hcl_call *c)
{
	struct hcl_value *list = hcl_arg_list(c, 0, &hcl_type_string), **items;

	if (!hcl_is_wholly_known(list))
		return hcl_unknown(c->h, list->type);
	items = new_items(c, list->len);
	for (size_t i = 0; i < list->len; i++) {
		items[i] = list->items[i];
		if (hcl_is_null(items[i]))
			hcl_refuse_argument(c, 0, "element %zu is null", i);
		hcl_count_bytes(c->h, items[i]->len);
	}
	qsort(items, list->len, sizeof(struct hcl_value *), compare_text);
	return hcl_list(c->h, &hcl_type_string, items, list->len);
}
