/* SPDX-License-Identifier: Apache-2.0 */
/* equal.c: compares two structs by their field table and names the first difference. Runs in:
 * supervisor, cli. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"

/* Which fields are ignored, and where the path of the first difference is written (may be NULL). */
struct report {
	unsigned ignore; /* field flags */
	char *path;
	size_t size;
};

static bool differ_structs(const struct type *type, const void *a, const void *b,
    const struct place *at, const struct report *report);

static bool
found(const struct place *at, const struct report *report)
{
	if (report->path)
		place_format(at, report->path, report->size);
	return true;
}

static bool
differ_lists(const struct type *item, const struct any_list *a, const struct any_list *b,
    const struct place *at, const struct report *report)
{
	size_t i;

	if (a->n != b->n)
		return found(at, report);
	for (i = 0; i < a->n; i++) {
		const struct place here = { .up = at, .index = i };

		if (differ_structs(
			item, a->v + i * item->size, b->v + i * item->size, &here, report))
			return true;
	}
	return false;
}

static bool
differ_maps(const struct type *item, const struct any_list *a, const struct any_list *b,
    const struct place *at, const struct report *report)
{
	size_t i, step = map_entry_size(item);

	if (a->n != b->n)
		return found(at, report);
	for (i = 0; i < a->n; i++) {
		const char *entry = a->v + i * step, *key = *(char *const *)entry;
		const struct place here = { .up = at, .name = str(key), .key = true };
		const void *other = model_map_get(item, b, key);

		if (!other)
			return found(&here, report);
		if (differ_structs(item, entry + MAP_VALUE_OFFSET, other, &here, report))
			return true;
	}
	return false;
}

static bool
differ_strings(const struct strings *a, const struct strings *b, bool any_order)
{
	size_t i;

	if (a->n != b->n)
		return true;
	for (i = 0; i < a->n; i++)
		if (any_order ? !strings_has(b, a->v[i]) : !str_eq(a->v[i], b->v[i]))
			return true;
	return false;
}

static int
compare_keys(const void *a, const void *b)
{
	const struct string_pair *const *x = a, *const *y = b;

	return strcmp((*x)->key, (*y)->key);
}

/* Returns the map's pairs sorted by key. */
static const struct string_pair **
sort_pairs(const struct string_map *m)
{
	const struct string_pair **v = mem_zeroed(m->n, sizeof(*v));
	size_t i;

	for (i = 0; i < m->n; i++)
		v[i] = &m->v[i];
	qsort(v, m->n, sizeof(*v), compare_keys);
	return v;
}

bool
string_maps_differ(const struct string_map *a, const struct string_map *b)
{
	cleanup_free const struct string_pair **x = NULL, **y = NULL;
	size_t i = 0;

	if (a->n != b->n)
		return true;
	/* Skips equal pairs at the beginning: maps mostly have the same order. */
	while (i < a->n && str_eq(a->v[i].key, b->v[i].key) && str_eq(a->v[i].value, b->v[i].value))
		i++;
	if (i == a->n)
		return false;
	x = sort_pairs(a);
	y = sort_pairs(b);
	for (i = 0; i < a->n; i++)
		if (!str_eq(x[i]->key, y[i]->key) || !str_eq(x[i]->value, y[i]->value))
			return true;
	return false;
}

static bool
differ_int_maps(const struct int_map *a, const struct int_map *b)
{
	size_t i, k;

	if (a->n != b->n)
		return true;
	for (i = 0; i < a->n; i++) {
		for (k = 0; k < b->n && !str_eq(a->v[i].key, b->v[k].key); k++)
			;
		if (k == b->n || a->v[i].value != b->v[k].value)
			return true;
	}
	return false;
}

static bool
differ_ints(const struct ints *a, const struct ints *b)
{
	return a->n != b->n || (a->n && memcmp(a->v, b->v, a->n * sizeof(*a->v)));
}

static bool
differ_scalars(const struct field *f, const void *a, const void *b)
{
	switch ((enum field_kind)f->kind) {
	case FIELD_BOOL:
		return *(const bool *)a != *(const bool *)b;
	case FIELD_OPT_BOOL:
	case FIELD_ENUM:
		return *(const unsigned *)a != *(const unsigned *)b;
	case FIELD_DOUBLE:
		return *(const double *)a != *(const double *)b;
	case FIELD_STRING:
		return !str_eq(*(char *const *)a, *(char *const *)b);
	case FIELD_STRINGS:
	case FIELD_SET:
		return differ_strings(a, b, f->kind == FIELD_SET);
	case FIELD_INTS:
		return differ_ints(a, b);
	case FIELD_STRING_MAP:
		return string_maps_differ(a, b);
	case FIELD_INT_MAP:
		return differ_int_maps(a, b);
	case FIELD_RAWS: /* has FIELD_NO_EQUAL, so it is never compared */
		return false;
	case FIELD_JSON:
		if (!*(json_t *const *)a || !*(json_t *const *)b)
			return *(json_t *const *)a != *(json_t *const *)b;
		return !json_equal(*(json_t *const *)a, *(json_t *const *)b);
	default:
		return *(const int64_t *)a != *(const int64_t *)b;
	}
}

static bool
differ_pointers(const struct type *sub, const void *a, const void *b, const struct place *at,
    const struct report *report)
{
	if (a && b)
		return differ_structs(sub, a, b, at, report);
	return a != b && found(at, report);
}

static bool
differ_fields(const struct field *f, const void *a, const void *b, const struct place *at,
    const struct report *report)
{
	const void *x = field_at(f, a), *y = field_at(f, b);

	switch ((enum field_kind)f->kind) {
	case FIELD_STRUCT:
		return differ_structs(f->sub, x, y, at, report);
	case FIELD_POINTER:
		return differ_pointers(f->sub, *(void *const *)x, *(void *const *)y, at, report);
	case FIELD_LIST:
		return differ_lists(f->sub, x, y, at, report);
	case FIELD_MAP:
		return differ_maps(f->sub, x, y, at, report);
	default:
		return differ_scalars(f, x, y) && found(at, report);
	}
}

static bool
differ_structs(const struct type *type, const void *a, const void *b, const struct place *at,
    const struct report *report)
{
	size_t i;

	for (i = 0; i < type->n; i++) {
		const struct field *f = &type->fields[i];
		const struct place here = { .up = at, .name = f->name };

		if (!(f->flags & report->ignore) && differ_fields(f, a, b, &here, report))
			return true;
	}
	return false;
}

bool
model_differs(
    const struct type *type, const void *a, const void *b, unsigned ignore, char *ret, size_t size)
{
	const struct report report = { .ignore = ignore, .path = ret, .size = size };

	return differ_structs(type, a, b, NULL, &report);
}

bool
model_equal(const struct type *type, const void *a, const void *b)
{
	return !model_differs(type, a, b, FIELD_NO_EQUAL, NULL, 0);
}

bool
model_difference(const struct type *type, const void *a, const void *b, char *ret, size_t size)
{
	return model_differs(type, a, b, FIELD_NO_EQUAL, ret, size);
}
