/* SPDX-License-Identifier: Apache-2.0 */
/* go_number.c: numbers to text and back. Runs in: template-renderer. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "template/go_text.h"

#define DIGITS_MAX 17 /* that tell any two doubles apart */

/* The fewest digits that stand for this number, in the form d.ddde+xx. */
static void
shortest(double f, char buf[40])
{
	for (int digits = 1; digits <= DIGITS_MAX; digits++) {
		(void)snprintf(buf, 40, "%.*e", digits - 1, f);
		if (strtod(buf, NULL) == f)
			return;
	}
}

/* The digits of d.ddde+xx with a point elsewhere. */
static void
add_fixed(struct text *out, const char *digits)
{
	const char *e = strchr(digits, 'e');
	int exponent = atoi(e + 1);
	char plain[DIGITS_MAX + 1];
	size_t n = 0;

	if (*digits == '-')
		text_bytes(out, digits++, 1);
	for (; digits < e; digits++)
		if (*digits != '.')
			plain[n++] = *digits;
	while (n > 1 && plain[n - 1] == '0')
		n--;
	if (exponent < 0)
		text_add(out, "0.");
	for (int i = -1; i > exponent; i--)
		text_add(out, "0");
	for (int i = 0; i < (int)n || i <= exponent; i++) {
		text_bytes(out, i < (int)n ? &plain[i] : "0", 1);
		if (i == exponent && i + 1 < (int)n)
			text_add(out, ".");
	}
}

static void
add_shortest(struct text *out, double f, char verb)
{
	char buf[40], *e;
	int exponent;

	shortest(f, buf);
	e = strchr(buf, 'e');
	exponent = atoi(e + 1);
	if (verb == 'f' || (verb != 'e' && verb != 'E' && exponent >= -4 && exponent < 6)) {
		add_fixed(out, buf);
		return;
	}
	if (verb == 'E' || verb == 'G')
		*e = 'E';
	text_add(out, buf);
}

static void
add_hex(struct text *out, double f, char verb, int prec)
{
	int exponent = 0;
	double mantissa = f == 0 ? 0 : 2 * frexp(fabs(f), &exponent);
	char buf[64], *p;

	if (signbit(f))
		text_add(out, "-");
	/* glibc writes a mantissa of 1 <= m < 2 as 0x1.…, with all 13 digits at most. */
	if (prec < 0)
		(void)snprintf(buf, sizeof buf, "%a", mantissa);
	else
		(void)snprintf(buf, sizeof buf, "%.*a", prec < 13 ? prec : 13, mantissa);
	p = strchr(buf, 'p');
	if (buf[2] == '2') { /* rounded up */
		buf[2] = '1';
		exponent++;
	}
	exponent = f == 0 ? 0 : exponent - 1 + atoi(p + 1);
	(void)snprintf(
	    p, sizeof buf - (size_t)(p - buf), "p%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
	for (p = buf; verb == 'X' && *p; p++)
		*p = (char)toupper((unsigned char)*p);
	text_add(out, buf);
}

static void
add_binary(struct text *out, double f)
{
	char buf[64];
	int exponent;
	double mantissa = frexp(f, &exponent);

	if (f == 0 || exponent < -1021) {
		mantissa = ldexp(f, 1074);
		exponent = -1074;
	} else {
		mantissa = ldexp(mantissa, 53);
		exponent -= 53;
	}
	(void)snprintf(buf, sizeof buf, "%.0fp%+d", mantissa, exponent);
	text_add(out, buf);
}

void
go_add_float(struct text *out, double f, char verb, int prec)
{
	char fmt[] = "%.*e";

	if (isnan(f) || isinf(f)) {
		text_add(out, isnan(f) ? "NaN" : f < 0 ? "-Inf" : "+Inf");
		return;
	}
	if (verb == 'b')
		add_binary(out, f);
	else if (verb == 'x' || verb == 'X')
		add_hex(out, f, verb, prec);
	else if (prec < 0)
		add_shortest(out, f, verb);
	else {
		fmt[3] = verb;
		text_add(out, arena_printf(out->arena, fmt, prec, f));
	}
}

/* Underscores between digits, as literals may have them; a base prefix counts as a digit. */
static bool
underscores_fit(const char *s, size_t len)
{
	char before = '^';
	size_t i = 0;
	bool hex = false;

	if (i < len && (s[i] == '+' || s[i] == '-'))
		i++;
	if (len - i >= 2 && s[i] == '0' && strchr("bBoOxX", s[i + 1])) {
		hex = tolower((unsigned char)s[i + 1]) == 'x';
		i += 2;
		before = '0';
	}
	for (; i < len; i++) {
		if (isdigit((unsigned char)s[i]) || (hex && isxdigit((unsigned char)s[i]))) {
			before = '0';
		} else if (s[i] == '_') {
			if (before != '0')
				return false;
			before = '_';
		} else {
			if (before == '_')
				return false;
			before = '!';
		}
	}
	return before != '_';
}

static bool
is_special(const char *s)
{
	if (*s == '+' || *s == '-')
		return strcasecmp(s + 1, "inf") == 0 || strcasecmp(s + 1, "infinity") == 0;
	return strcasecmp(s, "inf") == 0 || strcasecmp(s, "infinity") == 0 ||
	       strcasecmp(s, "nan") == 0;
}

/* Whether it is a number that strtod() reads as Go does: hexadecimal ones need an exponent. */
static bool
is_float(const char *s)
{
	const char *digits = "0123456789";
	bool hex;
	size_t n, more = 0;

	s += *s == '+' || *s == '-';
	hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
	if (hex) {
		digits = "0123456789abcdefABCDEF";
		s += 2;
	}
	n = strspn(s, digits);
	s += n;
	if (*s == '.') {
		more = strspn(++s, digits);
		s += more;
	}
	if (n + more == 0)
		return false;
	if (*s && strchr(hex ? "pP" : "eE", *s)) {
		s++;
		s += *s == '+' || *s == '-';
		n = strspn(s, "0123456789");
		return n > 0 && s[n] == '\0';
	}
	return !*s && !hex;
}

int
go_parse_float(struct arena *arena, const char *s, size_t len, double *ret)
{
	char *plain = arena_alloc(arena, len + 1);
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		if (s[i] != '_')
			plain[n++] = s[i];
	if (strlen(plain) != n || (n < len && !underscores_fit(s, len)))
		return -EINVAL;
	if (!is_special(plain) && !is_float(plain))
		return -EINVAL;
	*ret = strtod(plain, NULL);
	return isinf(*ret) && !is_special(plain) ? -ERANGE : 0;
}

int
go_parse_uint(const char *s, size_t len, int base, uint64_t *ret)
{
	uint64_t value = 0;
	bool literal = base == 0, over = false, underscores = false;
	size_t i = 0;

	if (literal) {
		static const char letters[] = "bBoOxX";
		const char *letter = len >= 3 && s[0] == '0' ? strchr(letters, s[1]) : NULL;

		base = len > 0 && s[0] == '0' ? 8 : 10;
		i = base == 8 && len > 1 ? 1 : 0;
		if (letter && *letter) {
			base = (int[]){ 2, 8, 16 }[(letter - letters) / 2];
			i = 2;
		}
	}
	if (i == len)
		return -EINVAL;
	for (; i < len; i++) {
		int digit = isdigit((unsigned char)s[i])   ? s[i] - '0'
			    : isalpha((unsigned char)s[i]) ? tolower((unsigned char)s[i]) - 'a' + 10
							   : 99;

		if (s[i] == '_' && literal) {
			underscores = true;
			continue;
		}
		if (digit >= base)
			return -EINVAL;
		over |= __builtin_mul_overflow(value, (uint64_t)base, &value) ||
			__builtin_add_overflow(value, (uint64_t)digit, &value);
	}
	if (underscores && !underscores_fit(s, len))
		return -EINVAL;
	*ret = over ? UINT64_MAX : value;
	return over ? -ERANGE : 0;
}

int
go_parse_int(const char *s, size_t len, int base, int64_t *ret)
{
	bool negative = len > 0 && *s == '-';
	size_t sign = len > 0 && (*s == '-' || *s == '+');
	uint64_t value, most = (uint64_t)INT64_MAX + negative;
	int r = len == sign ? -EINVAL : go_parse_uint(s + sign, len - sign, base, &value);

	if (r == -EINVAL)
		return r;
	if (value > most) {
		value = most;
		r = -ERANGE;
	}
	*ret = negative ? (int64_t)-value : (int64_t)value;
	return r;
}
