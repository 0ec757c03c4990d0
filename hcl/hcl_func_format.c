/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_format.c: format() and formatlist(). Runs in: cli, job-parser. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "hcl/hcl_func.h"
#include "hcl/hcl_normal.h"
#include "hcl/hcl_number.h"
#include "lang/text.h"

#define WIDTH_MAX 1000000 /* of numbers, as in the original */

struct verb {
	const char *text; /* from "%" */
	size_t len, arg;
	bool zero, sharp, plus, minus, space;
	int64_t width, precision; /* -1: not given */
	char mode;
};

struct formatter {
	struct hcl_call *c;
	struct text out;
	struct hcl_value **args;
	size_t n, highest;
};

static void
refuse_verb(struct formatter *f, const struct verb *v, const char *why)
{
	hcl_refuse_argument(f->c, 0, "\"%.*s\": %s", (int)v->len, v->text, why);
}

static void
repeat(struct formatter *f, char ch, int64_t n)
{
	char block[64];

	memset(block, ch, sizeof block);
	hcl_count_bytes(f->c->h, n > 0 ? (size_t)n : 0);
	for (; n > 0; n -= (int64_t)sizeof block)
		text_bytes(&f->out, block, n < (int64_t)sizeof block ? (size_t)n : sizeof block);
}

/* Width is counted in grapheme clusters. */
static void
add_padded(struct formatter *f, const struct verb *v, const char *s, size_t len)
{
	int64_t missing = v->width;
	const char *begins;

	if (missing > 0) {
		begins = hcl_clusters(f->c->h, s, len);
		for (size_t i = 0; i < len; i++)
			missing -= begins[i];
	}
	if (!v->minus)
		repeat(f, v->zero ? '0' : ' ', missing);
	text_bytes(&f->out, s, len);
	if (v->minus)
		repeat(f, v->zero ? '0' : ' ', missing);
}

/* The digits of a number without its sign and zeros at the ends, and the place of the point: the
 * value is 0.DIGITS * 10^point. */
static const char *
shortest_digits(struct hcl *h, const struct hcl_number *n, size_t *ret_len, long *ret_point)
{
	const char *s = hcl_number_text(h, n), *point;
	char *digits;
	size_t len = 0, zeros;

	s += *s == '-';
	digits = hcl_alloc(h, strlen(s) + 1);
	point = strchr(s, '.');
	*ret_point = point ? point - s : (long)strlen(s);
	for (; *s; s++)
		if (*s != '.')
			digits[len++] = *s;
	zeros = strspn(digits, "0");
	*ret_point -= (long)zeros;
	while (len > zeros && digits[len - 1] == '0')
		len--;
	*ret_len = len - zeros;
	return digits + zeros;
}

/* The shortest text of the number, with an exponent if that is less than -4 or more than 5. */
static const char *
general_text(struct hcl *h, const struct hcl_number *n, char e)
{
	const char *plain = hcl_number_text(h, n), *digits;
	long point;
	size_t len;

	if (mpfr_inf_p(n->v) || mpfr_zero_p(n->v))
		return plain;
	digits = shortest_digits(h, n, &len, &point);
	if (point - 1 >= -4 && point - 1 < 6)
		return plain;
	return hcl_printf(h, "%s%c%s%.*s%c%c%02ld", mpfr_signbit(n->v) ? "-" : "", digits[0],
	    len > 1 ? "." : "", (int)len - 1, digits + 1, e, point - 1 < 0 ? '-' : '+',
	    point - 1 < 0 ? 1 - point : point - 1);
}

/* With the verb's precision, e, f, g, E or G as in C. */
static const char *
precise_text(struct formatter *f, const struct verb *v, const struct hcl_number *n)
{
	char fmt[] = "%.*RNe";
	int precision = v->precision < 0 ? 6 : (int)v->precision;
	size_t room;
	char *text;

	if (mpfr_inf_p(n->v))
		return hcl_number_text(f->c->h, n);
	fmt[5] = v->mode;
	hcl_count_bytes(f->c->h, 32 * (size_t)precision);
	room = (size_t)mpfr_snprintf(NULL, 0, fmt, precision, n->v) + 1;
	text = hcl_alloc(f->c->h, room);
	(void)mpfr_snprintf(text, room, fmt, precision, n->v);
	return text;
}

static void
check_number_width(struct formatter *f, const struct verb *v)
{
	if (v->width > WIDTH_MAX || v->precision > WIDTH_MAX)
		refuse_verb(f, v, "the width or precision is too large");
}

static void
format_float(struct formatter *f, const struct verb *v, const struct hcl_number *n)
{
	bool general = (v->mode == 'g' || v->mode == 'G') && v->precision < 0;
	bool zero = v->zero && !mpfr_inf_p(n->v);
	const char *text, *sign = "";
	int64_t missing;

	check_number_width(f, v);
	text =
	    general ? general_text(f->c->h, n, v->mode == 'g' ? 'e' : 'E') : precise_text(f, v, n);
	if (*text == '-' || *text == '+')
		sign = *text++ == '-' ? "-" : v->space ? " " : "+";
	else if (v->plus || v->space)
		sign = v->plus ? "+" : " ";
	missing = v->width - (int64_t)strlen(sign) - (int64_t)strlen(text);
	if (!v->minus && !zero)
		repeat(f, ' ', missing);
	text_add(&f->out, sign);
	if (zero)
		repeat(f, '0', missing);
	text_add(&f->out, text);
	if (v->minus && !zero)
		repeat(f, ' ', missing);
}

static const char *
decimal_digits(struct hcl *h, const struct hcl_number *n)
{
	size_t room = (size_t)mpfr_snprintf(NULL, 0, "%.0RNf", n->v) + 1;
	char *text = hcl_alloc(h, room);

	(void)mpfr_snprintf(text, room, "%.0RNf", n->v);
	return text + (*text == '-');
}

/* The digits of the integer's magnitude. */
static const char *
integer_digits(struct hcl *h, const struct verb *v, const struct hcl_number *n)
{
	int bits = v->mode == 'b' ? 1 : v->mode == 'o' ? 3 : 4;
	mpfr_exp_t point;
	char *text;
	size_t len;

	if (mpfr_zero_p(n->v))
		return "0";
	if (v->mode == 'd')
		return decimal_digits(h, n);
	len = (size_t)mpfr_get_exp(n->v) / (size_t)bits + 2;
	text = hcl_alloc(h, len + 8);
	(void)mpfr_get_str(text, &point, 1 << bits, len, n->v, MPFR_RNDN);
	text += *text == '-';
	text[point] = '\0';
	for (char *s = text; *s && v->mode == 'X'; s++)
		*s = (char)toupper((unsigned char)*s);
	return text;
}

static void
format_integer(struct formatter *f, const struct verb *v, const struct hcl_number *n)
{
	const char *sign = mpfr_signbit(n->v) && !mpfr_zero_p(n->v) ? "-"
			   : v->plus                                ? "+"
			   : v->space                               ? " "
								    : "";
	const char *prefix = "", *digits;
	int64_t zeros = 0, missing;

	check_number_width(f, v);
	if (!hcl_number_is_int(n))
		refuse_verb(f, v, "a whole number is required");
	digits = integer_digits(f->c->h, v, n);
	if (v->sharp)
		prefix = v->mode == 'b'   ? "0b"
			 : v->mode == 'o' ? "0"
			 : v->mode == 'x' ? "0x"
			 : v->mode == 'X' ? "0X"
					  : "";
	if (v->precision == 0 && strcmp(digits, "0") == 0)
		return;
	if (v->precision > (int64_t)strlen(digits))
		zeros = v->precision - (int64_t)strlen(digits);
	missing = v->width - (int64_t)(strlen(sign) + strlen(prefix) + strlen(digits)) - zeros;
	if (!v->minus && v->zero && v->precision < 0 && missing > 0) {
		zeros = missing;
		missing = 0;
	}
	if (!v->minus)
		repeat(f, ' ', missing);
	text_add(&f->out, sign);
	text_add(&f->out, prefix);
	repeat(f, '0', zeros);
	text_add(&f->out, digits);
	if (v->minus)
		repeat(f, ' ', missing);
}

static void
format_number(struct formatter *f, const struct verb *v, struct hcl_value *arg)
{
	struct hcl_value *n = hcl_convert(f->c->h, arg, &hcl_type_number, NULL);

	if (!n)
		refuse_verb(f, v, "a number is required");
	if (strchr("bdoxX", v->mode))
		format_integer(f, v, n->number);
	else
		format_float(f, v, n->number);
}

static void
format_string(struct formatter *f, const struct verb *v, struct hcl_value *arg)
{
	struct hcl_value *s = hcl_convert(f->c->h, arg, &hcl_type_string, NULL);
	const char *begins, *text;
	size_t len;

	if (!s)
		refuse_verb(f, v, "a string is required");
	text = s->string;
	len = s->len;
	if (v->precision > 0) {
		int64_t left = v->precision;

		begins = hcl_clusters(f->c->h, text, len);
		for (len = 0; len < s->len && (!begins[len] || left-- > 0);)
			len++;
	}
	if (v->mode == 'q')
		text = hcl_to_json(f->c->h, hcl_normal_string(f->c->h, text, len), &len);
	add_padded(f, v, text, len);
}

static void
format_bool(struct formatter *f, const struct verb *v, struct hcl_value *arg)
{
	struct hcl_value *b = hcl_convert(f->c->h, arg, &hcl_type_bool, NULL);

	if (!b)
		refuse_verb(f, v, "a bool is required");
	text_add(&f->out, b->boolean ? "true" : "false");
}

static void
format_any(struct formatter *f, const struct verb *v, struct hcl_value *arg)
{
	const char *text;
	size_t len;

	if (!v->sharp && arg->state == HCL_KNOWN && arg->kind == HCL_STRING) {
		text = arg->string;
		len = arg->len;
	} else if (!v->sharp && arg->state == HCL_KNOWN && arg->kind == HCL_NUMBER) {
		text = general_text(f->c->h, arg->number, 'e');
		len = strlen(text);
	} else {
		text = hcl_to_json(f->c->h, arg, &len);
	}
	add_padded(f, v, text, len);
}

static void
format_verb(struct formatter *f, const struct verb *v)
{
	struct hcl_value *arg;

	if (v->arg > f->highest)
		f->highest = v->arg;
	if (v->arg > f->n)
		refuse_verb(f, v, "there is no argument for it");
	arg = f->args[v->arg - 1];
	if (v->mode != 'v' && hcl_is_null(arg))
		refuse_verb(f, v, "a null value cannot be formatted");
	if (v->mode == 'v')
		format_any(f, v, arg);
	else if (v->mode == 't')
		format_bool(f, v, arg);
	else if (v->mode == 's' || v->mode == 'q')
		format_string(f, v, arg);
	else if (v->mode && strchr("bdoxXeEfgG", v->mode))
		format_number(f, v, arg);
	else
		refuse_verb(f, v, "unknown verb");
}

/* Reads digits. A number that is too large becomes one that is refused later. */
static size_t
read_count(const char *s, int64_t *ret)
{
	size_t n = 0;

	for (*ret = 0; isdigit((unsigned char)s[n]); n++)
		if (*ret < INT32_MAX)
			*ret = 10 * *ret + (s[n] - '0');
	return n;
}

static bool
read_flag(struct verb *v, char ch)
{
	bool *flag = ch == '0'   ? &v->zero
		     : ch == '#' ? &v->sharp
		     : ch == '-' ? &v->minus
		     : ch == '+' ? &v->plus
		     : ch == ' ' ? &v->space
				 : NULL;

	if (flag)
		*flag = true;
	return flag != NULL;
}

/* %[flags][width][.precision][\[argument\]]letter. Returns its length. */
static size_t
read_verb(struct formatter *f, const char *s, size_t *next)
{
	struct verb v = { .text = s, .arg = *next, .width = -1, .precision = -1 };
	int64_t index;
	size_t n = 1;

	while (read_flag(&v, s[n]))
		n++;
	if (isdigit((unsigned char)s[n]))
		n += read_count(s + n, &v.width);
	if (s[n] == '.') {
		n++;
		n += read_count(s + n, &v.precision);
	}
	if (s[n] == '[' && s[n + 1] >= '1' && s[n + 1] <= '9') {
		n += 1 + read_count(s + n + 1, &index);
		v.arg = (size_t)index;
		if (s[n] == ']')
			n++;
		else
			v.arg = 0;
	}
	v.mode = s[n];
	v.len = n + 1;
	if (!isalpha((unsigned char)v.mode) || v.arg == 0) {
		v.len = n;
		refuse_verb(f, &v, "this verb is incomplete");
	}
	format_verb(f, &v);
	*next = v.arg + 1;
	return v.len;
}

static struct hcl_value *
format_values(struct hcl_call *c, const struct hcl_value *format, struct hcl_value **args, size_t n)
{
	struct formatter f = { .c = c, .out = { .arena = hcl_arena(c->h) }, .args = args, .n = n };
	size_t next = 1, some;

	hcl_count_bytes(c->h, format->len);
	for (size_t i = 0; i < format->len;) {
		const char *s = format->string + i;
		const char *percent = memchr(s, '%', format->len - i);

		some = percent ? (size_t)(percent - s) : format->len - i;
		text_bytes(&f.out, s, some);
		i += some;
		if (!percent)
			break;
		if (percent[1] == '%') {
			text_add(&f.out, "%");
			i += 2;
		} else {
			i += read_verb(&f, percent, &next);
		}
	}
	if (f.highest < n)
		hcl_refuse_argument(c, f.highest + 1,
		    "there are %zu arguments after the format, which uses %zu", n, f.highest);
	return hcl_text_value(&f.out);
}

static bool
all_known(struct hcl_value **args, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!hcl_is_wholly_known(args[i]))
			return false;
	return true;
}

struct hcl_value *
hcl_fn_format(struct hcl_call *c)
{
	if (c->args[0]->state == HCL_UNKNOWN || !all_known(c->args, c->n))
		return hcl_unknown(c->h, &hcl_type_string);
	return format_values(c, c->args[0], c->args + 1, c->n - 1);
}

/* The number of results: that of the elements of all lists among the arguments, or 1 without. */
static size_t
result_count(struct hcl_call *c)
{
	size_t first = 0;

	for (size_t i = 1; i < c->n; i++) {
		if (!hcl_is_sequence(c->args[i]) || hcl_is_null(c->args[i]))
			continue;
		if (first > 0 && c->args[i]->len != c->args[first]->len)
			hcl_refuse_argument(c, i,
			    "argument %zu has %zu elements, but argument %zu %zu", i + 1,
			    c->args[i]->len, first + 1, c->args[first]->len);
		first = first > 0 ? first : i;
	}
	return first > 0 ? c->args[first]->len : 1;
}

struct hcl_value *
hcl_fn_formatlist(struct hcl_call *c)
{
	struct hcl_value **results, **args = hcl_alloc(c->h, c->n * sizeof(struct hcl_value *));
	size_t total;

	for (size_t i = 0; i < c->n; i++)
		if (c->args[i]->state == HCL_UNKNOWN)
			return hcl_unknown(c->h, &hcl_type_any);
	total = result_count(c);
	results = hcl_alloc(c->h, total * sizeof(struct hcl_value *));
	for (size_t j = 0; j < total; j++) {
		for (size_t i = 1; i < c->n; i++)
			args[i - 1] = hcl_is_sequence(c->args[i]) && !hcl_is_null(c->args[i])
					  ? c->args[i]->items[j]
					  : c->args[i];
		hcl_step(c->h, c->n);
		results[j] = all_known(args, c->n - 1)
				 ? format_values(c, c->args[0], args, c->n - 1)
				 : hcl_unknown(c->h, &hcl_type_string);
	}
	return hcl_list(c->h, &hcl_type_string, results, total);
}
