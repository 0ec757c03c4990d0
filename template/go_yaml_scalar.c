/* SPDX-License-Identifier: Apache-2.0 */
/* go_yaml_scalar.c: what scalars of YAML mean: booleans of YAML 1.1, numbers as Go's literals.
 * Timestamps stay strings where they are read, but cannot be written as plain strings. Runs in:
 * template-renderer. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "template/go_text.h"
#include "template/go_yaml.h"

static bool
find_word(const char *s, size_t len, struct go_value *ret)
{
	static const struct {
		const char *words;
		char meaning;
	} lists[] = { { "y Y yes Yes YES true True TRUE on On ON", 't' },
		{ "n N no No NO false False FALSE off Off OFF", 'f' }, { "~ null Null NULL", 'n' },
		{ ".nan .NaN .NAN", '?' }, { ".inf .Inf .INF +.inf +.Inf +.INF", '+' },
		{ "-.inf -.Inf -.INF", '-' } };

	if (len == 0) {
		*ret = go_nothing;
		return true;
	}
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
		for (const char *word = lists[i].words; *word;) {
			size_t n = strcspn(word, " ");

			if (n == len && memcmp(word, s, n) == 0) {
				char m = lists[i].meaning;

				*ret = m == 't' || m == 'f' ? go_bool(m == 't')
				       : m == 'n'           ? go_nothing
				       : m == '?'           ? go_float(NAN)
				       : m == '+'           ? go_float(INFINITY)
							    : go_float(-INFINITY);
				return true;
			}
			word += n;
			word += *word == ' ';
		}
	return false;
}

/* [-+]?(.5|5|5.|5.5)([eE][-+]?5)? */
static bool
is_float(const char *s)
{
	size_t whole, fraction = 0;

	s += *s == '-' || *s == '+';
	whole = strspn(s, "0123456789");
	s += whole;
	if (*s == '.') {
		fraction = strspn(++s, "0123456789");
		s += fraction;
	}
	if (whole == 0 && fraction == 0)
		return false;
	if (*s == 'e' || *s == 'E') {
		s++;
		s += *s == '-' || *s == '+';
		whole = strspn(s, "0123456789");
		if (whole == 0)
			return false;
		s += whole;
	}
	return *s == '\0';
}

static bool
read_number(struct arena *a, const char *s, size_t len, struct go_value *ret)
{
	char *plain = arena_alloc(a, len + 1);
	size_t n = 0;
	int64_t i;
	uint64_t u;
	double f;

	for (size_t k = 0; k < len; k++)
		if (s[k] != '_')
			plain[n++] = s[k];
	if (strlen(plain) != n)
		return false;
	if (go_parse_int(plain, n, 0, &i) == 0)
		*ret = go_int(i);
	else if (go_parse_uint(plain, n, 0, &u) == 0)
		*ret = go_uint64(u);
	else if (is_float(plain) && go_parse_float(a, plain, n, &f) == 0)
		*ret = go_float(f);
	else
		return false;
	return true;
}

static size_t
count_digits(const char *s)
{
	return strspn(s, "0123456789");
}

/* N digits of a part of a date, in [least, most]. */
static bool
take_part(const char **s, int least, int most)
{
	size_t n = count_digits(*s);
	int value = 0;

	if (n < 1 || n > 2)
		return false;
	for (size_t i = 0; i < n; i++)
		value = 10 * value + ((*s)[i] - '0');
	*s += n;
	return value >= least && value <= most;
}

/* 2006-1-2, 2006-1-2T15:4:5.9Z, 2006-1-2 15:4:5.9 */
static bool
is_timestamp(const char *s)
{
	char separator;

	if (count_digits(s) != 4 || s[4] != '-')
		return false;
	s += 5;
	if (!take_part(&s, 1, 12) || *s++ != '-' || !take_part(&s, 1, 31))
		return false;
	if (!*s)
		return true;
	separator = *s++;
	if ((separator != 'T' && separator != 't' && separator != ' ') || !take_part(&s, 0, 23) ||
	    *s++ != ':' || !take_part(&s, 0, 59) || *s++ != ':' || !take_part(&s, 0, 59))
		return false;
	if ((*s == '.' || *s == ',') && count_digits(s + 1) > 0)
		s += 1 + count_digits(s + 1);
	if (separator == ' ' || *s == 'Z')
		return separator == ' ' ? *s == '\0' : s[1] == '\0';
	if (*s != '+' && *s != '-')
		return false;
	return strlen(s) == 6 && s[3] == ':' && count_digits(s + 1) == 2 &&
	       count_digits(s + 4) == 2;
}

bool
go_yaml_is_string(struct arena *a, const char *s, size_t len, struct go_value *ret)
{
	double f;

	if (find_word(s, len, ret))
		return false;
	*ret = go_string(s, len);
	if (*s == '.') {
		if (go_parse_float(a, s, len, &f) < 0)
			return true;
		*ret = go_float(f);
		return false;
	}
	if (*s != '+' && *s != '-' && !isdigit((unsigned char)*s))
		return true;
	if (is_timestamp(arena_strndup(a, s, len)))
		return false;
	return !read_number(a, s, len, ret);
}
