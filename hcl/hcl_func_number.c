/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_number.c: functions about numbers. Runs in: cli, job-parser. */
#include <ctype.h>

#include "hcl/hcl_func.h"
#include "hcl/hcl_number.h"

#define RANGE_MAX 1024 /* elements, as in the original */

static struct hcl_value *
number_like(struct hcl *h, const struct hcl_value *a)
{
	return hcl_new_number(h, (unsigned)mpfr_get_prec(a->number->v));
}

struct hcl_value *
hcl_fn_abs(struct hcl_call *c)
{
	struct hcl_value *v = number_like(c->h, c->args[0]);

	(void)mpfr_abs(v->number->v, c->args[0]->number->v, MPFR_RNDN);
	return v;
}

static struct hcl_value *
round_number(struct hcl_call *c, mpfr_rnd_t direction)
{
	struct hcl_value *v = number_like(c->h, c->args[0]);

	(void)mpfr_rint(v->number->v, c->args[0]->number->v, direction);
	if (mpfr_zero_p(v->number->v))
		(void)mpfr_abs(v->number->v, v->number->v, MPFR_RNDN);
	return v;
}

struct hcl_value *
hcl_fn_ceil(struct hcl_call *c)
{
	return round_number(c, MPFR_RNDU);
}

struct hcl_value *
hcl_fn_floor(struct hcl_call *c)
{
	return round_number(c, MPFR_RNDD);
}

struct hcl_value *
hcl_fn_int(struct hcl_call *c)
{
	return round_number(c, MPFR_RNDZ);
}

struct hcl_value *
hcl_fn_signum(struct hcl_call *c)
{
	int64_t n = hcl_arg_int(c, 0);

	return hcl_int(c->h, n < 0 ? -1 : n > 0);
}

/* sign: 1 for the greatest, -1 for the smallest. */
static struct hcl_value *
choose_extreme(struct hcl_call *c, int sign)
{
	struct hcl_value *best;

	if (c->n == 0)
		hcl_refuse_argument(c, 0, "at least one number is required");
	best = c->args[0];
	for (size_t i = 1; i < c->n; i++)
		if (sign * hcl_number_compare(c->args[i]->number, best->number) > 0)
			best = c->args[i];
	return best;
}

struct hcl_value *
hcl_fn_max(struct hcl_call *c)
{
	return choose_extreme(c, 1);
}

struct hcl_value *
hcl_fn_min(struct hcl_call *c)
{
	return choose_extreme(c, -1);
}

/* Up to base 36 letters of both cases are digits from 10; above, capitals come after the small
 * ones. Returns a value that is no digit of any base for other characters. */
static int
digit_value(char ch, int64_t base)
{
	if (isdigit((unsigned char)ch))
		return ch - '0';
	if (ch >= 'a' && ch <= 'z')
		return ch - 'a' + 10;
	if (ch >= 'A' && ch <= 'Z')
		return ch - 'A' + (base <= 36 ? 10 : 36);
	return 99;
}

/* Adds the digits to v. Returns whether they are digits. */
static bool
read_digits(struct hcl_call *c, mpfr_t v, const char *s, int64_t base)
{
	if (!*s)
		return false;
	for (; *s; s++) {
		int digit = digit_value(*s, base);

		if (digit >= base)
			return false;
		(void)mpfr_mul_si(v, v, (long)base, MPFR_RNDZ);
		(void)mpfr_add_si(v, v, digit, MPFR_RNDZ);
		if (mpfr_regular_p(v) && mpfr_get_exp(v) > HCL_NUMBER_BITS)
			hcl_refuse_argument(
			    c, 0, "the number has more than %d bits", HCL_NUMBER_BITS);
	}
	return true;
}

struct hcl_value *
hcl_fn_parseint(struct hcl_call *c)
{
	struct hcl_value *sum = hcl_new_number(c->h, HCL_NUMBER_BITS + 64), *v;
	const char *s = c->args[0]->string;
	int64_t base = hcl_arg_int(c, 1);
	mpfr_exp_t bits;

	if (c->args[0]->kind != HCL_STRING)
		hcl_refuse_argument(c, 0, "the first argument must be a string, not %s",
		    hcl_value_type_name(c->h, c->args[0]));
	if (base < 2 || base > 62)
		hcl_refuse_argument(c, 1, "the base must be between 2 and 62");
	hcl_count_bytes(c->h, 16 * c->args[0]->len);
	if (!read_digits(c, sum->number->v, s + (*s == '+' || *s == '-'), base))
		hcl_refuse_argument(c, 0, "\"%.80s\" is not a number of base %d", s, (int)base);
	bits = mpfr_zero_p(sum->number->v) ? 0 : mpfr_get_exp(sum->number->v);
	v = hcl_new_number(c->h, bits > 64 ? (unsigned)bits : 64);
	(void)mpfr_set(v->number->v, sum->number->v, MPFR_RNDN);
	if (*s == '-' && bits > 0)
		(void)mpfr_neg(v->number->v, v->number->v, MPFR_RNDN);
	return v;
}

struct span {
	struct hcl_value *start, *end, *step;
};

static struct span
range_span(struct hcl_call *c)
{
	struct span s;

	if (c->n == 0 || c->n > 3)
		hcl_refuse_argument(c, 3, "it takes one, two or three arguments");
	s.start = c->n == 1 ? hcl_int(c->h, 0) : c->args[0];
	s.end = c->n == 1 ? c->args[0] : c->args[1];
	if (c->n == 3)
		s.step = c->args[2];
	else
		s.step =
		    hcl_int(c->h, hcl_number_compare(s.end->number, s.start->number) < 0 ? -1 : 1);
	return s;
}

struct hcl_value *
hcl_fn_range(struct hcl_call *c)
{
	struct span s = range_span(c);
	struct hcl_value **items = hcl_alloc(c->h, RANGE_MAX * sizeof(struct hcl_value *));
	struct hcl_value *at = s.start;
	int sign = mpfr_sgn(s.step->number->v) < 0 ? -1 : 1;
	size_t n = 0;

	if (sign * hcl_number_compare(s.end->number, s.start->number) < 0)
		hcl_refuse_argument(c, 1, "the end must be %s than the start if the step is %s",
		    sign < 0 ? "less" : "greater", sign < 0 ? "negative" : "positive");
	while (sign * hcl_number_compare(at->number, s.end->number) < 0) {
		if (n == RANGE_MAX)
			hcl_refuse_argument(c, 0, "there would be more than %d values", RANGE_MAX);
		items[n++] = at;
		hcl_step(c->h, 1);
		at = hcl_number_op(c->h, HCL_OP_ADD, at->number, s.step->number);
	}
	return hcl_list(c->h, &hcl_type_number, items, n);
}
