/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_func_compare.c: eq, ne, lt, le, gt, ge. Runs in: template-renderer. */
#include "template/go_print.h"
#include "template/tpl_functions.h"

#define BAD_TYPE "invalid type for comparison"

static bool
is_basic(struct go_value v)
{
	return go_kind(v) >= GO_BOOL && go_kind(v) <= GO_STRING;
}

static const char *
shown(struct go_call *c, struct go_value v, const char *format)
{
	struct text t = { .arena = c->arena };

	go_printf(&t, format, 2, &v, 1);
	return t.text;
}

static bool
equal_numbers(struct go_value a, struct go_value b)
{
	struct go_value i = go_kind(a) == GO_INT ? a : b, u = go_kind(a) == GO_INT ? b : a;

	return i.i >= 0 && (uint64_t)i.i == u.u;
}

static bool
equal_others(struct go_call *c, struct go_value a, struct go_value b)
{
	if (go_kind(a) != go_kind(b) && a.type && b.type)
		go_call_fail(c,
		    "non-comparable types " TPL_VALUE("%s") ": %s, %s: " TPL_VALUE("%s"),
		    shown(c, a, "%s"), a.type->name, b.type->name, shown(c, b, "%v"));
	if (go_is_nil(a) || go_is_nil(b))
		return go_is_nil(a) == go_is_nil(b);
	if (go_kind(b) == GO_SLICE || go_kind(b) == GO_MAP || go_kind(b) == GO_FUNC)
		go_call_fail(c, "non-comparable type " TPL_VALUE("%s") ": %s", shown(c, b, "%s"),
		    b.type->name);
	return go_same(a, b);
}

static bool
equal(struct go_call *c, struct go_value a, struct go_value b)
{
	bool basic_a = is_basic(a), basic_b = is_basic(b);

	if (go_kind(a) == GO_INTERFACE)
		a = go_nothing;
	if (go_kind(b) == GO_INTERFACE)
		b = go_nothing;
	if (!basic_a && !basic_b)
		return equal_others(c, a, b);
	if (go_kind(a) != go_kind(b)) {
		if ((go_kind(a) == GO_INT && go_kind(b) == GO_UINT) ||
		    (go_kind(a) == GO_UINT && go_kind(b) == GO_INT))
			return equal_numbers(a, b);
		if (a.type && b.type)
			go_call_fail(c, "incompatible types for comparison: %s and %s",
			    a.type->name, b.type->name);
		return false;
	}
	if (go_kind(a) == GO_FLOAT)
		return a.f == b.f;
	return go_compare(a, b) == 0;
}

static bool
equal_to_any(struct go_call *c)
{
	arena_count_bytes(c->arena, go_kind(c->args[0]) == GO_STRING ? c->args[0].len : 0);
	if (c->n < 2)
		go_call_fail(c, "missing argument for comparison");
	for (size_t i = 1; i < c->n; i++)
		if (equal(c, c->args[0], c->args[i]))
			return true;
	return false;
}

static bool
less(struct go_call *c)
{
	struct go_value a = c->args[0], b = c->args[1];

	if (!is_basic(a) || !is_basic(b))
		go_call_fail(c, BAD_TYPE);
	if (go_kind(a) == GO_INT && go_kind(b) == GO_UINT)
		return a.i < 0 || (uint64_t)a.i < b.u;
	if (go_kind(a) == GO_UINT && go_kind(b) == GO_INT)
		return b.i >= 0 && a.u < (uint64_t)b.i;
	if (go_kind(a) != go_kind(b))
		go_call_fail(
		    c, "incompatible types for comparison: %s and %s", a.type->name, b.type->name);
	if (go_kind(a) == GO_BOOL)
		go_call_fail(c, BAD_TYPE);
	if (go_kind(a) == GO_FLOAT)
		return a.f < b.f;
	arena_count_bytes(c->arena, go_kind(a) == GO_STRING ? a.len : 0);
	return go_compare(a, b) < 0;
}

struct go_value
tpl_fn_eq(struct go_call *c)
{
	return go_bool(equal_to_any(c));
}

struct go_value
tpl_fn_ne(struct go_call *c)
{
	return go_bool(!equal_to_any(c));
}

struct go_value
tpl_fn_lt(struct go_call *c)
{
	return go_bool(less(c));
}

struct go_value
tpl_fn_le(struct go_call *c)
{
	return go_bool(less(c) || equal_to_any(c));
}

struct go_value
tpl_fn_gt(struct go_call *c)
{
	return go_bool(!less(c) && !equal_to_any(c));
}

struct go_value
tpl_fn_ge(struct go_call *c)
{
	return go_bool(!less(c));
}
