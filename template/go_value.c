/* SPDX-License-Identifier: Apache-2.0 */
/* go_value.c: makes and compares values. Runs in: template-renderer. */
#include "template/go_value.h"

#include <string.h>

#include "template/go_function.h"

#define BYTES_PER_STEP 64 /* of a copy of values */

struct go_value
go_bool(bool b)
{
	return (struct go_value){ .type = &go_type_bool, .boolean = b };
}

struct go_value
go_int(int64_t i)
{
	return (struct go_value){ .type = &go_type_int, .i = i };
}

struct go_value
go_int64(int64_t i)
{
	return (struct go_value){ .type = &go_type_int64, .i = i };
}

struct go_value
go_uint64(uint64_t u)
{
	return (struct go_value){ .type = &go_type_uint64, .u = u };
}

struct go_value
go_float(double f)
{
	return (struct go_value){ .type = &go_type_float64, .f = f };
}

struct go_value
go_string(const char *s, size_t len)
{
	return (struct go_value){ .type = &go_type_string, .s = len > 0 ? s : "", .len = len };
}

struct go_value
go_text(const char *s)
{
	return go_string(s, strlen(s));
}

struct go_value
go_text_value(const struct text *t)
{
	return go_string(t->text, t->len);
}

struct go_value
go_slice(struct arena *a, const struct go_type *type, size_t n)
{
	struct go_value v = { .type = type };

	/* An empty slice has memory too: without it a slice is nil. */
	v.list.items = arena_alloc(a, (n > 0 ? n : 1) * sizeof *v.list.items);
	v.list.n = v.list.room = n;
	if (type->elem->kind != GO_INTERFACE)
		for (size_t i = 0; i < n; i++)
			v.list.items[i] = go_zero(a, type->elem);
	return v;
}

struct go_value
go_append(struct arena *a, struct go_value slice, struct go_value item)
{
	size_t n = slice.list.n;
	struct go_value grown = slice;

	if (n == slice.list.room) {
		grown.list.room = 2 * n + 4;
		grown.list.items = arena_alloc(a, grown.list.room * sizeof item);
		arena_step(a, n * sizeof item / BYTES_PER_STEP);
		if (n > 0)
			memcpy(grown.list.items, slice.list.items, n * sizeof item);
	}
	grown.list.items[n] = item;
	grown.list.n = n + 1;
	return grown;
}

struct go_value
go_map(struct arena *a, const struct go_type *type)
{
	return (struct go_value){ .type = type, .map = arena_new(a, struct go_map) };
}

/* The place of the key, or where it belongs. */
static size_t
find_place(const struct go_map *m, struct go_value key, bool *ret_there)
{
	size_t low = 0, high = m->n;

	*ret_there = false;
	/* Members are often added in their order. */
	if (high > 0 && go_compare(m->v[high - 1].key, key) < 0)
		return high;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int r = go_compare(m->v[mid].key, key);

		if (r == 0) {
			*ret_there = true;
			return mid;
		}
		if (r < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct go_value *
go_map_find(const struct go_map *m, struct go_value key)
{
	bool there = false;
	size_t i = m ? find_place(m, key, &there) : 0;

	return there ? &m->v[i].value : NULL;
}

void
go_map_set(struct arena *a, struct go_value map, struct go_value key, struct go_value value)
{
	struct go_map *m = map.map;
	struct go_member *grown;
	bool there;
	size_t i = find_place(m, key, &there);

	arena_step(a, 1);
	if (there) {
		m->v[i].value = value;
		return;
	}
	if (m->n == m->room) {
		grown = arena_alloc(a, (2 * m->room + 4) * sizeof *grown);
		if (m->n > 0)
			memcpy(grown, m->v, m->n * sizeof *grown);
		m->v = grown;
		m->room = 2 * m->room + 4;
	}
	arena_step(a, (m->n - i) * sizeof *m->v / BYTES_PER_STEP);
	memmove(&m->v[i + 1], &m->v[i], (m->n - i) * sizeof *m->v);
	m->v[i] = (struct go_member){ key, value };
	m->n++;
}

void
go_map_remove(struct go_map *m, struct go_value key)
{
	bool there = false;
	size_t i = m ? find_place(m, key, &there) : 0;

	if (!there)
		return;
	m->n--;
	memmove(&m->v[i], &m->v[i + 1], (m->n - i) * sizeof *m->v);
}

size_t
go_map_len(struct go_value map)
{
	return map.map ? map.map->n : 0;
}

struct go_value
go_zero(struct arena *a, const struct go_type *type)
{
	struct go_value v = { .type = type };

	if (type->kind == GO_STRING)
		return (struct go_value){ .type = type, .s = "" };
	if (type->kind == GO_STRUCT) {
		v.fields = arena_alloc(a, type->n_fields * sizeof *v.fields);
		for (size_t i = 0; i < type->n_fields; i++)
			v.fields[i] = go_zero(a, type->fields[i].type);
	}
	return v;
}

bool
go_is_nil(struct go_value v)
{
	switch (go_kind(v)) {
	case GO_INVALID:
	case GO_INTERFACE:
		return true;
	case GO_SLICE:
		return !v.list.items;
	case GO_MAP:
		return !v.map;
	case GO_POINTER:
		return !v.fields;
	default:
		return false;
	}
}

bool
go_is_true(struct go_value v)
{
	switch (go_kind(v)) {
	case GO_BOOL:
		return v.boolean;
	case GO_INT:
		return v.i != 0;
	case GO_UINT:
		return v.u != 0;
	case GO_FLOAT:
		return v.f != 0;
	case GO_STRING:
		return v.len > 0;
	case GO_SLICE:
		return v.list.n > 0;
	case GO_MAP:
		return go_map_len(v) > 0;
	default:
		return !go_is_nil(v);
	}
}

struct go_value
go_indirect(struct go_value v, bool *ret_nil)
{
	*ret_nil = (go_kind(v) == GO_POINTER || go_kind(v) == GO_INTERFACE) && go_is_nil(v);
	if (go_kind(v) == GO_POINTER && !*ret_nil)
		v.type = v.type->elem;
	return v;
}

bool
go_assignable(const struct go_type *from, const struct go_type *to)
{
	return from == to || to->kind == GO_INTERFACE || from->base == to;
}

int
go_field(const struct go_type *type, const char *name)
{
	if (type->kind == GO_POINTER)
		type = type->elem;
	for (size_t i = 0; i < type->n_fields; i++)
		if (strcmp(type->fields[i].name, name) == 0)
			return (int)i;
	return -1;
}

const char *
go_type_name(struct go_value v)
{
	return v.type ? v.type->name : "<nil>";
}

int
go_compare_text(struct go_value a, struct go_value b)
{
	int r = memcmp(a.s, b.s, a.len < b.len ? a.len : b.len);

	return r ? r : a.len < b.len ? -1 : a.len > b.len;
}

/* Keys of different types, as in a map of YAML: the original's order depends on where its types
 * are in memory. */
static int
type_rank(struct go_value v)
{
	static const enum go_kind order[] = { GO_STRING, GO_INT, GO_UINT, GO_FLOAT, GO_BOOL };

	for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
		if (order[i] == go_kind(v))
			return (int)i + 1;
	return go_kind(v) == GO_INVALID || go_kind(v) == GO_INTERFACE ? 0 : 99;
}

int
go_compare(struct go_value a, struct go_value b)
{
	int r = type_rank(a) - type_rank(b);

	if (r != 0)
		return r;
	switch (go_kind(a)) {
	case GO_BOOL:
		return a.boolean - b.boolean;
	case GO_INT:
		return a.i < b.i ? -1 : a.i > b.i;
	case GO_UINT:
		return a.u < b.u ? -1 : a.u > b.u;
	case GO_FLOAT:
		return a.f != a.f ? -(b.f == b.f) : b.f != b.f ? 1 : a.f < b.f ? -1 : a.f > b.f;
	case GO_STRING:
		return go_compare_text(a, b);
	default:
		return 0;
	}
}

bool
go_same(struct go_value a, struct go_value b)
{
	if (a.type != b.type)
		return false;
	switch (go_kind(a)) {
	case GO_FLOAT:
		return a.f == b.f;
	case GO_POINTER:
		return a.fields == b.fields;
	case GO_FUNC:
		return a.func == b.func;
	case GO_STRUCT:
		for (size_t i = 0; i < a.type->n_fields; i++)
			if (!go_same(a.fields[i], b.fields[i]))
				return false;
		return true;
	default:
		return go_compare(a, b) == 0;
	}
}

static bool
deep_equal_maps(struct arena *arena, struct go_value a, struct go_value b)
{
	for (size_t i = 0; i < go_map_len(a); i++)
		if (!go_deep_equal(arena, a.map->v[i].key, b.map->v[i].key) ||
		    !go_deep_equal(arena, a.map->v[i].value, b.map->v[i].value))
			return false;
	return true;
}

static bool
deep_equal_arrays(struct arena *arena, const struct go_value *a, const struct go_value *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!go_deep_equal(arena, a[i], b[i]))
			return false;
	return true;
}

static bool
deep_equal_contents(struct arena *arena, struct go_value a, struct go_value b)
{
	size_t n;

	switch (go_kind(a)) {
	case GO_SLICE:
		return a.list.n == b.list.n &&
		       deep_equal_arrays(arena, a.list.items, b.list.items, a.list.n);
	case GO_MAP:
		return go_map_len(a) == go_map_len(b) && deep_equal_maps(arena, a, b);
	case GO_STRUCT:
	case GO_POINTER:
		n = (a.type->kind == GO_POINTER ? a.type->elem : a.type)->n_fields;
		return a.fields == b.fields || deep_equal_arrays(arena, a.fields, b.fields, n);
	case GO_FUNC:
		return false;
	default:
		return go_same(a, b);
	}
}

bool
go_deep_equal(struct arena *arena, struct go_value a, struct go_value b)
{
	bool equal;

	arena_step(arena, 1);
	if (a.type != b.type || go_is_nil(a) != go_is_nil(b))
		return false;
	arena_enter(arena);
	equal = deep_equal_contents(arena, a, b);
	arena_exit(arena);
	return equal;
}

bool
go_text_is(struct go_value v, const char *s)
{
	return go_kind(v) == GO_STRING && v.len == strlen(s) && memcmp(v.s, s, v.len) == 0;
}
