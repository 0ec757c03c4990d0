// SPDX-License-Identifier: Apache-2.0
/* version_match.c: reads and compares versions. Nomad's results are matched, also for versions that
 * are not Semantic Versioning ("1.2.3.4", "5.10.0amd64"). Runs in: supervisor. */
#include "supervisor/server/place/version_match.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"

#define SEGMENTS_MIN 3 /* missing ones are 0 */
#define SEGMENTS_MAX 32

struct part {
	const char *text;
	size_t len;
};

struct version {
	int64_t segments[SEGMENTS_MAX];
	size_t n, given;        /* with and without those that were added as 0 */
	struct part prerelease; /* without the "-" */
};

/* The comparisons. PESSIMISTIC is "~>". */
enum relation { EQUAL, NOT_EQUAL, GREATER, LESS, GREATER_EQUAL, LESS_EQUAL, PESSIMISTIC };

struct comparison {
	enum relation relation;
	struct version version;
};

/* --- reading --- */

static bool
is_identifier(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '~';
}

/* Skips dot-separated identifiers. Returns false if one is empty. */
static bool
skip_identifiers(const char **at)
{
	for (;; (*at)++) {
		const char *begin = *at;

		while (is_identifier(**at))
			(*at)++;
		if (*at == begin)
			return false;
		if (**at != '.')
			return true;
	}
}

static bool
read_segments(const char **at, struct version *v)
{
	for (;; (*at)++) {
		char *end;

		if (!isdigit((unsigned char)**at) || v->n == SEGMENTS_MAX)
			return false;
		errno = 0;
		v->segments[v->n++] = strtoll(*at, &end, 10);
		if (errno)
			return false;
		*at = end;
		if (**at != '.')
			break;
	}
	v->given = v->n;
	while (v->n < SEGMENTS_MIN)
		v->segments[v->n++] = 0;
	return true;
}

/* The prerelease may follow the numbers without "-" unless it begins with a digit; not in a range
 * of semver. */
static bool
read_prerelease(const char **at, struct version *v, enum version_rules rules)
{
	bool dash = **at == '-';

	if (dash && is_identifier((*at)[1]))
		(*at)++;
	else if (rules == VERSION_SEMVER || !is_identifier(**at))
		return !dash;
	v->prerelease.text = *at;
	if (!skip_identifiers(at))
		return false;
	v->prerelease.len = (size_t)(*at - v->prerelease.text);
	return true;
}

/* Reads a version up to the first character that cannot belong to one. */
static bool
read_version(const char **at, struct version *v, enum version_rules rules)
{
	*v = (struct version){ 0 };
	if (**at == 'v')
		(*at)++;
	if (!read_segments(at, v) || !read_prerelease(at, v, rules))
		return false;
	if (**at != '+')
		return true;
	(*at)++; /* what is built differently is the same version */
	return skip_identifiers(at);
}

static const char *
skip_space(const char *at)
{
	return at + strspn(at, " \t\n\f\r");
}

static bool
read_comparison(const char **at, struct comparison *c, enum version_rules rules)
{
	static const struct {
		const char *sign;
		enum relation relation;
	} signs[] = { { "<=", LESS_EQUAL }, { ">=", GREATER_EQUAL }, { "!=", NOT_EQUAL },
		{ "~>", PESSIMISTIC }, { "<", LESS }, { ">", GREATER }, { "=", EQUAL } };

	*at = skip_space(*at);
	c->relation = EQUAL;
	for (size_t i = 0; i < ELEMENTSOF(signs); i++) {
		size_t len = strlen(signs[i].sign);

		if (strncmp(*at, signs[i].sign, len) != 0)
			continue;
		c->relation = signs[i].relation;
		*at += len;
		break;
	}
	if (c->relation == PESSIMISTIC && rules == VERSION_SEMVER)
		return false;
	*at = skip_space(*at);
	if (!read_version(at, &c->version, rules))
		return false;
	*at = skip_space(*at);
	return **at == '\0' || **at == ',';
}

/* --- comparing --- */

static bool
part_number(const struct part *p, int64_t *ret)
{
	*ret = 0;
	if (p->len == 0 || p->len > 18)
		return false;
	for (size_t i = 0; i < p->len; i++) {
		if (!isdigit((unsigned char)p->text[i]))
			return false;
		*ret = *ret * 10 + p->text[i] - '0';
	}
	return true;
}

static int
compare_texts(const struct part *a, const struct part *b)
{
	size_t len = a->len < b->len ? a->len : b->len;
	int r = len ? memcmp(a->text, b->text, len) : 0;

	return r ? r : (a->len > b->len) - (a->len < b->len);
}

/* A number is less than a text. A missing part is less than a number, and greater than a text. */
static int
compare_parts(const struct part *a, const struct part *b)
{
	int64_t number_a, number_b;
	bool is_a = part_number(a, &number_a), is_b = part_number(b, &number_b);

	if (compare_texts(a, b) == 0)
		return 0;
	if (a->len == 0)
		return is_b ? -1 : 1;
	if (b->len == 0)
		return is_a ? 1 : -1;
	if (is_a != is_b)
		return is_a ? -1 : 1;
	if (!is_a)
		return compare_texts(a, b) > 0 ? 1 : -1;
	return number_a > number_b ? 1 : -1;
}

/* Takes the part before the next dot off the rest. */
static struct part
next_part(struct part *rest)
{
	const char *dot = rest->len ? memchr(rest->text, '.', rest->len) : NULL;
	struct part p = { rest->text, dot ? (size_t)(dot - rest->text) : rest->len };
	size_t taken = dot ? p.len + 1 : p.len;

	rest->text += taken;
	rest->len -= taken;
	return p;
}

static int
compare_prereleases(struct part a, struct part b)
{
	int r = 0;

	if (a.len == 0 || b.len == 0)
		return (a.len == 0) - (b.len == 0);
	while (r == 0 && (a.len || b.len)) {
		struct part part_a = next_part(&a), part_b = next_part(&b);

		r = compare_parts(&part_a, &part_b);
	}
	return r;
}

static int64_t
segment(const struct version *v, size_t i)
{
	return i < v->n ? v->segments[i] : 0;
}

static bool
same_segments(const struct version *a, const struct version *b)
{
	return a->n == b->n && memcmp(a->segments, b->segments, a->n * sizeof *a->segments) == 0;
}

/* Versions of different length that are equal but for zeros are equal whatever their prereleases.
 */
static int
compare_versions(const struct version *a, const struct version *b)
{
	if (same_segments(a, b))
		return compare_prereleases(a->prerelease, b->prerelease);
	for (size_t i = 0; i < a->n || i < b->n; i++)
		if (segment(a, i) != segment(b, i))
			return segment(a, i) < segment(b, i) ? -1 : 1;
	return 0;
}

/* Whether a range with the version c may contain v at all, by their prereleases. */
static bool
prerelease_permits(const struct version *v, const struct version *c)
{
	if (v->prerelease.len == 0)
		return true;
	return c->prerelease.len > 0 && same_segments(v, c);
}

static bool
is_pessimistic(const struct version *v, const struct version *c)
{
	if ((c->prerelease.len > 0 && v->prerelease.len == 0) || compare_versions(v, c) < 0 ||
	    c->n > v->n)
		return false;
	for (size_t i = 0; i + 1 < c->given; i++)
		if (v->segments[i] != c->segments[i])
			return false;
	return c->segments[c->n - 1] <= v->segments[c->n - 1];
}

static bool
comparison_holds(const struct comparison *c, const struct version *v, enum version_rules rules)
{
	int order = compare_versions(v, &c->version);

	if (c->relation == EQUAL || c->relation == NOT_EQUAL)
		return (order == 0) == (c->relation == EQUAL);
	if (rules == VERSION_PLAIN && !prerelease_permits(v, &c->version))
		return false;
	switch (c->relation) {
	case GREATER:
		return order > 0;
	case LESS:
		return order < 0;
	case GREATER_EQUAL:
		return order >= 0;
	case LESS_EQUAL:
		return order <= 0;
	default:
		return is_pessimistic(v, &c->version);
	}
}

int
version_range_check(const char *range, enum version_rules rules, struct err *e)
{
	struct comparison c;

	for (const char *at = range;; at++) {
		if (!read_comparison(&at, &c, rules))
			return err_say(e, -EINVAL,
			    "\"%.80s\" is not a range of versions, such as \">= 1.2, < 2.0\"",
			    range);
		if (*at == '\0')
			return 0;
	}
}

bool
version_matches(const char *version, const char *range, enum version_rules rules)
{
	struct comparison c;
	struct version v;

	/* The version itself is read by the plain rules in both cases. */
	if (!read_version(&version, &v, VERSION_PLAIN) || *version != '\0')
		return false;
	for (const char *at = range;; at++) {
		if (!read_comparison(&at, &c, rules) || !comparison_holds(&c, &v, rules))
			return false;
		if (*at == '\0')
			return true;
	}
}
