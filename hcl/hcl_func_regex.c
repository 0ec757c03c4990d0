/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_regex.c: replaces matches of a regular expression, with PCRE2 within the limits of the
 * document. Runs in: cli, job-parser. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include <unictype.h>
#include <unistr.h>

#include "hcl/hcl_func.h"
#include "hcl/hcl_normal.h"
#include "hcl/hcl_pattern.h"

#define OPTIONS                                                                                    \
	(PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_CIRCUMFLEX |            \
	    PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT)
#define NESTED_MAX     1000
#define CHARS_PER_STEP 32
#define GROUP_MAX      100000000 /* larger numbers in a replacement are names, as in the original */

struct regex {
	struct hcl_call *c;
	struct hcl_pattern pattern;
	pcre2_code *code;
	pcre2_match_context *limits;
	pcre2_match_data *data;
	const char *s;
	size_t len, last; /* last: where the match was at its last step */
	struct hcl_text out;
};

/* All memory of PCRE2 is in the arena, so that a limit may end a match anywhere. */
static void *
take_memory(size_t size, void *h)
{
	return hcl_alloc(h, size);
}

static void
keep_memory(void *memory, void *h)
{
	(void)memory;
	(void)h;
}

/* Called before each part of a pattern is matched. The length of the previous match is the distance
 * between the positions of two calls. */
static int
on_step(pcre2_callout_block *at, void *regex)
{
	struct regex *r = regex;
	size_t distance = at->current_position > r->last ? at->current_position - r->last
							 : r->last - at->current_position;

	hcl_step(r->c->h, 1 + distance / CHARS_PER_STEP);
	r->last = at->current_position;
	return 0;
}

static void
compile(struct regex *r, const struct hcl_value *text)
{
	struct hcl *h = r->c->h;
	pcre2_general_context *memory = pcre2_general_context_create(take_memory, keep_memory, h);
	pcre2_compile_context *bounds = pcre2_compile_context_create(memory);
	const char *why;
	size_t at = 0;
	int code;

	hcl_count_bytes(h, 16 * text->len);
	why = hcl_pattern_translate(h, text->string, text->len, &r->pattern, &at);
	if (why)
		hcl_refuse_argument(
		    r->c, 1, "wrong pattern \"%.80s\": %s, at byte %zu", text->string, why, at);
	(void)pcre2_set_parens_nest_limit(bounds, NESTED_MAX);
	(void)pcre2_set_newline(bounds, PCRE2_NEWLINE_LF);
	r->code =
	    pcre2_compile((PCRE2_SPTR)r->pattern.text, r->pattern.len, OPTIONS, &code, &at, bounds);
	if (!r->code) {
		unsigned char sentence[128];

		(void)pcre2_get_error_message(code, sentence, sizeof sentence);
		hcl_refuse_argument(
		    r->c, 1, "wrong pattern \"%.80s\": %s", text->string, (const char *)sentence);
	}
	r->limits = pcre2_match_context_create(memory);
	r->data = pcre2_match_data_create_from_pattern(r->code, memory);
	(void)pcre2_set_callout(r->limits, on_step, r);
}

static bool
find_match(struct regex *r, size_t from, size_t **ret_groups)
{
	int n;

	r->last = from;
	hcl_step(r->c->h, 1);
	n = pcre2_match(
	    r->code, (PCRE2_SPTR)r->s, r->len, from, PCRE2_NO_UTF_CHECK, r->data, r->limits);
	if (n == PCRE2_ERROR_NOMATCH)
		return false;
	if (n <= 0)
		hcl_refuse_argument(r->c, 1, "the pattern has too many ways through the text");
	*ret_groups = pcre2_get_ovector_pointer(r->data);
	hcl_count_bytes(r->c->h, (*ret_groups)[1] > from ? (*ret_groups)[1] - from : 0);
	return true;
}

static void
add_group(struct regex *r, const size_t *groups, size_t i)
{
	if (i <= r->pattern.n_groups && groups[2 * i] != PCRE2_UNSET)
		hcl_text_bytes(&r->out, r->s + groups[2 * i], groups[2 * i + 1] - groups[2 * i]);
}

/* Of groups with one name, the first that matched. */
static void
add_named_group(struct regex *r, const size_t *groups, const char *name, size_t len)
{
	for (size_t i = 1; i <= r->pattern.n_groups; i++) {
		const char *other = r->pattern.names[i];

		if (other && strlen(other) == len && memcmp(other, name, len) == 0 &&
		    groups[2 * i] != PCRE2_UNSET) {
			add_group(r, groups, i);
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
expand_group(struct regex *r, const size_t *groups, const char *s, size_t len)
{
	bool braces = len > 0 && *s == '{';
	const char *name = s + braces;
	size_t n = name_length(name, len - braces), number;

	if (n == 0 || (braces && (n + 1 >= len || name[n] != '}')))
		return 0;
	if (is_group_number(name, n, &number))
		add_group(r, groups, number);
	else
		add_named_group(r, groups, name, n);
	return n + (braces ? 2 : 0);
}

static void
expand(struct regex *r, const size_t *groups, const struct hcl_value *by)
{
	const char *s = by->string, *dollar;
	size_t left = by->len, n;

	while ((dollar = memchr(s, '$', left))) {
		hcl_step(r->c->h, 1);
		hcl_text_bytes(&r->out, s, (size_t)(dollar - s));
		left -= (size_t)(dollar - s) + 1;
		s = dollar + 1;
		if (left > 0 && *s == '$')
			n = 1;
		else
			n = expand_group(r, groups, s, left);
		if (n == 0 || *s == '$')
			hcl_text_add(&r->out, "$");
		s += n;
		left -= n;
	}
	hcl_text_bytes(&r->out, s, left);
}

/* An empty match right after another match is not replaced. */
static void
replace_all(struct regex *r, const struct hcl_value *by)
{
	size_t done = 0, from = 0, *m, width;
	ucs4_t ch;

	while (from <= r->len && find_match(r, from, &m)) {
		hcl_text_bytes(&r->out, r->s + done, m[0] - done);
		if (m[1] > done || m[0] == 0)
			expand(r, m, by);
		done = m[1];
		width = from < r->len
			    ? (size_t)u8_mbtouc(&ch, (const uint8_t *)r->s + from, r->len - from)
			    : 1;
		from = from + width > m[1] ? from + width : m[1];
	}
	hcl_text_bytes(&r->out, r->s + done, r->len - done);
}

struct hcl_value *
hcl_fn_regex_replace(struct hcl_call *c)
{
	struct regex *r = hcl_new_object(c->h, struct regex);

	*r = (struct regex){ .c = c, .s = c->args[0]->string, .len = c->args[0]->len };
	r->out.h = c->h;
	if (u8_check((const uint8_t *)r->s, r->len))
		hcl_refuse_argument(c, 0, "the text is not UTF-8");
	compile(r, c->args[1]);
	replace_all(r, c->args[2]);
	return hcl_text_value(&r->out);
}
