/* SPDX-License-Identifier: Apache-2.0 */
/* regex.c: matches of a regular expression, with PCRE2. Runs in: cli, job-parser,
 * template-renderer. */
#include "lang/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include <unictype.h>
#include <unistr.h>

#include "lang/pattern.h"

#define OPTIONS                                                                                    \
	(PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_CIRCUMFLEX |            \
	    PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT)
#define NESTED_MAX     1000
#define CHARS_PER_STEP 32
#define GROUP_MAX      100000000 /* larger numbers in a replacement are names, as in the original */

struct regex {
	struct arena *arena;
	struct pattern pattern;
	pcre2_code *code;
	pcre2_match_context *limits;
	pcre2_match_data *data;
	const char *s;
	size_t last; /* where the match was at its last step */
};

/* All memory of PCRE2 is in the arena, so that a limit may end a match anywhere. */
static void *
take_memory(size_t size, void *arena)
{
	return arena_alloc(arena, size);
}

static void
keep_memory(void *memory, void *arena)
{
	(void)memory;
	(void)arena;
}

/* Called before each part of a pattern is matched. The length of the previous match is the distance
 * between the positions of two calls. */
static int
on_step(pcre2_callout_block *at, void *regex)
{
	struct regex *r = regex;
	size_t distance = at->current_position > r->last ? at->current_position - r->last
							 : r->last - at->current_position;

	arena_step(r->arena, 1 + distance / CHARS_PER_STEP);
	r->last = at->current_position;
	return 0;
}

struct regex *
regex_compile(struct arena *arena, const char *s, size_t len, const char **ret_why)
{
	pcre2_general_context *memory =
	    pcre2_general_context_create(take_memory, keep_memory, arena);
	pcre2_compile_context *bounds = pcre2_compile_context_create(memory);
	struct regex *r = arena_new(arena, struct regex);
	unsigned char sentence[128];
	size_t at = 0;
	int code;

	r->arena = arena;
	arena_count_bytes(arena, 16 * len);
	*ret_why = pattern_translate(arena, s, len, &r->pattern, &at);
	if (*ret_why) {
		*ret_why = arena_printf(arena, "%s, at byte %zu", *ret_why, at);
		return NULL;
	}
	(void)pcre2_set_parens_nest_limit(bounds, NESTED_MAX);
	(void)pcre2_set_newline(bounds, PCRE2_NEWLINE_LF);
	r->code =
	    pcre2_compile((PCRE2_SPTR)r->pattern.text, r->pattern.len, OPTIONS, &code, &at, bounds);
	if (!r->code) {
		(void)pcre2_get_error_message(code, sentence, sizeof sentence);
		*ret_why = arena_printf(arena, "%s", (const char *)sentence);
		return NULL;
	}
	r->limits = pcre2_match_context_create(memory);
	r->data = pcre2_match_data_create_from_pattern(r->code, memory);
	(void)pcre2_set_callout(r->limits, on_step, r);
	return r;
}

int
regex_find(struct regex *r, const char *s, size_t len, size_t from, const size_t **ret_groups)
{
	int n;

	r->s = s;
	r->last = from;
	arena_step(r->arena, 1);
	n = pcre2_match(r->code, (PCRE2_SPTR)s, len, from, PCRE2_NO_UTF_CHECK, r->data, r->limits);
	if (n == PCRE2_ERROR_NOMATCH)
		return 0;
	if (n <= 0)
		return -1;
	*ret_groups = pcre2_get_ovector_pointer(r->data);
	arena_count_bytes(r->arena, (*ret_groups)[1] > from ? (*ret_groups)[1] - from : 0);
	return 1;
}

static void
add_group(struct regex *r, const size_t *groups, size_t i, struct text *out)
{
	if (i <= r->pattern.n_groups && groups[2 * i] != PCRE2_UNSET)
		text_bytes(out, r->s + groups[2 * i], groups[2 * i + 1] - groups[2 * i]);
}

/* Of groups with one name, the first that matched. */
static void
add_named_group(
    struct regex *r, const size_t *groups, const char *name, size_t len, struct text *out)
{
	for (size_t i = 1; i <= r->pattern.n_groups; i++) {
		const char *other = r->pattern.names[i];

		if (other && strlen(other) == len && memcmp(other, name, len) == 0 &&
		    groups[2 * i] != PCRE2_UNSET) {
			add_group(r, groups, i, out);
			return;
		}
	}
}

/* The length of the letters, digits and underscores at s. */
static size_t
name_length(const char *s, size_t len)
{
	size_t n = 0;
	ucs4_t ch;

	while (n < len) {
		int some = u8_mbtoucr(&ch, (const uint8_t *)s + n, len - n);

		if (some <= 0 || !(ch == '_' || uc_is_general_category(ch, UC_LETTER) ||
				     uc_is_general_category(ch, UC_DECIMAL_DIGIT_NUMBER)))
			break;
		n += (size_t)some;
	}
	return n;
}

static bool
is_group_number(const char *name, size_t len, size_t *ret)
{
	*ret = 0;
	if (len > 1 && *name == '0')
		return false;
	for (size_t i = 0; i < len; i++) {
		if (name[i] < '0' || name[i] > '9' || *ret >= GROUP_MAX)
			return false;
		*ret = 10 * *ret + (size_t)(name[i] - '0');
	}
	return true;
}

/* $1, $name, ${1} or ${name} after the dollar. Returns its length, or 0 if it is none. */
static size_t
expand_group(struct regex *r, const size_t *groups, const char *s, size_t len, struct text *out)
{
	bool braces = len > 0 && *s == '{';
	const char *name = s + braces;
	size_t n = name_length(name, len - braces), number;

	if (n == 0 || (braces && (n + 1 >= len || name[n] != '}')))
		return 0;
	if (is_group_number(name, n, &number))
		add_group(r, groups, number, out);
	else
		add_named_group(r, groups, name, n, out);
	return n + (braces ? 2 : 0);
}

static void
expand(struct regex *r, const size_t *groups, const char *s, size_t left, struct text *out)
{
	const char *dollar;
	size_t n;

	while ((dollar = memchr(s, '$', left))) {
		arena_step(r->arena, 1);
		text_bytes(out, s, (size_t)(dollar - s));
		left -= (size_t)(dollar - s) + 1;
		s = dollar + 1;
		if (left > 0 && *s == '$')
			n = 1;
		else
			n = expand_group(r, groups, s, left, out);
		if (n == 0 || *s == '$')
			text_add(out, "$");
		s += n;
		left -= n;
	}
	text_bytes(out, s, left);
}

size_t
regex_next(const char *s, size_t len, size_t from, size_t m_end)
{
	ucs4_t ch;
	size_t width =
	    from < len ? (size_t)u8_mbtouc(&ch, (const uint8_t *)s + from, len - from) : 1;

	return from + width > m_end ? from + width : m_end;
}

/* An empty match right after another match is not replaced. */
int
regex_replace_all(struct regex *r, const char *s, size_t len, const char *by, size_t by_len,
    bool literal, struct text *out)
{
	size_t done = 0, from = 0;
	const size_t *m;
	int found;

	while (from <= len) {
		found = regex_find(r, s, len, from, &m);
		if (found < 0)
			return -1;
		if (found == 0)
			break;
		text_bytes(out, s + done, m[0] - done);
		if (m[1] > done || m[0] == 0) {
			if (literal)
				text_bytes(out, by, by_len);
			else
				expand(r, m, by, by_len, out);
		}
		done = m[1];
		from = regex_next(s, len, from, m[1]);
	}
	text_bytes(out, s + done, len - done);
	return 0;
}
