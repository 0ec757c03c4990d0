/* SPDX-License-Identifier: Apache-2.0 */
/* text.c: growing texts, and JSON strings in them. Runs in: supervisor, cli. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/utf8.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"

char *
text_room(struct text *t, size_t more)
{
	size_t size = t->size ? t->size : 256;

	if (t->len + more < t->size)
		return t->text + t->len;
	while (size <= t->len + more)
		size *= 2;
	t->text = mem_resize(t->text, size, 1);
	t->size = size;
	return t->text + t->len;
}

void
text_end(struct text *t, char *end)
{
	*end = '\0';
	t->len = (size_t)(end - t->text);
}

void
text_append(struct text *t, const char *bytes, size_t len)
{
	char *to = text_room(t, len);

	text_end(t, len > 0 ? mempcpy(to, bytes, len) : to); /* bytes may be NULL if len is 0 */
}

void
text_printf(struct text *t, const char *fmt, ...)
{
	cleanup_free char *made = NULL;
	va_list args;

	va_start(args, fmt);
	made = mem_vprintf(fmt, args);
	va_end(args);
	text_append(t, made, strlen(made));
}

void
text_done(struct text *t)
{
	free(t->text);
	*t = (struct text){ 0 };
}

static void
append_escape(struct text *t, unsigned char c)
{
	static const char short_forms[] = "\"\"\\\\\bb\ff\nn\rr\tt";
	const char *s;
	char buf[8];

	for (s = short_forms; *s; s += 2) {
		if ((unsigned char)*s != c)
			continue;
		text_append(t, (char[]){ '\\', s[1] }, 2);
		return;
	}
	text_append(t, buf, (size_t)snprintf(buf, sizeof(buf), "\\u%04x", c));
}

static bool
is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/*
 * Replaces bytes that are not UTF-8 (a task's output in an error text) with U+FFFD, because stored
 * JSON must be readable again.
 * The NUL at the end is part of no character, so none reaches beyond it.
 */
static void
append_rest(struct text *t, const unsigned char *p)
{
	const unsigned char *start = p;
	size_t n;

	while (*p) {
		n = *p < 0x80 ? is_plain(*p) : utf8_char_length(p, 4);
		if (n > 0) {
			p += n;
			continue;
		}
		text_append(t, (const char *)start, (size_t)(p - start));
		if (*p < 0x80)
			append_escape(t, *p);
		else
			text_append(t, "\xef\xbf\xbd", 3);
		start = ++p;
	}
	text_append(t, (const char *)start, (size_t)(p - start));
}

/* Nearly all strings need no escapes and are copied at once. */
void
text_json_string(struct text *t, const char *s)
{
	size_t plain = 0;
	char *to;

	while (is_plain((unsigned char)s[plain]))
		plain++;
	to = text_room(t, plain + 2);
	*to++ = '"';
	to = mempcpy(to, s, plain);
	if (!s[plain])
		*to++ = '"';
	text_end(t, to);
	if (!s[plain])
		return;
	append_rest(t, (const unsigned char *)s + plain);
	text_append(t, "\"", 1);
}
