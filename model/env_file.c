// SPDX-License-Identifier: Apache-2.0
/* env_file.c: reads lines KEY=VALUE. Runs in: supervisor. */
#include "model/env_file.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"

#define BLANKS " \t\r\v\f"

struct line {
	const char *at, *end;
	char *value; /* as long as the line */
	size_t len;
	size_t kept; /* bytes of value before the blanks that fall away before a comment */
	const char *problem;
};

static void
trim(const char **at, const char **end)
{
	while (*at < *end && strchr(BLANKS, **at) && **at)
		(*at)++;
	while (*at < *end && strchr(BLANKS, (*end)[-1]) && (*end)[-1])
		(*end)--;
}

static void
put(struct line *l, char c)
{
	l->value[l->len++] = c;
	l->kept = l->len;
}

static void
fail(struct line *l, const char *problem)
{
	l->problem = problem;
	l->at = l->end;
}

/* Reads the four digits after \u. */
static unsigned
read_hex(struct line *l)
{
	unsigned n = 0;

	for (int i = 0; i < 4; i++) {
		const char *digit =
		    l->at < l->end && *l->at ? strchr("0123456789abcdef", *l->at | 32) : NULL;

		if (!digit || (unsigned char)*l->at < '0') {
			fail(l, "\\u needs four hexadecimal digits");
			return 0;
		}
		n = n * 16 + (unsigned)(digit - "0123456789abcdef");
		l->at++;
	}
	return n;
}

static void
put_utf8(struct line *l, uint32_t c)
{
	if (c < 0x80) {
		put(l, (char)c);
		return;
	}
	if (c < 0x800) {
		put(l, (char)(0xc0 | c >> 6));
	} else {
		if (c < 0x10000) {
			put(l, (char)(0xe0 | c >> 12));
		} else {
			put(l, (char)(0xf0 | c >> 18));
			put(l, (char)(0x80 | (c >> 12 & 0x3f)));
		}
		put(l, (char)(0x80 | (c >> 6 & 0x3f)));
	}
	put(l, (char)(0x80 | (c & 0x3f)));
}

static void
put_unicode(struct line *l)
{
	uint32_t c = read_hex(l), low;

	if (c >= 0xd800 && c < 0xe000) {
		if (l->end - l->at < 2 || l->at[0] != '\\' || l->at[1] != 'u') {
			fail(l, "\\u has one half of a character");
			return;
		}
		l->at += 2;
		low = read_hex(l);
		c = c < 0xdc00 && low >= 0xdc00 && low < 0xe000
			? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00)
			: 0xfffd;
	}
	if (l->problem)
		return;
	put_utf8(l, c);
}

static void
put_escape(struct line *l)
{
	static const char names[] = "\"\\/bfrnt", values[] = "\"\\/\b\f\r\n\t";
	char c = l->at < l->end ? *l->at++ : '\0';
	const char *name = c ? strchr(names, c) : NULL;

	if (name)
		put(l, values[name - names]);
	else if (c == 'u')
		put_unicode(l);
	else
		fail(l, "there is no such escape after \\");
}

/* The text up to the closing quote. */
static void
put_quoted(struct line *l, char quote)
{
	while (l->at < l->end) {
		char c = *l->at++;

		if (c == quote)
			return;
		if ((unsigned char)c < ' ')
			fail(l, "a control character in a value");
		else if (c == '\\' && quote == '"')
			put_escape(l);
		else
			put(l, c);
	}
	if (!l->problem)
		fail(l, quote == '"' ? "a \" without its end" : "a ' without its end");
}

static void
read_value(struct line *l)
{
	while (l->at < l->end && *l->at != '#') {
		char c = *l->at++;

		if (c == '"' || c == '\'')
			put_quoted(l, c);
		else if (c == ' ')
			l->value[l->len++] = c;
		else if ((unsigned char)c < ' ')
			fail(l, "a control character in a value");
		else
			put(l, c);
	}
	if (l->at < l->end) /* a comment */
		l->len = l->kept;
}

/* Returns the key, for the caller to free; NULL: it is wrong. */
static char *
read_key(const char *at, const char *end)
{
	static const char export[] = "export ",
			  letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklm"
				      "nopqrstuvwxyz_",
			  more[] = "0123456789./";
	size_t len;

	trim(&at, &end);
	if ((size_t)(end - at) > sizeof export - 1 && strncmp(at, export, sizeof export - 1) == 0)
		at += sizeof export - 1;
	len = (size_t)(end - at);
	for (size_t i = 0; i < len; i++)
		if (!at[i] || (!strchr(letters, at[i]) && (i == 0 || !strchr(more, at[i]))))
			return NULL;
	return len > 0 ? mem_strndup(at, len) : NULL;
}

static const char *
read_line(const char *at, const char *end, struct string_map *ret)
{
	const char *equals;
	cleanup_free char *key = NULL, *value = NULL;
	struct line l;

	trim(&at, &end);
	if (at == end || *at == '#')
		return NULL;
	equals = memchr(at, '=', (size_t)(end - at));
	if (!equals)
		return "it has no =";
	key = read_key(at, equals);
	if (!key)
		return "its key must be letters, digits, _, . and /, and must not begin with a "
		       "digit";
	value = mem_alloc((size_t)(end - equals) + 1);
	l = (struct line){ .at = equals + 1, .end = end, .value = value };
	trim(&l.at, &l.end);
	read_value(&l);
	value[l.len] = '\0';
	if (!l.problem && strlen(value) != l.len)
		return "a control character in a value";
	if (ret->n >= ENV_FILE_MAX)
		return "there are too many variables";
	if (!l.problem)
		string_map_set(ret, key, value);
	return l.problem;
}

int
env_file_parse(const char *text, size_t len, struct string_map *ret, struct err *e)
{
	const char *at = text, *end = text + len;

	for (unsigned long n = 1; at < end; n++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		const char *problem = read_line(at, stop ? stop : end, ret);

		if (problem)
			return err_say(e, -EINVAL, "line %lu: %s", n, problem);
		at = stop ? stop + 1 : end;
	}
	return 0;
}
