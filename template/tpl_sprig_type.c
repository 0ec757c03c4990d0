/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_sprig_type.c: sprig's functions about types, defaults and numbers. Runs in:
 * template-renderer. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "template/go_json.h"
#include "template/go_print.h"
#include "template/go_strings.h"
#include "template/go_text.h"
#include "template/go_time.h"
#include "template/tpl_sprig.h"

#define NUMBERS_MAX 1000000 /* of a sequence */

/* "5.00" is 5. */
static size_t
without_zero_decimals(struct go_value s)
{
	size_t n = s.len;

	while (n > 0 && s.s[n - 1] == '0')
		n--;
	return n < s.len && n > 0 && s.s[n - 1] == '.' ? n - 1 : s.len;
}

/* Types of packages are not converted. */
static bool
is_named(struct go_value v)
{
	return v.type && strchr(v.type->name, '.') && go_kind(v) != GO_POINTER;
}

int64_t
sprig_int(struct arena *a, struct go_value v)
{
	int64_t i = 0;

	(void)a;
	if (is_named(v))
		return 0;
	switch (go_kind(v)) {
	case GO_BOOL:
		return v.boolean;
	case GO_INT:
	case GO_UINT:
		return v.i;
	case GO_FLOAT:
		return v.f >= -0x1p63 && v.f < 0x1p63 ? (int64_t)v.f : INT64_MIN;
	case GO_STRING:
		return go_parse_int(v.s, without_zero_decimals(v), 0, &i) == 0 ? i : 0;
	default:
		return 0;
	}
}

double
sprig_float(struct arena *a, struct go_value v)
{
	double f = 0;

	if (is_named(v))
		return 0;
	switch (go_kind(v)) {
	case GO_BOOL:
		return v.boolean;
	case GO_INT:
		return (double)v.i;
	case GO_UINT:
		return (double)v.u;
	case GO_FLOAT:
		return v.f;
	case GO_STRING:
		return go_parse_float(a, v.s, v.len, &f) == 0 ? f : 0;
	default:
		return 0;
	}
}

bool
sprig_is_empty(struct go_value v)
{
	return go_kind(v) != GO_STRUCT && !go_is_true(v);
}

const char *
sprig_kind(struct go_value v)
{
	static const char *const names[] = { [GO_BOOL] = "bool",
		[GO_STRING] = "string",
		[GO_SLICE] = "slice",
		[GO_MAP] = "map",
		[GO_STRUCT] = "struct",
		[GO_POINTER] = "ptr",
		[GO_FUNC] = "func",
		[GO_CHAN] = "chan" };

	if (!v.type)
		return "invalid";
	if (v.type == &go_type_duration)
		return "int64";
	return go_kind(v) == GO_INT && strchr(v.type->name, '.') ? "int64"
	       : names[go_kind(v)]                               ? names[go_kind(v)]
								 : v.type->name;
}

struct go_value
tpl_fn_sprig_default(struct go_call *c)
{
	return c->n < 2 || sprig_is_empty(c->args[1]) ? c->args[0] : c->args[1];
}

struct go_value
tpl_fn_sprig_empty(struct go_call *c)
{
	return go_bool(sprig_is_empty(c->args[0]));
}

struct go_value
tpl_fn_sprig_coalesce(struct go_call *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (!sprig_is_empty(c->args[i]))
			return c->args[i];
	return go_nothing;
}

static size_t
count_empty(struct go_call *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		n += sprig_is_empty(c->args[i]);
	return n;
}

struct go_value
tpl_fn_sprig_all(struct go_call *c)
{
	return go_bool(count_empty(c) == 0);
}

struct go_value
tpl_fn_sprig_any(struct go_call *c)
{
	return go_bool(count_empty(c) < c->n);
}

struct go_value
tpl_fn_sprig_ternary(struct go_call *c)
{
	return c->args[c->args[2].boolean ? 0 : 1];
}

struct go_value
tpl_fn_sprig_type_of(struct go_call *c)
{
	return go_text(go_type_name(c->args[0]));
}

struct go_value
tpl_fn_sprig_type_is(struct go_call *c)
{
	return go_bool(go_text_is(c->args[0], go_type_name(c->args[1])));
}

struct go_value
tpl_fn_sprig_type_is_like(struct go_call *c)
{
	const char *name = go_type_name(c->args[1]);

	return go_bool(go_text_is(c->args[0], name) ||
		       (*name == '*' && go_text_is(c->args[0], name)) ||
		       go_text_is(c->args[0], *name == '*' ? name + 1 : name));
}

struct go_value
tpl_fn_sprig_kind_of(struct go_call *c)
{
	return go_text(sprig_kind(c->args[0]));
}

struct go_value
tpl_fn_sprig_kind_is(struct go_call *c)
{
	return go_bool(go_text_is(c->args[0], sprig_kind(c->args[1])));
}

struct go_value
tpl_fn_sprig_deep_equal(struct go_call *c)
{
	return go_bool(go_deep_equal(c->arena, c->args[0], c->args[1]));
}

struct go_value
tpl_fn_sprig_from_json(struct go_call *c)
{
	const char *why;
	struct go_value v = go_try_json(c->arena, c->args[0], &why);

	return why ? go_nothing : v;
}

struct go_value
tpl_fn_sprig_must_from_json(struct go_call *c)
{
	return go_read_json(c, c->args[0]);
}

/* must: fails for a value without JSON, which else becomes nothing. */
static struct go_value
json_text(struct go_call *c, unsigned flags, bool must)
{
	struct text t = { .arena = c->arena };
	const char *why = go_write_json(&t, c->args[0], flags);

	if (why && must)
		go_call_fail(c, "%s", why);
	return why ? go_text("") : go_text_value(&t);
}

struct go_value
tpl_fn_sprig_to_json(struct go_call *c)
{
	return json_text(c, GO_JSON_ESCAPE_HTML, false);
}

struct go_value
tpl_fn_sprig_must_to_json(struct go_call *c)
{
	return json_text(c, GO_JSON_ESCAPE_HTML, true);
}

struct go_value
tpl_fn_sprig_to_pretty_json(struct go_call *c)
{
	return json_text(c, GO_JSON_ESCAPE_HTML | GO_JSON_INDENT, false);
}

struct go_value
tpl_fn_sprig_must_to_pretty_json(struct go_call *c)
{
	return json_text(c, GO_JSON_ESCAPE_HTML | GO_JSON_INDENT, true);
}

struct go_value
tpl_fn_sprig_to_raw_json(struct go_call *c)
{
	return json_text(c, 0, true);
}

struct go_value
tpl_fn_sprig_fail(struct go_call *c)
{
	go_call_fail(c, TPL_VALUE("%s"), arena_strndup(c->arena, c->args[0].s, c->args[0].len));
}

/* Numbers. */

struct go_value
tpl_fn_sprig_int64(struct go_call *c)
{
	return go_int64(sprig_int(c->arena, c->args[0]));
}

struct go_value
tpl_fn_sprig_int(struct go_call *c)
{
	return go_int(sprig_int(c->arena, c->args[0]));
}

struct go_value
tpl_fn_sprig_atoi(struct go_call *c)
{
	int64_t i = 0;

	return go_int(go_parse_int(c->args[0].s, c->args[0].len, 10, &i) == -EINVAL ? 0 : i);
}

struct go_value
tpl_fn_sprig_float64(struct go_call *c)
{
	return go_float(sprig_float(c->arena, c->args[0]));
}

/* As octal digits. */
struct go_value
tpl_fn_sprig_to_decimal(struct go_call *c)
{
	struct go_value s = go_to_text(c->arena, c->args[0]);
	int64_t i = 0;

	return go_int64(go_parse_int(s.s, s.len, 8, &i) == 0 ? i : 0);
}

struct go_value
tpl_fn_sprig_add(struct go_call *c)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < c->n; i++)
		sum += (uint64_t)sprig_int(c->arena, c->args[i]);
	return go_int64((int64_t)sum);
}

struct go_value
tpl_fn_sprig_add1(struct go_call *c)
{
	return go_int64((int64_t)((uint64_t)sprig_int(c->arena, c->args[0]) + 1));
}

struct go_value
tpl_fn_sprig_sub(struct go_call *c)
{
	return go_int64((int64_t)((uint64_t)sprig_int(c->arena, c->args[0]) -
				  (uint64_t)sprig_int(c->arena, c->args[1])));
}

struct go_value
tpl_fn_sprig_mul(struct go_call *c)
{
	uint64_t product = 1;

	for (size_t i = 0; i < c->n; i++)
		product *= (uint64_t)sprig_int(c->arena, c->args[i]);
	return go_int64((int64_t)product);
}

static struct go_value
divide(struct go_call *c, bool remainder)
{
	int64_t a = sprig_int(c->arena, c->args[0]), b = sprig_int(c->arena, c->args[1]);

	if (b == 0)
		go_call_fail(c, "runtime error: integer divide by zero");
	if (b == -1)
		return go_int64(remainder ? 0 : (int64_t) - (uint64_t)a);
	return go_int64(remainder ? a % b : a / b);
}

struct go_value
tpl_fn_sprig_div(struct go_call *c)
{
	return divide(c, false);
}

struct go_value
tpl_fn_sprig_mod(struct go_call *c)
{
	return divide(c, true);
}

static struct go_value
choose(struct go_call *c, bool larger)
{
	int64_t chosen = sprig_int(c->arena, c->args[0]);

	for (size_t i = 1; i < c->n; i++) {
		int64_t other = sprig_int(c->arena, c->args[i]);

		if (larger ? other > chosen : other < chosen)
			chosen = other;
	}
	return go_int64(chosen);
}

struct go_value
tpl_fn_sprig_max(struct go_call *c)
{
	return choose(c, true);
}

struct go_value
tpl_fn_sprig_min(struct go_call *c)
{
	return choose(c, false);
}

static struct go_value
choose_float(struct go_call *c, double (*better)(double, double))
{
	double chosen = sprig_float(c->arena, c->args[0]);

	for (size_t i = 1; i < c->n; i++)
		chosen = better(chosen, sprig_float(c->arena, c->args[i]));
	return go_float(chosen);
}

struct go_value
tpl_fn_sprig_maxf(struct go_call *c)
{
	return choose_float(c, fmax);
}

struct go_value
tpl_fn_sprig_minf(struct go_call *c)
{
	return choose_float(c, fmin);
}

/* Decimal arithmetic: the shortest decimal text of a double, with more bits than it has. */
static long double
decimal(struct go_call *c, struct go_value v)
{
	struct text t = { .arena = c->arena };
	double f = sprig_float(c->arena, v);

	if (isnan(f) || isinf(f))
		go_call_fail(c, "Cannot create a Decimal from %s",
		    isnan(f) ? "NaN"
		    : f < 0  ? "-Inf"
			     : "+Inf");
	go_add_float(&t, f, 'e', -1);
	return strtold(t.text, NULL);
}

static struct go_value
fold(struct go_call *c, size_t from, long double start, char operator)
{
	for (size_t i = from; i < c->n; i++) {
		long double d = decimal(c, c->args[i]);

		if (operator== '/' && d == 0)
			go_call_fail(c, "decimal division by 0");
		start = operator== '+' ? start + d :
			operator== '-' ? start - d
			:
			operator== '*' ? start * d
				       : start / d;
		if (operator== '/') /* 16 digits after the point */
			start = strtold(arena_printf(c->arena, "%.16Lf", start), NULL);
	}
	return go_float((double)start + 0.0); /* there is no negative 0 */
}

struct go_value
tpl_fn_sprig_addf(struct go_call *c)
{
	return fold(c, 0, 0, '+');
}

struct go_value
tpl_fn_sprig_add1f(struct go_call *c)
{
	return fold(c, 0, 1, '+');
}

struct go_value
tpl_fn_sprig_subf(struct go_call *c)
{
	return fold(c, 1, decimal(c, c->args[0]), '-');
}

struct go_value
tpl_fn_sprig_mulf(struct go_call *c)
{
	return fold(c, 1, decimal(c, c->args[0]), '*');
}

struct go_value
tpl_fn_sprig_divf(struct go_call *c)
{
	return fold(c, 1, decimal(c, c->args[0]), '/');
}

struct go_value
tpl_fn_sprig_ceil(struct go_call *c)
{
	return go_float(ceil(sprig_float(c->arena, c->args[0])));
}

struct go_value
tpl_fn_sprig_floor(struct go_call *c)
{
	return go_float(floor(sprig_float(c->arena, c->args[0])));
}

struct go_value
tpl_fn_sprig_round(struct go_call *c)
{
	double on = c->n > 2 ? c->args[2].f : .5, scale = pow(10, (double)c->args[1].i), whole;
	double digits = scale * sprig_float(c->arena, c->args[0]);

	digits = modf(digits, &whole) >= on ? ceil(digits) : floor(digits);
	return go_float(digits / scale);
}

/* from, from + step … before `to`. */
static struct go_value
sequence(struct go_call *c, int64_t from, int64_t to, int64_t step)
{
	struct go_value v = go_slice(c->arena, &go_type_ints, 0);
	bool down = to < from;

	v.list.room = 0;
	if (down ? step >= 0 : step <= 0)
		return v;
	for (int64_t i = from; down ? i > to : i < to;) {
		if (v.list.n == NUMBERS_MAX)
			go_call_fail(c, "the sequence has more than %d numbers", NUMBERS_MAX);
		arena_step(c->arena, 1);
		v = go_append(c->arena, v, go_int(i));
		if (__builtin_add_overflow(i, step, &i))
			break;
	}
	return v;
}

struct go_value
tpl_fn_sprig_until(struct go_call *c)
{
	return sequence(c, 0, c->args[0].i, c->args[0].i < 0 ? -1 : 1);
}

struct go_value
tpl_fn_sprig_until_step(struct go_call *c)
{
	return sequence(c, c->args[0].i, c->args[1].i, c->args[2].i);
}

/* The numbers from the first (or 1) to the last argument, with it. */
struct go_value
tpl_fn_sprig_seq(struct go_call *c)
{
	int64_t from = c->n > 1 ? c->args[0].i : 1, to, step, one;
	struct go_value numbers, text = go_text("");

	if (c->n < 1 || c->n > 3)
		return text;
	to = c->args[c->n - 1].i;
	one = to < from ? -1 : 1;
	step = c->n == 3 ? c->args[1].i : one;
	if (c->n == 3 && one < 0 && step > 0)
		return text;
	numbers = sequence(c, from, (int64_t)((uint64_t)to + (uint64_t)one), step);
	return go_join(c->arena, sprig_strings(c->arena, numbers), go_text(" "));
}
