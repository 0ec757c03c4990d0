/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_func_regex.c: regular expressions. Runs in: template-renderer. */
#include <string.h>
#include <unistr.h>

#include "lang/regex.h"
#include "template/go_strings.h"
#include "template/go_text.h"
#include "template/tpl_functions.h"
#include "template/tpl_run.h"

/* A compiled expression, which is used again: each needs more memory than its text. */
struct tpl_regex {
	struct go_value pattern;
	struct regex *regex;
	SLIST_ENTRY(tpl_regex) entry;
};

/* NULL: the expression is wrong. */
static struct regex *
find_compiled(struct go_call *c, struct go_value pattern, const char **ret_why)
{
	struct tpl_regex *x;

	SLIST_FOREACH (x, &c->run->regexes, entry) {
		arena_step(c->arena, 1);
		if (go_compare_text(x->pattern, pattern) == 0)
			return x->regex;
	}
	x = arena_new(c->arena, struct tpl_regex);
	x->pattern = pattern;
	x->regex = regex_compile(c->arena, pattern.s, pattern.len, ret_why);
	if (x->regex)
		SLIST_INSERT_HEAD(&c->run->regexes, x, entry);
	return x->regex;
}

static struct regex *
compile(struct go_call *c, struct go_value pattern)
{
	const char *why;
	struct regex *r = find_compiled(c, pattern, &why);

	if (!r)
		go_call_fail(c, "error parsing regexp: %s: `" TPL_VALUE("%.*s") "`", why,
		    pattern.len < 80 ? (int)pattern.len : 80, pattern.s);
	return r;
}

static void
check_text(struct go_call *c, struct go_value s)
{
	if (u8_check((const uint8_t *)s.s, s.len))
		go_call_fail(c, "the text is not UTF-8");
}

bool
tpl_regex_matches(struct go_call *c, struct go_value pattern, const char *s)
{
	size_t at[2];

	return regex_find(compile(c, pattern), s, strlen(s), 0, at);
}

static struct go_value
replace(
    struct go_call *c, struct go_value pattern, struct go_value s, struct go_value by, bool literal)
{
	struct regex *r = compile(c, pattern);
	struct text t = { .arena = c->arena };

	check_text(c, s);
	regex_replace_all(r, s.s, s.len, by.s, by.len, literal, &t);
	return go_text_value(&t);
}

struct go_value
tpl_fn_regex_replace_all(struct go_call *c)
{
	return replace(c, c->args[0], c->args[2], c->args[1], false);
}

/* sprig's takes the text before the replacement. */
struct go_value
tpl_fn_sprig_regex_replace(struct go_call *c)
{
	return replace(c, c->args[0], c->args[1], c->args[2], false);
}

struct go_value
tpl_fn_sprig_regex_replace_literal(struct go_call *c)
{
	return replace(c, c->args[0], c->args[1], c->args[2], true);
}

/* Bytes that are no UTF-8 match as U+FFFD. */
static bool
matches(struct go_call *c, struct regex *r, struct go_value s)
{
	struct text t = { .arena = c->arena };
	size_t n, at[2];

	if (!u8_check((const uint8_t *)s.s, s.len))
		return regex_find(r, s.s, s.len, 0, at);
	for (size_t i = 0; i < s.len; i += n)
		go_add_char(&t, go_char(s.s + i, s.len - i, &n));
	return regex_find(r, t.text, t.len, 0, at);
}

struct go_value
tpl_fn_regex_match(struct go_call *c)
{
	return go_bool(matches(c, compile(c, c->args[0]), c->args[1]));
}

/* sprig's match with a wrong pattern is false. */
struct go_value
tpl_fn_sprig_regex_match(struct go_call *c)
{
	const char *why;
	struct regex *r = find_compiled(c, c->args[0], &why);

	return go_bool(r && matches(c, r, c->args[1]));
}

struct go_value
tpl_fn_sprig_regex_find(struct go_call *c)
{
	struct regex *r = compile(c, c->args[0]);
	size_t at[2];

	check_text(c, c->args[1]);
	if (!regex_find(r, c->args[1].s, c->args[1].len, 0, at))
		return go_text("");
	return go_string(c->args[1].s + at[0], at[1] - at[0]);
}

/* All matches, as the places where they begin and end: an empty one right after another is none. */
static size_t *
find_all(struct go_call *c, struct regex *r, struct go_value s, int64_t most, size_t *ret_n)
{
	struct text places = { .arena = c->arena };
	size_t n = 0, from = 0, end = (size_t)-1, at[2];

	while ((most < 0 || (int64_t)n < most) && from <= s.len &&
	       regex_find(r, s.s, s.len, from, at)) {
		if (at[1] > at[0] || at[0] != end) {
			text_bytes(&places, (const char *)at, sizeof at);
			n++;
		}
		end = at[1];
		from = regex_next(s.s, s.len, from, at[1]);
	}
	*ret_n = n;
	return (size_t *)places.text;
}

struct go_value
tpl_fn_sprig_regex_find_all(struct go_call *c)
{
	struct regex *r = compile(c, c->args[0]);
	struct go_value s = c->args[1], found = { .type = &go_type_strings };
	size_t n, *at;

	check_text(c, s);
	at = find_all(c, r, s, c->args[2].i, &n);
	for (size_t i = 0; i < n; i++)
		found = go_append(
		    c->arena, found, go_string(s.s + at[2 * i], at[2 * i + 1] - at[2 * i]));
	return found;
}

struct go_value
tpl_fn_sprig_regex_split(struct go_call *c)
{
	struct regex *r = compile(c, c->args[0]);
	struct go_value s = c->args[1], parts = { .type = &go_type_strings };
	int64_t most = c->args[2].i;
	size_t n, *at, from = 0, end = 0;

	check_text(c, s);
	if (most == 0)
		return parts;
	if (c->args[0].len > 0 && s.len == 0)
		return go_append(c->arena, parts, go_text(""));
	at = find_all(c, r, s, most, &n);
	for (size_t i = 0; i < n && (most < 0 || (int64_t)parts.list.n != most - 1); i++) {
		end = at[2 * i];
		if (at[2 * i + 1] != 0)
			parts = go_append(c->arena, parts, go_string(s.s + from, end - from));
		from = at[2 * i + 1];
	}
	if (end != s.len)
		parts = go_append(c->arena, parts, go_string(s.s + from, s.len - from));
	return parts;
}

struct go_value
tpl_fn_sprig_regex_quote(struct go_call *c)
{
	struct text t = { .arena = c->arena };

	text_add(&t, "");
	for (size_t i = 0; i < c->args[0].len; i++) {
		if (c->args[0].s[i] && strchr("\\.+*?()|[]{}^$", c->args[0].s[i]))
			text_add(&t, "\\");
		text_bytes(&t, c->args[0].s + i, 1);
	}
	return go_text_value(&t);
}
