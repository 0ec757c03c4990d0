/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_sprig_list.c: sprig's functions about lists. They make new lists. Runs in: template-renderer.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "template/go_strings.h"
#include "template/tpl_sprig.h"

struct go_value
sprig_strings(struct arena *a, struct go_value v)
{
	struct go_value strings = go_slice(a, &go_type_strings, 0);

	strings.list.room = 0;
	if (v.type == &go_type_strings)
		return v;
	if (go_kind(v) != GO_SLICE)
		return v.type ? go_append(a, strings, go_to_text(a, v)) : strings;
	for (size_t i = 0; i < v.list.n; i++)
		if (v.list.items[i].type)
			strings = go_append(a, strings, go_to_text(a, v.list.items[i]));
	return strings;
}

void
sprig_check_list(struct go_call *c, struct go_value v, const char *what)
{
	if (!v.type)
		go_call_fail(c, "runtime error: invalid memory address or nil pointer dereference");
	if (go_kind(v) != GO_SLICE)
		go_call_fail(c, "%s %s", what, sprig_kind(v));
}

struct go_value
tpl_fn_sprig_list(struct go_call *c)
{
	struct go_value list = go_slice(c->arena, &go_type_anys, c->n);

	if (c->n > 0)
		memcpy(list.list.items, c->args, c->n * sizeof *c->args);
	return list;
}

/* A new []interface{} with the elements of [from, to), and room for one more. */
static struct go_value
copy(struct go_call *c, struct go_value list, size_t from, size_t to)
{
	struct go_value v = go_slice(c->arena, &go_type_anys, to - from + 1);

	arena_step(c->arena, to - from);
	if (to > from)
		memcpy(v.list.items, list.list.items + from, (to - from) * sizeof *v.list.items);
	v.list.n = to - from;
	return v;
}

struct go_value
tpl_fn_sprig_append(struct go_call *c)
{
	sprig_check_list(c, c->args[0], "Cannot push on type");
	return go_append(c->arena, copy(c, c->args[0], 0, c->args[0].list.n), c->args[1]);
}

struct go_value
tpl_fn_sprig_prepend(struct go_call *c)
{
	struct go_value list = c->args[0], v;

	sprig_check_list(c, list, "Cannot prepend on type");
	v = copy(c, list, 0, list.list.n);
	v.list.n++;
	memmove(v.list.items + 1, v.list.items, list.list.n * sizeof *v.list.items);
	v.list.items[0] = c->args[1];
	return v;
}

struct go_value
tpl_fn_sprig_concat(struct go_call *c)
{
	struct go_value v = { .type = &go_type_anys };

	for (size_t i = 0; i < c->n; i++) {
		if (c->args[i].type && go_kind(c->args[i]) != GO_SLICE)
			go_call_fail(c, "Cannot concat type %s as list", sprig_kind(c->args[i]));
		sprig_check_list(c, c->args[i], "");
		for (size_t k = 0; k < c->args[i].list.n; k++) {
			arena_step(c->arena, 1);
			v = go_append(c->arena, v, c->args[i].list.items[k]);
		}
	}
	return v;
}

struct go_value
tpl_fn_sprig_first(struct go_call *c)
{
	sprig_check_list(c, c->args[0], "Cannot find first on type");
	return c->args[0].list.n > 0 ? c->args[0].list.items[0] : go_nothing;
}

struct go_value
tpl_fn_sprig_last(struct go_call *c)
{
	size_t n;

	sprig_check_list(c, c->args[0], "Cannot find last on type");
	n = c->args[0].list.n;
	return n > 0 ? c->args[0].list.items[n - 1] : go_nothing;
}

struct go_value
tpl_fn_sprig_rest(struct go_call *c)
{
	sprig_check_list(c, c->args[0], "Cannot find rest on type");
	return c->args[0].list.n == 0 ? (struct go_value){ .type = &go_type_anys }
				      : copy(c, c->args[0], 1, c->args[0].list.n);
}

struct go_value
tpl_fn_sprig_initial(struct go_call *c)
{
	sprig_check_list(c, c->args[0], "Cannot find initial on type");
	return c->args[0].list.n == 0 ? (struct go_value){ .type = &go_type_anys }
				      : copy(c, c->args[0], 0, c->args[0].list.n - 1);
}

struct go_value
tpl_fn_sprig_reverse(struct go_call *c)
{
	struct go_value v;
	size_t n;

	sprig_check_list(c, c->args[0], "Cannot find reverse on type");
	n = c->args[0].list.n;
	v = copy(c, c->args[0], 0, n);
	for (size_t i = 0; i < n; i++)
		v.list.items[i] = c->args[0].list.items[n - 1 - i];
	return v;
}

static bool
is_among(struct go_call *c, struct go_value v, const struct go_value *some, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (go_deep_equal(c->arena, v, some[i]))
			return true;
	return false;
}

/* The elements that `keep` wants, which knows those that were kept. */
static struct go_value
filter(struct go_call *c, bool (*keep)(struct go_call *c, struct go_value v, struct go_value kept))
{
	struct go_value kept = go_slice(c->arena, &go_type_anys, 0), list = c->args[0];

	kept.list.room = 0;
	for (size_t i = 0; i < list.list.n; i++)
		if (keep(c, list.list.items[i], kept))
			kept = go_append(c->arena, kept, list.list.items[i]);
	return kept;
}

static bool
keep_nonempty(struct go_call *c, struct go_value v, struct go_value kept)
{
	(void)c;
	(void)kept;
	return !sprig_is_empty(v);
}

static bool
keep_new(struct go_call *c, struct go_value v, struct go_value kept)
{
	return !is_among(c, v, kept.list.items, kept.list.n);
}

static bool
keep_others(struct go_call *c, struct go_value v, struct go_value kept)
{
	(void)kept;
	return !is_among(c, v, c->args + 1, c->n - 1);
}

struct go_value
tpl_fn_sprig_compact(struct go_call *c)
{
	sprig_check_list(c, c->args[0], "Cannot compact on type");
	return filter(c, keep_nonempty);
}

struct go_value
tpl_fn_sprig_uniq(struct go_call *c)
{
	sprig_check_list(c, c->args[0], "Cannot find uniq on type");
	return filter(c, keep_new);
}

struct go_value
tpl_fn_sprig_without(struct go_call *c)
{
	sprig_check_list(c, c->args[0], "Cannot find without on type");
	return filter(c, keep_others);
}

struct go_value
tpl_fn_sprig_has(struct go_call *c)
{
	if (!c->args[1].type)
		return go_bool(false);
	sprig_check_list(c, c->args[1], "Cannot find has on type");
	return go_bool(is_among(c, c->args[0], c->args[1].list.items, c->args[1].list.n));
}

struct go_value
tpl_fn_sprig_slice(struct go_call *c)
{
	struct go_value v = c->args[0];
	int64_t from, to;

	sprig_check_list(c, v, "list should be type of slice or array but");
	if (v.list.n == 0)
		return go_nothing;
	from = c->n > 1 ? sprig_int(c->arena, c->args[1]) : 0;
	to = c->n > 2 ? sprig_int(c->arena, c->args[2]) : (int64_t)v.list.n;
	if (from < 0 || from > to || to > (int64_t)v.list.n)
		go_call_fail(c, "reflect.Value.Slice: slice index out of bounds");
	v.list.items += from;
	v.list.n = v.list.room = (size_t)(to - from);
	return v;
}

struct go_value
tpl_fn_sprig_chunk(struct go_call *c)
{
	static const struct go_type lists = {
		.kind = GO_SLICE, .name = "[][]interface {}", .elem = &go_type_anys
	};
	struct go_value chunks = go_slice(c->arena, &lists, 0), list = c->args[1];
	int64_t size = c->args[0].i;

	chunks.list.room = 0;
	sprig_check_list(c, list, "Cannot chunk type");
	if (size < 1)
		go_call_fail(c, "a part has at least one element");
	for (size_t i = 0; i < list.list.n; i += (size_t)size)
		chunks = go_append(c->arena, chunks,
		    copy(c, list, i,
			list.list.n - i < (size_t)size ? list.list.n : i + (size_t)size));
	return chunks;
}

struct go_value
tpl_fn_sprig_join(struct go_call *c)
{
	return go_join(c->arena, sprig_strings(c->arena, c->args[1]), c->args[0]);
}

struct go_value
tpl_fn_sprig_to_strings(struct go_call *c)
{
	return sprig_strings(c->arena, c->args[0]);
}

static int
compare_items(const void *a, const void *b)
{
	return go_compare_text(*(const struct go_value *)a, *(const struct go_value *)b);
}

struct go_value
tpl_fn_sprig_sort_alpha(struct go_call *c)
{
	struct go_value from = c->args[0].type ? sprig_strings(c->arena, c->args[0])
					       : sprig_strings(c->arena, go_text("<nil>"));
	struct go_value v = go_slice(c->arena, &go_type_strings, from.list.n);

	arena_step(c->arena, 4 * from.list.n);
	if (from.list.n > 0)
		memcpy(v.list.items, from.list.items, from.list.n * sizeof *v.list.items);
	qsort(v.list.items, v.list.n, sizeof *v.list.items, compare_items);
	return v;
}
