/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.c: translates regular expressions from the syntax of Go's package regexp to that of the
 * library RE2, which knows fewer names of characters, has no (?<name>…), and has \C, which Go does
 * not. Names of groups are kept apart. Runs in: cli, job-parser, template-renderer.
 */
#include "lang/pattern.h"

#include <ctype.h>
#include <string.h>

struct translator {
	struct arena *arena;
	const char *s;
	size_t at, len;
	struct pattern *pattern;
	size_t n_groups;
	const char *why;
};

/* Appends the next bytes as they are. */
static void
copy(struct translator *t, size_t n)
{
	if (n > t->len - t->at)
		n = t->len - t->at;
	text_bytes(&t->pattern->text, t->s + t->at, n);
	t->at += n;
}

static bool
next_is(const struct translator *t, const char *s)
{
	size_t n = strlen(s);

	return t->len - t->at >= n && memcmp(t->s + t->at, s, n) == 0;
}

/* The number of bytes until after the next text `end` behind the first two, or 0 if there is none.
 */
static size_t
length_with(const struct translator *t, const char *end)
{
	const char *s = t->s + t->at;
	const char *found = memmem(s + 2, t->len - t->at - 2, end, strlen(end));

	return found ? (size_t)(found - s) + strlen(end) : 0;
}

/* \Q…\E, or until the end. */
static void
copy_quoted(struct translator *t)
{
	size_t n = length_with(t, "\\E");

	copy(t, n > 0 ? n : t->len - t->at);
}

static void
translate_property(struct translator *t, bool inside)
{
	size_t n = pattern_property(&t->pattern->text, t->s + t->at, t->len - t->at, inside);

	t->at += n;
	if (n == 0)
		t->why = "unknown category or script of characters";
}

/* An escape inside or outside of a set. */
static void
translate_escape(struct translator *t, bool inside)
{
	if (next_is(t, "\\p") || next_is(t, "\\P"))
		translate_property(t, inside);
	else if (!inside && next_is(t, "\\C"))
		t->why = "unknown escape";
	else if (!inside && next_is(t, "\\Q"))
		copy_quoted(t);
	else
		copy(t, 2);
}

/* [a-z\d[:alpha:]]: a bracket is a member of the set if it is the first one. */
static void
translate_set(struct translator *t)
{
	copy(t, next_is(t, "[^") ? 2 : 1);
	if (next_is(t, "]"))
		copy(t, 1);
	while (t->at < t->len && !t->why && !next_is(t, "]")) {
		size_t name = next_is(t, "[:") ? length_with(t, ":]") : 0;

		arena_step(t->arena, 1);
		if (name > 0)
			copy(t, name);
		else if (next_is(t, "\\"))
			translate_escape(t, true);
		else
			copy(t, 1);
	}
	if (!t->why)
		copy(t, 1);
}

/* (?P<name> or (?<name> becomes ( */
static void
translate_name(struct translator *t)
{
	const char *name = t->s + t->at + (next_is(t, "(?P") ? 4 : 3);
	struct pattern_name *x = arena_new(t->arena, struct pattern_name);

	x->group = ++t->n_groups;
	x->name = name;
	while (isalnum((unsigned char)name[x->len]) || name[x->len] == '_')
		x->len++;
	if (x->len == 0 || name[x->len] != '>')
		t->why = "a group has a wrong name";
	STAILQ_INSERT_TAIL(&t->pattern->names, x, entry);
	text_add(&t->pattern->text, "(");
	t->at = (size_t)(name + x->len - t->s) + 1;
}

/* {n}, {n,} or {n,m} with a number that RE2 does not read, so that it would take it as text. */
static bool
is_long_repeat(const struct translator *t)
{
	const char *s = t->s + t->at;
	size_t n = *s == '{' ? strspn(s + 1, "0123456789,") : 0;

	return n > 9 && s[1 + n] == '}';
}

static void
translate_token(struct translator *t)
{
	if (next_is(t, "\\")) {
		translate_escape(t, false);
	} else if (next_is(t, "[")) {
		translate_set(t);
	} else if (next_is(t, "(?P<") || next_is(t, "(?<")) {
		translate_name(t);
	} else if (is_long_repeat(t)) {
		t->why = "a repetition is larger than 1000";
	} else {
		t->n_groups += next_is(t, "(") && !next_is(t, "(?");
		copy(t, 1);
	}
}

const char *
pattern_translate(
    struct arena *arena, const char *s, size_t len, struct pattern *ret, size_t *ret_at)
{
	/* A NUL at the end stops the readers of names. */
	struct translator t = {
		.arena = arena, .s = arena_strndup(arena, s, len), .len = len, .pattern = ret
	};

	*ret = (struct pattern){ .text.arena = arena };
	STAILQ_INIT(&ret->names);
	text_add(&ret->text, "");
	while (t.at < t.len && !t.why) {
		arena_step(arena, 1);
		*ret_at = t.at;
		translate_token(&t);
	}
	return t.why;
}
