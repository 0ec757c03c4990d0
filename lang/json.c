/* SPDX-License-Identifier: Apache-2.0 */
/* json.c: reads JSON. Runs in: cli, job-parser, template-renderer. */
#include "lang/json.h"

#include <stdlib.h>
#include <string.h>
#include <unistr.h>

#include "lang/text.h"

struct reader {
	struct arena *arena;
	const char *s; /* ends with NUL */
	size_t at, len;
	const struct json_maker *m;
	void *arg;
};

/* The items of a list or object while it is read. */
struct items {
	struct json_member *v;
	size_t n, room;
};

static void *read_value(struct reader *r);

static void
fail(struct reader *r, const char *expected)
{
	r->m->fail(r->arg, r->at, expected);
	abort(); /* it has returned */
}

static void
skip_space(struct reader *r)
{
	r->at += strspn(r->s + r->at, " \t\r\n");
}

static bool
skip(struct reader *r, char ch)
{
	skip_space(r);
	if (r->at == r->len || r->s[r->at] != ch)
		return false;
	r->at++;
	return true;
}

static size_t
count_digits(const struct reader *r, size_t at)
{
	return strspn(r->s + at, "0123456789");
}

static void *
read_number(struct reader *r)
{
	size_t from = r->at, digits, first;

	if (r->s[r->at] == '-')
		r->at++;
	first = r->at;
	digits = count_digits(r, r->at);
	r->at += r->s[first] == '0' ? 1 : digits;
	if (digits > 0 && r->s[r->at] == '.') {
		digits = count_digits(r, ++r->at);
		r->at += digits;
	}
	if (digits > 0 && (r->s[r->at] == 'e' || r->s[r->at] == 'E')) {
		r->at++;
		r->at += r->s[r->at] == '+' || r->s[r->at] == '-';
		digits = count_digits(r, r->at);
		r->at += digits;
	}
	if (digits == 0)
		fail(r, "a digit");
	return r->m->number(r->arg, r->s + from, r->at - from);
}

/* The four hexadecimal digits at this place, or -1. */
static int32_t
read_hex(const struct reader *r, size_t at)
{
	char digits[5] = { 0 };

	memcpy(digits, r->s + at, at + 4 <= r->len ? 4 : 0);
	if (strspn(digits, "0123456789abcdefABCDEF") != 4)
		return -1;
	return (int32_t)strtol(digits, NULL, 16);
}

/* Reads the digits of \u and, for the first half of a pair, the second. */
static void
read_unicode(struct reader *r, struct text *t)
{
	int32_t ch = read_hex(r, r->at), low;
	uint8_t bytes[6];
	int n;

	if (ch < 0)
		fail(r, "four hexadecimal digits");
	r->at += 4;
	if (ch >= 0xd800 && ch < 0xdc00 && strncmp(r->s + r->at, "\\u", 2) == 0) {
		low = read_hex(r, r->at + 2);
		if (low >= 0xdc00 && low < 0xe000) {
			ch = 0x10000 + ((ch - 0xd800) << 10) + (low - 0xdc00);
			r->at += 6;
		}
	}
	n = u8_uctomb(bytes, (ucs4_t)(ch >= 0xd800 && ch < 0xe000 ? 0xfffd : ch), sizeof bytes);
	text_bytes(t, (const char *)bytes, (size_t)n);
}

static void
read_escape(struct reader *r, struct text *t)
{
	static const char names[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
	char ch = r->s[r->at];

	if (ch == 'u') {
		r->at++;
		read_unicode(r, t);
		return;
	}
	for (const char *x = names; *x && ch; x += 2)
		if (*x == ch) {
			text_bytes(t, x + 1, 1);
			r->at++;
			return;
		}
	fail(r, "an escape");
}

/* After the first quote. */
static struct text
read_text(struct reader *r)
{
	struct text t = { .arena = r->arena };

	for (size_t from = r->at;; from = r->at) {
		while (r->at < r->len && (unsigned char)r->s[r->at] >= 0x20 && r->s[r->at] != '"' &&
		       r->s[r->at] != '\\')
			r->at++;
		text_bytes(&t, r->s + from, r->at - from);
		if (r->at == r->len || (unsigned char)r->s[r->at] < 0x20)
			fail(r, "a quote");
		if (r->s[r->at++] == '"')
			return t;
		read_escape(r, &t);
	}
}

static void
add_item(struct reader *r, struct items *items, struct json_member item)
{
	struct json_member *grown;

	if (items->n == items->room) {
		items->room = 2 * items->room + 4;
		grown = arena_alloc(r->arena, items->room * sizeof *grown);
		if (items->n > 0)
			memcpy(grown, items->v, items->n * sizeof *grown);
		items->v = grown;
	}
	items->v[items->n++] = item;
}

static void *
read_array(struct reader *r)
{
	struct items items = { 0 };
	void **values;

	if (!skip(r, ']')) {
		do
			add_item(r, &items, (struct json_member){ .value = read_value(r) });
		while (skip(r, ','));
		if (!skip(r, ']'))
			fail(r, "\",\" or \"]\"");
	}
	values = arena_alloc(r->arena, items.n * sizeof *values);
	for (size_t i = 0; i < items.n; i++)
		values[i] = items.v[i].value;
	return r->m->list(r->arg, values, items.n);
}

static void *
read_object(struct reader *r)
{
	struct items items = { 0 };
	struct text key;

	if (!skip(r, '}')) {
		do {
			if (!skip(r, '"'))
				fail(r, "a key in quotes");
			key = read_text(r);
			if (!skip(r, ':'))
				fail(r, "\":\"");
			add_item(
			    r, &items, (struct json_member){ key.text, key.len, read_value(r) });
		} while (skip(r, ','));
		if (!skip(r, '}'))
			fail(r, "\",\" or \"}\"");
	}
	return r->m->object(r->arg, items.v, items.n);
}

static void *
read_word(struct reader *r)
{
	static const char *const words[] = { "true", "false", "null" };

	for (size_t i = 0; i < 3; i++)
		if (strncmp(r->s + r->at, words[i], strlen(words[i])) == 0) {
			r->at += strlen(words[i]);
			return i == 2 ? r->m->null(r->arg) : r->m->boolean(r->arg, i == 0);
		}
	fail(r, "a value");
	return NULL;
}

static void *
read_string(struct reader *r)
{
	struct text t = read_text(r);

	return r->m->string(r->arg, t.text, t.len);
}

static void *
read_value(struct reader *r)
{
	void *v;

	r->m->enter(r->arg);
	if (skip(r, '{'))
		v = read_object(r);
	else if (skip(r, '['))
		v = read_array(r);
	else if (skip(r, '"'))
		v = read_string(r);
	else if (r->s[r->at] == '-' || count_digits(r, r->at) > 0)
		v = read_number(r);
	else
		v = read_word(r);
	r->m->leave(r->arg);
	return v;
}

void *
json_read(struct arena *a, const char *s, size_t len, const struct json_maker *m, void *arg)
{
	struct reader r = { .arena = a, .s = s, .len = len, .m = m, .arg = arg };
	void *v;

	arena_count_bytes(a, len);
	v = read_value(&r);
	skip_space(&r);
	if (r.at < r.len)
		fail(&r, "the end of the text");
	return v;
}
