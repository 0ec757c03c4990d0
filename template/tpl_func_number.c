/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_func_number.c: numbers in texts, and arithmetic. Runs in: template-renderer. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "template/go_print.h"
#include "template/go_strings.h"
#include "template/go_text.h"
#include "template/tpl_functions.h"

static void
refuse_number(struct go_call *c, const char *name, const char *go_name, int r)
{
	struct text t = { .arena = c->arena };

	go_quote(&t, c->args[0].s, c->args[0].len, false);
	go_call_fail(c, "%s: strconv.%s: parsing %s: %s", name, go_name, t.text,
	    r == -ERANGE ? "value out of range" : "invalid syntax");
}

struct go_value
tpl_fn_parse_bool(struct go_call *c)
{
	static const char *const words[] = { "1", "t", "T", "true", "TRUE", "True", "0", "f", "F",
		"false", "FALSE", "False" };

	if (c->args[0].len == 0)
		return go_bool(false);
	for (size_t i = 0; i < 12; i++)
		if (go_text_is(c->args[0], words[i]))
			return go_bool(i < 6);
	refuse_number(c, "parseBool", "ParseBool", -EINVAL);
	return go_nothing;
}

struct go_value
tpl_fn_parse_float(struct go_call *c)
{
	double f = 0;
	int r;

	if (c->args[0].len == 0)
		return go_float(0);
	r = go_parse_float(c->arena, c->args[0].s, c->args[0].len, &f);
	if (r < 0)
		refuse_number(c, "parseFloat", "ParseFloat", r);
	return go_float(f);
}

struct go_value
tpl_fn_parse_int(struct go_call *c)
{
	int64_t i = 0;
	int r;

	if (c->args[0].len == 0)
		return go_int64(0);
	r = go_parse_int(c->args[0].s, c->args[0].len, 10, &i);
	if (r < 0)
		refuse_number(c, "parseInt", "ParseInt", r);
	return go_int64(i);
}

struct go_value
tpl_fn_parse_uint(struct go_call *c)
{
	uint64_t u = 0;
	int r;

	if (c->args[0].len == 0)
		return go_uint64(0);
	r = go_parse_uint(c->args[0].s, c->args[0].len, 10, &u);
	if (r < 0)
		refuse_number(c, "parseUint", "ParseUint", r);
	return go_uint64(u);
}

/* The operands, the second one before the first: 5 | subtract 3 is 2. */
struct operands {
	struct go_value a, b;
	bool floats, both_unsigned;
};

static bool
is_number(struct go_value v)
{
	return go_kind(v) == GO_INT || go_kind(v) == GO_UINT || go_kind(v) == GO_FLOAT;
}

static struct operands
take_operands(struct go_call *c, bool floats_allowed)
{
	struct operands o = { .a = c->args[1], .b = c->args[0] };
	struct text t = { .arena = c->arena };

	for (int i = 0; i < 2; i++) {
		struct go_value v = i == 0 ? o.a : o.b;

		if (is_number(v) && (floats_allowed || go_kind(v) != GO_FLOAT))
			continue;
		if (v.type)
			go_printf(&t, "%q", 2, &v, 1);
		else
			text_add(&t, "<invalid reflect.Value>");
		go_call_fail(c, "%s: unknown type for " TPL_VALUE("%s") " (%s)", c->name, t.text,
		    go_type_name(v));
	}
	o.floats = go_kind(o.a) == GO_FLOAT || go_kind(o.b) == GO_FLOAT;
	o.both_unsigned = go_kind(o.a) == GO_UINT && go_kind(o.b) == GO_UINT;
	return o;
}

static double
as_float(struct go_value v)
{
	return go_kind(v) == GO_FLOAT ? v.f : go_kind(v) == GO_UINT ? (double)v.u : (double)v.i;
}

/* Two's complement wraps, as Go's integers do, so the sign does not matter. */
static struct go_value
integer(const struct operands *o, uint64_t u)
{
	return o->both_unsigned ? go_uint64(u) : go_int64((int64_t)u);
}

struct go_value
tpl_fn_add(struct go_call *c)
{
	struct operands o = take_operands(c, true);

	return o.floats ? go_float(as_float(o.a) + as_float(o.b)) : integer(&o, o.a.u + o.b.u);
}

struct go_value
tpl_fn_subtract(struct go_call *c)
{
	struct operands o = take_operands(c, true);

	return o.floats ? go_float(as_float(o.a) - as_float(o.b)) : integer(&o, o.a.u - o.b.u);
}

struct go_value
tpl_fn_multiply(struct go_call *c)
{
	struct operands o = take_operands(c, true);

	return o.floats ? go_float(as_float(o.a) * as_float(o.b)) : integer(&o, o.a.u * o.b.u);
}

static struct go_value
divide(struct go_call *c, bool remainder)
{
	struct operands o = take_operands(c, !remainder);

	if (o.floats)
		return go_float(as_float(o.a) / as_float(o.b));
	if (o.b.u == 0)
		go_call_fail(c, "runtime error: integer divide by zero");
	if (o.both_unsigned)
		return go_uint64(remainder ? o.a.u % o.b.u : o.a.u / o.b.u);
	if (o.b.i == -1)
		return go_int64(remainder ? 0 : (int64_t)-o.a.u);
	return go_int64(remainder ? o.a.i % o.b.i : o.a.i / o.b.i);
}

struct go_value
tpl_fn_divide(struct go_call *c)
{
	return divide(c, false);
}

struct go_value
tpl_fn_modulo(struct go_call *c)
{
	return divide(c, true);
}

/* The chosen operand, as int64, uint64 or float64. */
static struct go_value
choose(struct go_call *c, bool larger)
{
	struct operands o = take_operands(c, true);
	struct go_value v;
	bool less, more;

	if (o.floats) {
		less = as_float(o.a) < as_float(o.b);
		more = as_float(o.a) > as_float(o.b);
	} else if (o.both_unsigned) {
		less = o.a.u < o.b.u;
		more = o.a.u > o.b.u;
	} else {
		less = o.a.i < o.b.i;
		more = o.a.i > o.b.i;
	}
	v = (larger ? more : less) ? o.a : o.b;
	return go_kind(v) == GO_FLOAT  ? go_float(v.f)
	       : go_kind(v) == GO_UINT ? go_uint64(v.u)
				       : go_int64(v.i);
}

struct go_value
tpl_fn_minimum(struct go_call *c)
{
	return choose(c, false);
}

struct go_value
tpl_fn_maximum(struct go_call *c)
{
	return choose(c, true);
}

static int64_t
loop_bound(struct go_call *c, struct go_value v)
{
	int64_t i = 0;
	int r;

	if (go_kind(v) == GO_INT || go_kind(v) == GO_UINT)
		return v.i;
	if (go_kind(v) != GO_STRING)
		go_call_fail(c, "loop: bad argument type: %s", go_type_name(v));
	r = v.len == 0 ? 0 : go_parse_int(v.s, v.len, 10, &i);
	if (r < 0) {
		c->args[0] = v;
		refuse_number(c, "parseInt", "ParseInt", r);
	}
	return i;
}

/* The integers from 0 or the first argument up to the last, without it. */
struct go_value
tpl_fn_loop(struct go_call *c)
{
	struct go_value v = { .type = &go_type_chan };

	if (c->n != 1 && c->n != 2)
		go_call_fail(
		    c, "loop: wrong number of arguments, expected 1 or 2, but got %zu", c->n);
	v.from = c->n == 2 ? loop_bound(c, c->args[0]) : 0;
	v.to = loop_bound(c, c->args[c->n - 1]);
	return v;
}
