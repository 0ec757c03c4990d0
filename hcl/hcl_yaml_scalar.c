/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcl_yaml_scalar.c: numbers, booleans, nulls and timestamps of YAML: numbers as in YAML 1.2, words
 * such as "yes" as in YAML 1.1. Runs in: cli, job-parser.
 */
#include "hcl/hcl_yaml_scalar.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hcl/hcl_normal.h"
#include "hcl/hcl_number.h"
#include "hcl/hcl_time.h"

enum meaning { MEANS_NOTHING, MEANS_TRUE, MEANS_FALSE, MEANS_NULL, MEANS_INFINITY, MEANS_MINUS };

static enum meaning
find_word(const char *s)
{
	static const struct {
		const char *word;
		enum meaning meaning;
	} words[] = { { "y", MEANS_TRUE }, { "yes", MEANS_TRUE }, { "true", MEANS_TRUE },
		{ "on", MEANS_TRUE }, { "n", MEANS_FALSE }, { "no", MEANS_FALSE },
		{ "false", MEANS_FALSE }, { "off", MEANS_FALSE }, { "", MEANS_NULL },
		{ "~", MEANS_NULL }, { "null", MEANS_NULL }, { ".inf", MEANS_INFINITY },
		{ "+.inf", MEANS_INFINITY }, { "-.inf", MEANS_MINUS } };

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		const char *word = words[i].word,
			   *rest = s + strcspn(s, "abcdefghijklmnopqrstuvwxyz");
		size_t capital = strcspn(word, "abcdefghijklmnopqrstuvwxyz");
		bool all_capitals = !*rest;

		if (strcasecmp(s, word) != 0)
			continue;
		/* small letters, capitals, or a capital first */
		if (strcmp(s, word) == 0 || all_capitals ||
		    strcmp(s + capital + 1, word + capital + 1) == 0)
			return words[i].meaning;
	}
	return MEANS_NOTHING;
}

static struct hcl_value *
word_value(struct hcl *h, enum meaning meaning)
{
	switch (meaning) {
	case MEANS_TRUE:
	case MEANS_FALSE:
		return hcl_bool(h, meaning == MEANS_TRUE);
	case MEANS_NULL:
		return hcl_null(h, &hcl_type_any);
	default:
		return hcl_double(h, meaning == MEANS_MINUS ? -INFINITY : INFINITY);
	}
}

static size_t
skip_digits(const char **s)
{
	size_t n = strspn(*s, "0123456789");

	*s += n;
	return n;
}

/* [-+]?[0-9]+, 0o[0-7]+, 0x[0-9a-fA-F]+ or a decimal floating point number. */
static bool
is_number(const char *s)
{
	size_t digits;

	if (strncmp(s, "0o", 2) == 0)
		return s[2] && s[2 + strspn(s + 2, "01234567")] == '\0';
	if (strncmp(s, "0x", 2) == 0)
		return s[2] && s[2 + strspn(s + 2, "0123456789abcdefABCDEF")] == '\0';
	s += *s == '+' || *s == '-';
	digits = skip_digits(&s);
	if (*s == '.') {
		s++;
		digits += skip_digits(&s);
	}
	if (digits > 0 && (*s == 'e' || *s == 'E')) {
		s++;
		s += *s == '+' || *s == '-';
		digits = skip_digits(&s);
	}
	return digits > 0 && !*s;
}

/* An integer with a prefix that says its base. NULL if it is none, or has more than 64 bits. */
static struct hcl_value *
read_prefixed(struct hcl *h, const char *s)
{
	bool negative = *s == '-';
	struct hcl_value *v;
	uint64_t n = 0;
	int base = 8;
	char *end;

	s += *s == '+' || *s == '-';
	if (*s != '0')
		return NULL;
	s++;
	if (*s && strchr("xXoObB", *s)) {
		base = tolower((unsigned char)*s) == 'x'   ? 16
		       : tolower((unsigned char)*s) == 'o' ? 8
							   : 2;
		s++;
	}
	for (end = (char *)s; *s; s++) {
		int digit = isdigit((unsigned char)*s)    ? *s - '0'
			    : isxdigit((unsigned char)*s) ? tolower((unsigned char)*s) - 'a' + 10
							  : 99;

		if (digit >= base || __builtin_mul_overflow(n, (uint64_t)base, &n) ||
		    __builtin_add_overflow(n, (uint64_t)digit, &n))
			return NULL;
	}
	if (s == end || (negative && n > (uint64_t)INT64_MAX + 1))
		return NULL;
	v = hcl_new_number(h, 64);
	(void)mpfr_set_uj(v->number->v, n, MPFR_RNDN);
	if (negative)
		(void)mpfr_neg(v->number->v, v->number->v, MPFR_RNDN);
	return v;
}

/* Underscores between digits do not count. */
static struct hcl_value *
read_number(struct hcl *h, const char *s, size_t len)
{
	char *plain = hcl_alloc(h, len + 1);
	struct hcl_value *v;
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		if (s[i] != '_')
			plain[n++] = s[i];
	v = hcl_parse_number(h, plain, n);
	return v ? v : strlen(plain) == n ? read_prefixed(h, plain) : NULL;
}

/* One or two digits. */
static bool
read_short(const char **s, int *ret)
{
	size_t n = 0;

	for (*ret = 0; n < 2 && isdigit((unsigned char)**s); n++, (*s)++)
		*ret = 10 * *ret + (**s - '0');
	return n > 0;
}

static bool
skip_char(const char **s, char ch)
{
	if (**s != ch)
		return false;
	(*s)++;
	return true;
}

static bool
read_clock(const char **s, struct hcl_time *t)
{
	if (!read_short(s, &t->hour) || !skip_char(s, ':') || !read_short(s, &t->minute) ||
	    !skip_char(s, ':') || !read_short(s, &t->second))
		return false;
	if ((**s == '.' || **s == ',') && isdigit((unsigned char)(*s)[1])) {
		(*s)++;
		(void)skip_digits(s);
	}
	return t->hour < 24 && t->minute < 60 && t->second < 60;
}

/* Z, or an offset such as -07:00, of up to 24:60 as in Go. */
static bool
read_zone(const char *s, struct hcl_time *t)
{
	bool west = *s == '-';
	int hours, minutes;

	if (strcmp(s, "Z") == 0)
		return true;
	if ((*s != '+' && *s != '-') || strlen(s) != 6 || s[3] != ':')
		return false;
	if (strspn(s + 1, "0123456789") != 2 || strspn(s + 4, "0123456789") != 2)
		return false;
	hours = atoi(s + 1);
	minutes = atoi(s + 4);
	t->offset_s = (west ? -60 : 60) * (60 * hours + minutes);
	return hours <= 24 && minutes <= 60;
}

/* YYYY-M-D alone, with a space and a time, or with T, a time and a zone. */
static bool
read_timestamp(const char *s, struct hcl_time *t)
{
	*t = (struct hcl_time){ 0 };
	if (strspn(s, "0123456789") != 4)
		return false;
	t->year = atoi(s);
	s += 4;
	if (!skip_char(&s, '-') || !read_short(&s, &t->month) || !skip_char(&s, '-') ||
	    !read_short(&s, &t->day) || !hcl_time_is_date(t->year, t->month, t->day))
		return false;
	if (skip_char(&s, ' '))
		return read_clock(&s, t) && !*s;
	if (skip_char(&s, 'T') || skip_char(&s, 't'))
		return read_clock(&s, t) && read_zone(s, t);
	return !*s;
}

static bool
is_tag(const char *tag, const char *name)
{
	return strcmp(tag, name) == 0;
}

/* The value by the tag alone. */
static struct hcl_value *
tagged_value(struct hcl *h, const char *tag, const char *s, size_t len, const char **ret_why)
{
	enum meaning word = strlen(s) == len ? find_word(s) : MEANS_NOTHING;
	struct hcl_value *v = NULL;
	struct hcl_time t;
	size_t n;
	char *bytes;

	*ret_why = hcl_printf(h, "\"%.40s\" is no %s", s, *tag ? strrchr(tag, ':') + 1 : "string");
	if (is_tag(tag, "") || is_tag(tag, YAML_TAG("str")))
		return hcl_normal_string(h, s, len);
	if (is_tag(tag, YAML_TAG("binary")))
		return hcl_base64_bytes(h, s, len, &bytes, &n) ? hcl_normal_string(h, s, len)
							       : NULL;
	if (is_tag(tag, YAML_TAG("bool")) && (word == MEANS_TRUE || word == MEANS_FALSE))
		return word_value(h, word);
	if (is_tag(tag, YAML_TAG("float")) || is_tag(tag, YAML_TAG("int")))
		v = read_number(h, s, len);
	if (is_tag(tag, YAML_TAG("timestamp")) && strlen(s) == len && read_timestamp(s, &t))
		v = hcl_time_text(h, &t);
	if (is_tag(tag, YAML_TAG("null")))
		v = hcl_null(h, &hcl_type_any);
	return v;
}

static bool
is_known_tag(const char *tag)
{
	static const char *const tags[] = { "", YAML_TAG("str"), YAML_TAG("bool"), YAML_TAG("int"),
		YAML_TAG("float"), YAML_TAG("null"), YAML_TAG("timestamp"), YAML_TAG("binary") };

	for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++)
		if (strcmp(tags[i], tag) == 0)
			return true;
	return false;
}

/* What the text means by itself: a word, a number or a timestamp. NULL if it is none of these. */
static struct hcl_value *
implied_value(struct hcl *h, const char *tag, const char *s, size_t len, const char **ret_why)
{
	enum meaning word = find_word(s);
	struct hcl_value *v = NULL;
	struct hcl_time t;

	if (word != MEANS_NOTHING)
		return word_value(h, word);
	if (!*tag && (strcmp(s, ".nan") == 0 || strcmp(s, ".NaN") == 0 || strcmp(s, ".NAN") == 0)) {
		*ret_why = "a number must not be NaN";
		return NULL;
	}
	if (*s == '.')
		return hcl_parse_number(h, s, len);
	if (!isdigit((unsigned char)*s) && *s != '+' && *s != '-')
		return NULL;
	if ((!*tag || is_tag(tag, YAML_TAG("timestamp"))) && read_timestamp(s, &t))
		return hcl_time_text(h, &t);
	if (is_number(s)) {
		v = read_number(h, s, len);
		if (!v)
			*ret_why = hcl_printf(h, "the number %.40s is too large", s);
	}
	return v;
}

struct hcl_value *
hcl_yaml_scalar(
    struct hcl *h, const char *tag, const char *s, size_t len, bool quoted, const char **ret_why)
{
	static const char hints[] = "+-0123456789yYnNtTfFoO~.";
	bool hinted = len == 0 || (*s && strchr(hints, *s));
	struct hcl_value *v;

	*ret_why = NULL;
	hcl_count_bytes(h, len);
	if (!is_known_tag(tag)) {
		*ret_why = hcl_printf(h, "unknown tag \"%.40s\"", tag);
		return NULL;
	}
	if (hinted && !is_tag(tag, YAML_TAG("str")) && !is_tag(tag, YAML_TAG("binary"))) {
		if (quoted)
			return hcl_normal_string(h, s, len);
		v = strlen(s) == len ? implied_value(h, tag, s, len, ret_why) : NULL;
		if (v || *ret_why)
			return v;
	}
	return tagged_value(h, tag, s, len, ret_why);
}
