/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_number.c: numbers of 512 bits. Runs in: cli, job-parser. */
#include "hcl/hcl_number.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/decimal.h"
#include "hcl/hcl_ast.h"

/* Enough decimal digits to distinguish any two numbers of 512 bits. */
#define DIGITS_MAX 157
/* More precision, to compute the distance of a decimal text from a number. */
#define EXTRA_BITS 128
/* The largest exponent (binary) that is shown and computed with. A text of more digits is refused.
 */
#define EXPONENT_MAX 8192

struct hcl_value *
hcl_new_number(struct hcl *h, unsigned bits)
{
	struct hcl_value *v = hcl_new_object(h, struct hcl_value);
	void *limbs = hcl_alloc(h, mpfr_custom_get_size(bits));

	v->kind = HCL_NUMBER;
	v->number = hcl_new_object(h, struct hcl_number);
	mpfr_custom_init(limbs, bits);
	mpfr_custom_init_set(v->number->v, MPFR_ZERO_KIND, 0, bits, limbs);
	return v;
}

struct hcl_value *
hcl_int(struct hcl *h, int64_t n)
{
	struct hcl_value *v = hcl_new_number(h, 64);

	(void)mpfr_set_sj(v->number->v, n, MPFR_RNDN);
	return v;
}

struct hcl_value *
hcl_double(struct hcl *h, double d)
{
	struct hcl_value *v = hcl_new_number(h, 53);

	(void)mpfr_set_d(v->number->v, d, MPFR_RNDN);
	return v;
}

/* Returns whether s is [+-]digits[.digits][e[+-]digits], with at least one digit. */
static bool
is_decimal(const char *s, size_t len)
{
	size_t i = 0, digits = 0;

	if (i < len && (s[i] == '+' || s[i] == '-'))
		i++;
	for (; i < len && isdigit((unsigned char)s[i]); i++)
		digits++;
	if (i < len && s[i] == '.')
		for (i++; i < len && isdigit((unsigned char)s[i]); i++)
			digits++;
	if (digits == 0)
		return false;
	if (i < len && (s[i] == 'e' || s[i] == 'E')) {
		i++;
		if (i < len && (s[i] == '+' || s[i] == '-'))
			i++;
		if (i == len)
			return false;
		while (i < len && isdigit((unsigned char)s[i]))
			i++;
	}
	return i == len;
}

struct hcl_value *
hcl_parse_number(struct hcl *h, const char *s, size_t len)
{
	struct hcl_value *v;
	char *text, *end;

	if (len > 4096 || !is_decimal(s, len))
		return NULL;
	text = hcl_strndup(h, s, len);
	v = hcl_new_number(h, HCL_NUMBER_BITS);
	(void)mpfr_strtofr(v->number->v, text, &end, 10, MPFR_RNDN);
	if (*end || !mpfr_number_p(v->number->v) ||
	    (!mpfr_zero_p(v->number->v) && labs(mpfr_get_exp(v->number->v)) > EXPONENT_MAX))
		return NULL;
	return v;
}

/* Whether n digits are enough: whether their value is less than half a unit of v's last bit away
 * from v, or just that if that bit is 0. */
static bool
is_enough(const mpfr_t v, size_t n, char *digits, long *ret_exponent)
{
	mpfr_prec_t bits = mpfr_get_prec(v), more = bits + EXTRA_BITS;
	unsigned long limbs[(HCL_NUMBER_BITS + EXTRA_BITS) / 64 + 1], unit_limbs[1];
	char text[DIGITS_MAX + 40];
	bool negative;
	mpfr_t back, half;
	int r;

	(void)mpfr_get_str(digits, ret_exponent, 10, n, v, MPFR_RNDN);
	negative = *digits == '-';
	(void)snprintf(
	    text, sizeof text, "%s0.%se%ld", negative ? "-" : "", digits + negative, *ret_exponent);
	mpfr_custom_init(limbs, more);
	mpfr_custom_init_set(back, MPFR_ZERO_KIND, 0, more, limbs);
	mpfr_custom_init(unit_limbs, 32);
	mpfr_custom_init_set(half, MPFR_ZERO_KIND, 0, 32, unit_limbs);
	(void)mpfr_strtofr(back, text, NULL, 10, MPFR_RNDN);
	(void)mpfr_sub(back, back, v, MPFR_RNDN);
	(void)mpfr_set_ui_2exp(half, 1, mpfr_get_exp(v) - bits - 1, MPFR_RNDN);
	r = mpfr_cmpabs(back, half);
	return r < 0 || (r == 0 && mpfr_min_prec(v) < bits);
}

char *
hcl_number_text(struct hcl *h, const struct hcl_number *n)
{
	char digits[DIGITS_MAX + 40];
	size_t low = 1, high = DIGITS_MAX;
	long exponent;

	if (mpfr_zero_p(n->v))
		return hcl_strndup(h, mpfr_signbit(n->v) ? "-0" : "0", mpfr_signbit(n->v) ? 2 : 1);
	if (mpfr_inf_p(n->v))
		return hcl_strndup(h, mpfr_signbit(n->v) ? "-Inf" : "+Inf", 4);
	hcl_step(h, 8);
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (is_enough(n->v, middle, digits, &exponent))
			high = middle;
		else
			low = middle + 1;
	}
	(void)is_enough(n->v, low, digits, &exponent);
	return decimal_write(hcl_alloc(h, decimal_size(digits, exponent)), digits, exponent);
}

bool
hcl_number_is_int(const struct hcl_number *n)
{
	return mpfr_integer_p(n->v);
}

bool
hcl_number_int64(const struct hcl_number *n, int64_t *ret)
{
	if (!mpfr_integer_p(n->v) || !mpfr_fits_intmax_p(n->v, MPFR_RNDZ))
		return false;
	*ret = mpfr_get_sj(n->v, MPFR_RNDZ);
	return true;
}

double
hcl_number_double(const struct hcl_number *n)
{
	return mpfr_get_d(n->v, MPFR_RNDN);
}

int
hcl_number_compare(const struct hcl_number *a, const struct hcl_number *b)
{
	return mpfr_cmp(a->v, b->v);
}

static void
check_size(struct hcl *h, const struct hcl_value *v)
{
	const struct hcl_range nowhere = { 0 };

	if (mpfr_regular_p(v->number->v) && labs(mpfr_get_exp(v->number->v)) > EXPONENT_MAX)
		hcl_fail(h, nowhere, "a number has too many digits");
}

struct hcl_value *
hcl_number_op(struct hcl *h, int op, const struct hcl_number *a, const struct hcl_number *b)
{
	mpfr_prec_t x = mpfr_get_prec(a->v), y = mpfr_get_prec(b->v);
	struct hcl_value *v = hcl_new_number(h, (unsigned)(x > y ? x : y));

	switch (op) {
	case HCL_OP_ADD:
		(void)mpfr_add(v->number->v, a->v, b->v, MPFR_RNDN);
		break;
	case HCL_OP_SUBTRACT:
		(void)mpfr_sub(v->number->v, a->v, b->v, MPFR_RNDN);
		break;
	case HCL_OP_MULTIPLY:
		(void)mpfr_mul(v->number->v, a->v, b->v, MPFR_RNDN);
		break;
	case HCL_OP_DIVIDE:
		(void)mpfr_div(v->number->v, a->v, b->v, MPFR_RNDN);
		break;
	default:
		(void)mpfr_fmod(v->number->v, a->v, b->v, MPFR_RNDN);
		break;
	}
	check_size(h, v);
	return v;
}
