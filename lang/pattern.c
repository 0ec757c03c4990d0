/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.c: translates regular expressions from the syntax of RE2, which Go's regexp package
 * has, to that of PCRE2. It accepts only what RE2 accepts; all flags are resolved but for that of
 * case. Runs in: cli, job-parser, template-renderer.
 */
#include "lang/pattern.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistr.h>

#define NESTED_MAX 100
#define REPEAT_MAX 1000 /* also of repetitions inside each other, multiplied */
#define NO_ATOM    ((size_t)-1)

struct flags {
	bool fold, multiline, dot_all, lazy;
};

/* A group that is open, or the whole pattern. */
struct level {
	struct flags flags; /* before it */
	bool fold;          /* the flag of the translation, before it */
	size_t from;        /* in the translation */
	size_t weight;      /* the largest product of repetitions inside */
};

struct translator {
	struct arena *arena;
	const char *s;
	size_t at, len;
	struct text out;
	struct flags flags;
	bool fold; /* the flag of the translation at its end */
	struct level levels[NESTED_MAX];
	size_t depth;
	/* What a repetition would apply to: where it begins in the translation, whether it is
	 * repeated itself, and the product of its repetitions. */
	size_t atom, atom_weight;
	bool atom_repeated;
	bool before_repeat, after_repeat; /* whether the token before this one, or this, repeats */
	struct pattern *pattern;
	size_t names_room;
	const char *why;
};

static bool
fail_pattern(struct translator *t, const char *why)
{
	t->why = why;
	return false;
}

/* Records the repetitions of the last atom, before another token. */
static void
note_weight(struct translator *t)
{
	if (t->atom != NO_ATOM && t->atom_weight > t->levels[t->depth].weight)
		t->levels[t->depth].weight = t->atom_weight;
}

static void
begin_atom(struct translator *t)
{
	note_weight(t);
	t->atom = t->out.len;
	t->atom_weight = 1;
	t->atom_repeated = false;
}

static void
add_atom(struct translator *t, const char *text)
{
	begin_atom(t);
	text_add(&t->out, text);
}

static void
set_fold(struct translator *t)
{
	if (t->fold != t->flags.fold)
		text_add(&t->out, t->flags.fold ? "(?i)" : "(?-i)");
	t->fold = t->flags.fold;
}

static void
add_literal(struct translator *t, uint32_t ch)
{
	set_fold(t);
	begin_atom(t);
	pattern_add_char(&t->out, ch);
}

static bool
open_group(struct translator *t, bool captures, const char *name, size_t name_len)
{
	struct pattern *p = t->pattern;
	const char **more;

	if (t->depth + 1 == NESTED_MAX)
		return fail_pattern(t, "too many groups inside each other");
	if (captures) {
		if (p->n_groups + 1 >= t->names_room) {
			t->names_room = 2 * t->names_room + 8;
			more = arena_alloc(t->arena, t->names_room * sizeof *more);
			if (p->names)
				memcpy(more, p->names, (p->n_groups + 1) * sizeof *more);
			p->names = more;
		}
		p->names[++p->n_groups] = name ? arena_strndup(t->arena, name, name_len) : NULL;
	}
	t->depth++;
	t->levels[t->depth] = (struct level){ t->flags, t->fold, t->out.len, 1 };
	text_add(&t->out, captures ? "(" : "(?:");
	t->atom = NO_ATOM;
	return true;
}

static bool
close_group(struct translator *t)
{
	struct level *level = &t->levels[t->depth];

	if (t->depth == 0)
		return fail_pattern(t, "a \")\" has no \"(\"");
	t->depth--;
	text_add(&t->out, ")");
	t->flags = level->flags;
	t->fold = level->fold;
	t->atom = level->from;
	t->atom_weight = level->weight;
	t->atom_repeated = false;
	t->at++;
	return true;
}

/* (?P<name> or (?<name> */
static bool
open_named(struct translator *t, size_t skip)
{
	const char *name = t->s + t->at + skip;
	const char *end = memchr(name, '>', t->len - t->at - skip);

	if (!end || end == name)
		return fail_pattern(t, "a group has a wrong name");
	for (const char *x = name; x < end; x++)
		if (!isalnum((unsigned char)*x) && *x != '_')
			return fail_pattern(t, "a group has a wrong name");
	t->at = (size_t)(end - t->s) + 1;
	return open_group(t, true, name, (size_t)(end - name));
}

static bool
set_flag(struct flags *flags, char ch, bool on)
{
	bool *flag = ch == 'i'   ? &flags->fold
		     : ch == 'm' ? &flags->multiline
		     : ch == 's' ? &flags->dot_all
		     : ch == 'U' ? &flags->lazy
				 : NULL;

	if (flag)
		*flag = on;
	return flag != NULL;
}

/* (?flags-flags) for the rest of the group, or (?flags-flags: for a new one. */
static bool
read_flags(struct translator *t)
{
	struct flags flags = t->flags;
	bool on = true, some = true;

	for (t->at += 2; t->at < t->len; t->at++) {
		char ch = t->s[t->at];

		if (set_flag(&flags, ch, on)) {
			some = true;
		} else if (ch == '-' && on) {
			on = false;
			some = false;
		} else if ((ch == ':' || ch == ')') && some) {
			t->at++;
			if (ch == ':' && !open_group(t, false, NULL, 0))
				return false;
			t->flags = flags;
			return true;
		} else {
			break;
		}
	}
	return fail_pattern(t, "unknown flags or kind of a group");
}

static bool
read_group(struct translator *t)
{
	const char *s = t->s + t->at;
	size_t left = t->len - t->at;

	note_weight(t);
	if (left > 4 && memcmp(s, "(?P<", 4) == 0)
		return open_named(t, 4);
	if (left > 3 && memcmp(s, "(?<", 3) == 0)
		return open_named(t, 3);
	if (left > 1 && s[1] == '?')
		return read_flags(t);
	t->at++;
	return open_group(t, true, NULL, 0);
}

/* Puts the atom into a group of its own. */
static void
wrap_atom(struct translator *t)
{
	text_add(&t->out, "(?:)");
	memmove(t->out.text + t->atom + 3, t->out.text + t->atom, t->out.len - t->atom - 4);
	memcpy(t->out.text + t->atom, "(?:", 3);
	t->out.text[t->out.len - 1] = ')';
}

/* Appends the repetition, lazy if "?" follows or the flag is set, but not for both. */
static bool
add_repeat(struct translator *t, const char *repeat, size_t len, size_t times)
{
	bool lazy = t->flags.lazy;

	t->at += len;
	if (t->at < t->len && t->s[t->at] == '?') {
		lazy = !lazy;
		t->at++;
	}
	if (t->before_repeat)
		return fail_pattern(t, "a repetition follows another one");
	if (t->atom == NO_ATOM)
		return fail_pattern(t, "there is nothing to repeat");
	t->atom_weight *= times > 0 ? times : 1;
	if (t->atom_weight > REPEAT_MAX && times > 1)
		return fail_pattern(t, "a repetition is larger than 1000");
	if (t->atom_repeated)
		wrap_atom(t);
	text_bytes(&t->out, repeat, len);
	if (lazy)
		text_add(&t->out, "?");
	t->atom_repeated = true;
	t->after_repeat = true;
	return true;
}

/* Returns the length of the number, without leading zeros; 0 if there is none. */
static size_t
read_number(const char *s, size_t len, size_t *ret)
{
	size_t n = 0;

	for (*ret = 0; n < len && isdigit((unsigned char)s[n]); n++)
		if (*ret < 100 * REPEAT_MAX)
			*ret = 10 * *ret + (size_t)(s[n] - '0');
	return n > 1 && *s == '0' ? 0 : n;
}

/* {n}, {n,} or {n,m}; what is none of these is a literal brace. */
static bool
read_braces(struct translator *t)
{
	const char *s = t->s + t->at;
	size_t left = t->len - t->at, least, most, n = 1,
	       some = read_number(s + 1, left - 1, &least);
	bool open_end = false, ok = some > 0;

	n += some;
	most = least;
	if (ok && n < left && s[n] == ',') {
		n++;
		open_end = n < left && s[n] == '}';
		if (!open_end) {
			some = read_number(s + n, left - n, &most);
			ok = some > 0;
			n += some;
		}
	}
	if (!ok || n >= left || s[n] != '}') {
		add_literal(t, '{');
		t->at++;
		return true;
	}
	if (least > REPEAT_MAX || most > REPEAT_MAX || most < least)
		return fail_pattern(t, "a repetition is larger than 1000, or from more to less");
	return add_repeat(t, s, n + 1, open_end ? least : most);
}

/* \Q…\E: the text as it is. */
static bool
read_quoted(struct translator *t)
{
	const char *s = t->s + t->at + 2;
	size_t left = t->len - t->at - 2;
	const char *end = memmem(s, left, "\\E", 2);
	size_t len = end ? (size_t)(end - s) : left;
	ucs4_t ch;

	for (size_t i = 0; i < len;) {
		int n = u8_mbtoucr(&ch, (const uint8_t *)s + i, len - i);

		add_literal(t, ch);
		i += n > 0 ? (size_t)n : 1;
	}
	t->at += 2 + len + (end ? 2 : 0);
	return true;
}

static bool
read_backslash(struct translator *t)
{
	const char *s = t->s + t->at, *set, *why = NULL;
	size_t left = t->len - t->at, n;
	uint32_t ch;

	if (left > 1 && s[1] == 'Q')
		return read_quoted(t);
	if (left > 1 && strchr("AbBz", s[1])) {
		char text[] = { '(', '?', ':', '\\', s[1], ')', '\0' };

		add_atom(t, text);
		t->at += 2;
		return true;
	}
	set = pattern_set(t->arena, s, left, t->flags.fold, false, &n, &why);
	if (set) {
		set_fold(t);
		add_atom(t, set);
		t->at += n;
		return true;
	}
	if (why)
		return fail_pattern(t, why);
	n = pattern_escape(s, left, &ch);
	if (n == 0)
		return fail_pattern(t, "unknown escape");
	add_literal(t, ch);
	t->at += n;
	return true;
}

static bool
read_class(struct translator *t)
{
	const char *why = NULL;
	size_t n;

	set_fold(t);
	begin_atom(t);
	n = pattern_class(&t->out, t->s + t->at + 1, t->len - t->at - 1, t->flags.fold, &why);
	if (n == 0)
		return fail_pattern(t, why);
	t->at += 1 + n;
	return true;
}

static bool
read_plain(struct translator *t)
{
	ucs4_t ch;
	int n = u8_mbtoucr(&ch, (const uint8_t *)t->s + t->at, t->len - t->at);

	if (n <= 0)
		return fail_pattern(t, "this is no UTF-8");
	add_literal(t, ch);
	t->at += (size_t)n;
	return true;
}

static bool
add_assertion(struct translator *t, const char *text)
{
	add_atom(t, text);
	t->at++;
	return true;
}

static bool
read_repeat_sign(struct translator *t)
{
	return add_repeat(t, t->s + t->at, 1, 1);
}

static bool
read_token(struct translator *t)
{
	char ch = t->s[t->at];

	if (ch == '*' || ch == '+' || ch == '?')
		return read_repeat_sign(t);
	if (ch == '{')
		return read_braces(t);
	switch (ch) {
	case '(':
		return read_group(t);
	case ')':
		note_weight(t);
		return close_group(t);
	case '|':
		note_weight(t);
		text_add(&t->out, "|");
		t->at++;
		t->atom = NO_ATOM;
		return true;
	case '^':
		return add_assertion(t, t->flags.multiline ? "(?m:^)" : "(?:\\A)");
	case '$':
		return add_assertion(t, t->flags.multiline ? "(?m:$)" : "(?:\\z)");
	case '.':
		return add_assertion(t, t->flags.dot_all ? "(?s:.)" : "[^\\n]");
	case '[':
		return read_class(t);
	case '\\':
		return read_backslash(t);
	default:
		return read_plain(t);
	}
}

const char *
pattern_translate(
    struct arena *arena, const char *s, size_t len, struct pattern *ret, size_t *ret_at)
{
	struct translator *t = arena_new(arena, struct translator);

	*ret = (struct pattern){ 0 };
	*t = (struct translator){ .arena = arena,
		.s = s,
		.len = len,
		.out = { .arena = arena },
		.atom = NO_ATOM,
		.pattern = ret };
	while (t->at < t->len) {
		arena_step(arena, 1);
		*ret_at = t->at;
		t->before_repeat = t->after_repeat;
		t->after_repeat = false;
		if (!read_token(t))
			return t->why;
	}
	if (t->depth > 0)
		return "a \"(\" has no \")\"";
	ret->text = t->out.text ? t->out.text : "";
	ret->len = t->out.len;
	return NULL;
}
