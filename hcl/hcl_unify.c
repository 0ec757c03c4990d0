/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcl_unify.c: the common type of several types, by the rules of go-cty: types of one kind are
 * unified in their parts; otherwise the most general of them counts that all can be converted to.
 * Runs in: cli, job-parser.
 */
#include <string.h>

#include "hcl/hcl_value.h"

static bool
is_collection(const struct hcl_type *t)
{
	return t->kind == HCL_LIST || t->kind == HCL_SET || t->kind == HCL_MAP;
}

/* The type at one place of the types: of tuples' item i, of objects' member i. */
static const struct hcl_type *
place_type(const struct hcl_type *t, size_t i)
{
	return t->kind == HCL_OBJECT ? t->members[i].type : t->items[i];
}

static const struct hcl_type *
find_member(const struct hcl_type *object, const char *name)
{
	for (size_t i = 0; i < object->n; i++)
		if (strcmp(object->members[i].name, name) == 0)
			return object->members[i].type;
	return NULL;
}

static bool
converts_places(struct hcl *h, const struct hcl_type *from, const struct hcl_type *item)
{
	const struct hcl_type **types;

	if (from->n == 0)
		return true;
	if (item->kind == HCL_ANY) {
		types = hcl_alloc(h, from->n * sizeof(struct hcl_type *));
		for (size_t i = 0; i < from->n; i++)
			types[i] = place_type(from, i);
		item = hcl_unify(h, types, from->n);
		if (!item)
			return false;
	}
	for (size_t i = 0; i < from->n; i++)
		if (!hcl_type_converts(h, place_type(from, i), item))
			return false;
	return true;
}

static bool
converts_to_object(struct hcl *h, const struct hcl_type *from, const struct hcl_type *to)
{
	for (size_t i = 0; i < to->n; i++) {
		const struct hcl_type_member *m = &to->members[i];
		const struct hcl_type *found =
		    from->kind == HCL_MAP ? from->item : find_member(from, m->name);

		if (!found && !m->optional)
			return false;
		if (found && !hcl_type_converts(h, found, m->type) &&
		    !(from->kind == HCL_MAP && m->optional))
			return false;
	}
	return true;
}

bool
hcl_type_converts(struct hcl *h, const struct hcl_type *from, const struct hcl_type *to)
{
	hcl_step(h, 1);
	if (to->kind == HCL_ANY || from->kind == HCL_ANY || hcl_type_equal(from, to))
		return true;
	switch (to->kind) {
	case HCL_STRING:
		return from->kind == HCL_NUMBER || from->kind == HCL_BOOL;
	case HCL_NUMBER:
	case HCL_BOOL:
		return from->kind == HCL_STRING;
	case HCL_LIST:
	case HCL_SET:
		if (from->kind == HCL_TUPLE)
			return converts_places(h, from, to->item);
		return (from->kind == HCL_LIST || from->kind == HCL_SET) &&
		       hcl_type_converts(h, from->item, to->item);
	case HCL_MAP:
		if (from->kind == HCL_OBJECT)
			return converts_places(h, from, to->item);
		return from->kind == HCL_MAP && hcl_type_converts(h, from->item, to->item);
	case HCL_TUPLE:
		if (from->kind != HCL_TUPLE || from->n != to->n)
			return false;
		for (size_t i = 0; i < to->n; i++)
			if (!hcl_type_converts(h, from->items[i], to->items[i]))
				return false;
		return true;
	default:
		return (from->kind == HCL_OBJECT || from->kind == HCL_MAP) &&
		       converts_to_object(h, from, to);
	}
}

static int prefer(struct hcl *h, const struct hcl_type *a, const struct hcl_type *b);

/* Negative if every place of a is at least as general as that of b and one is more so, positive
 * the other way round, else 0. */
static int
prefer_places(struct hcl *h, const struct hcl_type *a, const struct hcl_type *b)
{
	bool first = false, second = false;

	if (a->n != b->n)
		return 0;
	for (size_t i = 0; i < a->n; i++) {
		const struct hcl_type *other =
		    a->kind == HCL_OBJECT ? find_member(b, a->members[i].name) : b->items[i];
		int r = other ? prefer(h, place_type(a, i), other) : 0;

		if (!other)
			return 0;
		first |= r < 0;
		second |= r > 0;
	}
	return first == second ? 0 : first ? -1 : 1;
}

/* Whether a list, tuple and set, or a map and object, are given in the order of preference. */
static bool
is_more_general(enum hcl_kind a, enum hcl_kind b)
{
	return (a == HCL_LIST && (b == HCL_TUPLE || b == HCL_SET)) ||
	       (a == HCL_TUPLE && b == HCL_SET) || (a == HCL_MAP && b == HCL_OBJECT);
}

/* Negative if a is more general than b, positive if it is less so. A type about which nothing is
 * known comes last. */
static int
prefer(struct hcl *h, const struct hcl_type *a, const struct hcl_type *b)
{
	hcl_step(h, 1);
	if (a->kind == HCL_ANY || b->kind == HCL_ANY)
		return (a->kind == HCL_ANY) - (b->kind == HCL_ANY);
	if (a->kind <= HCL_BOOL && b->kind <= HCL_BOOL)
		return (b->kind == HCL_STRING) - (a->kind == HCL_STRING);
	if (a->kind == b->kind)
		return is_collection(a) ? prefer(h, a->item, b->item) : prefer_places(h, a, b);
	return is_more_general(b->kind, a->kind) - is_more_general(a->kind, b->kind);
}

/* Returns the first type, in the order of preference, that all others can be converted to. The
 * order is topological: a type comes after all that are more general. */
static const struct hcl_type *
choose_type(struct hcl *h, const struct hcl_type **types, size_t n)
{
	size_t *before = hcl_alloc(h, n * sizeof *before), *queue = hcl_alloc(h, n * sizeof *queue);
	size_t queued = 0, j;

	for (size_t a = 0; a < n; a++)
		for (size_t b = 0; b < n; b++)
			before[a] += a != b && prefer(h, types[b], types[a]) < 0;
	for (size_t a = 0; a < n; a++)
		if (before[a] == 0)
			queue[queued++] = a;
	for (size_t i = 0; i < queued; i++) {
		const struct hcl_type *wanted = types[queue[i]];

		for (j = 0; j < n && hcl_type_converts(h, types[j], wanted); j++)
			;
		if (j == n)
			return wanted;
		for (size_t b = 0; b < n; b++)
			if (b != queue[i] && prefer(h, wanted, types[b]) < 0 && --before[b] == 0)
				queue[queued++] = b;
	}
	return NULL;
}

/* A list, set or map of the common type of all elements, however they are arranged. NULL if there
 * is none. */
static const struct hcl_type *
unify_elements(struct hcl *h, const struct hcl_type **types, size_t n, enum hcl_kind kind)
{
	const struct hcl_type **all, *item;
	size_t total = 0, at = 0;

	for (size_t i = 0; i < n; i++)
		total += is_collection(types[i]) ? 1 : types[i]->n;
	if (total == 0)
		return NULL;
	all = hcl_alloc(h, total * sizeof(struct hcl_type *));
	for (size_t i = 0; i < n; i++) {
		if (is_collection(types[i]))
			all[at++] = types[i]->item;
		for (size_t j = 0; j < types[i]->n && !is_collection(types[i]); j++)
			all[at++] = place_type(types[i], j);
	}
	item = hcl_unify(h, all, total);
	return item ? hcl_type_list(h, kind, item) : NULL;
}

/* Puts the list (map) that all tuples (objects) have in common in their place. */
static const struct hcl_type *
unify_mixed(struct hcl *h, const struct hcl_type **types, size_t n, enum hcl_kind loose,
    enum hcl_kind strict)
{
	const struct hcl_type **loosened = hcl_alloc(h, n * sizeof(struct hcl_type *)), *common;
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		if (types[i]->kind == strict)
			loosened[found++] = types[i];
	common = unify_elements(h, loosened, found, loose);
	if (!common)
		return NULL;
	for (size_t i = 0; i < n; i++)
		loosened[i] = types[i]->kind == strict ? common : types[i];
	common = hcl_unify(h, loosened, n);
	return common && common->kind == loose ? common : NULL;
}

static bool
same_shape(const struct hcl_type **types, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (types[i]->n != types[0]->n)
			return false;
		for (size_t j = 0; j < types[i]->n && types[0]->kind == HCL_OBJECT; j++)
			if (strcmp(types[i]->members[j].name, types[0]->members[j].name) != 0)
				return false;
	}
	return true;
}

/* Tuples of the same length, or objects with the same members, become a tuple or object whose
 * members are unified one by one; other tuples and objects become lists and maps. Returns NULL if
 * the types of one member cannot be unified. */
static const struct hcl_type *
unify_places(struct hcl *h, const struct hcl_type **types, size_t n)
{
	bool object = types[0]->kind == HCL_OBJECT;
	const struct hcl_type **column = hcl_alloc(h, n * sizeof(struct hcl_type *)), **items;
	struct hcl_type *t = hcl_new_object(h, struct hcl_type);
	struct hcl_type_member *members;

	if (!same_shape(types, n))
		return unify_elements(h, types, n, object ? HCL_MAP : HCL_LIST);
	*t = *types[0];
	items = hcl_alloc(h, t->n * sizeof(struct hcl_type *));
	members = hcl_alloc(h, object ? t->n * sizeof *members : 0);
	for (size_t j = 0; j < t->n; j++) {
		for (size_t i = 0; i < n; i++)
			column[i] = place_type(types[i], j);
		items[j] = hcl_unify(h, column, n);
		if (!items[j])
			return NULL;
		if (object)
			members[j] =
			    (struct hcl_type_member){ types[0]->members[j].name, items[j], false };
	}
	t->items = object ? NULL : items;
	t->members = object ? members : NULL;
	return t;
}

/* Each type once, in the order of their first occurrence. */
static const struct hcl_type **
drop_repeated(struct hcl *h, const struct hcl_type **types, size_t *n)
{
	const struct hcl_type **kept = hcl_alloc(h, *n * sizeof(struct hcl_type *));
	size_t total = 0, j;

	for (size_t i = 0; i < *n; i++) {
		hcl_step(h, 1 + total);
		for (j = 0; j < total && !hcl_type_equal(kept[j], types[i]); j++)
			;
		if (j == total)
			kept[total++] = types[i];
	}
	*n = total;
	return kept;
}

static const struct hcl_type *
unify_kinds(struct hcl *h, const struct hcl_type **types, size_t n)
{
	size_t of[HCL_OBJECT + 1] = { 0 };
	const struct hcl_type *common = NULL;

	for (size_t i = 0; i < n; i++)
		of[types[i]->kind]++;
	for (enum hcl_kind k = HCL_LIST; k <= HCL_OBJECT; k++)
		if (of[k] > 0 && of[k] + of[HCL_ANY] == n) {
			if (of[HCL_ANY] > 0)
				return &hcl_type_any;
			return k <= HCL_MAP ? unify_elements(h, types, n, k)
					    : unify_places(h, types, n);
		}
	if (of[HCL_MAP] > 0 && of[HCL_MAP] + of[HCL_OBJECT] + of[HCL_ANY] == n)
		common = unify_mixed(h, types, n, HCL_MAP, HCL_OBJECT);
	else if (of[HCL_LIST] > 0 && of[HCL_LIST] + of[HCL_TUPLE] + of[HCL_ANY] == n)
		common = unify_mixed(h, types, n, HCL_LIST, HCL_TUPLE);
	else if (of[HCL_OBJECT] > 0 && of[HCL_TUPLE] > 0)
		return NULL;
	return common ? common : choose_type(h, types, n);
}

const struct hcl_type *
hcl_unify(struct hcl *h, const struct hcl_type **types, size_t n)
{
	hcl_step(h, n);
	if (n == 0)
		return &hcl_type_any;
	types = drop_repeated(h, types, &n);
	return n == 1 ? types[0] : unify_kinds(h, types, n);
}
