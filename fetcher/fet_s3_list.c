// SPDX-License-Identifier: Apache-2.0
/*
 * fet_s3_list.c: what a bucket answers that is asked for its objects: XML, of which only elements
 * with text are needed. It is read from front to end, once; declarations of types and entities,
 * comments and CDATA, which no server sends, are refused. Runs in: a worker of the fetcher.
 */
#include "fetcher/fet_s3_list.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "model/engine/text.h"

#define DEPTH_MAX 8
#define BLANKS    " \t\r\n"

/* A part of the document. */
struct span {
	const char *at;
	size_t len;
};

struct reader {
	const char *at, *end;
	struct span open[DEPTH_MAX]; /* the names of the elements around */
	unsigned depth;
	struct s3_page *page;
};

static bool
is(struct span s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

/* --- text --- */

static size_t
put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* Returns the character, or 0 if "#38" or "#x26" is none. */
static uint32_t
numbered(const char *text)
{
	bool hex = text[1] == 'x';
	const char *digits = text + 1 + hex;
	unsigned long c = strtoul(digits, NULL, hex ? 16 : 10);

	if (strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789") != strlen(digits) ||
	    c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	return (uint32_t)c;
}

/* Returns the character of "amp" or "#38", or 0. */
static uint32_t
entity(struct span name)
{
	static const struct {
		const char *name;
		char c;
	} known[] = { { "amp", '&' }, { "lt", '<' }, { "gt", '>' }, { "quot", '"' },
		{ "apos", '\'' } };
	char text[12];

	for (size_t i = 0; i < ELEMENTSOF(known); i++)
		if (is(name, known[i].name))
			return (uint32_t)known[i].c;
	if (name.len < 2 || name.len >= sizeof text || *name.at != '#')
		return 0;
	memcpy(text, name.at, name.len);
	text[name.len] = '\0';
	return numbered(text);
}

/* Returns the text, which the caller frees, or NULL if it has an unknown entity. */
static char *
decode(struct span s)
{
	char *made = mem_alloc(s.len + 1), *to = made; /* no entity is shorter than its character */
	const char *end = s.at + s.len;

	for (const char *at = s.at; at < end;) {
		const char *semicolon = *at == '&' ? memchr(at, ';', (size_t)(end - at)) : NULL;
		uint32_t c = 0;

		if (*at != '&') {
			*to++ = *at++;
			continue;
		}
		if (semicolon)
			c = entity((struct span){ at + 1, (size_t)(semicolon - at - 1) });
		if (c == 0) {
			free(made);
			return NULL;
		}
		to += put_utf8(to, c);
		at = semicolon + 1;
	}
	*to = '\0';
	return made;
}

/* --- elements --- */

/* Takes the text of the innermost element, if it is needed. */
static bool
take_text(struct reader *r, struct span text)
{
	const struct span *name = &r->open[r->depth - 1];
	bool of_list = r->depth == 2 && is(r->open[0], "ListBucketResult");
	bool of_object =
	    r->depth == 3 && is(r->open[0], "ListBucketResult") && is(r->open[1], "Contents");
	char *decoded;

	if (of_list && is(*name, "IsTruncated")) {
		r->page->more = is(text, "true");
		return true;
	}
	if (!(of_list && is(*name, "NextContinuationToken")) && !(of_object && is(*name, "Key")))
		return true;
	decoded = decode(text);
	if (!decoded)
		return false;
	if (of_object) {
		strings_add(&r->page->keys, decoded);
		free(decoded);
	} else {
		free(r->page->token);
		r->page->token = decoded;
	}
	return true;
}

/* Reads a tag, whose inner part this is. */
static bool
take_tag(struct reader *r, struct span tag)
{
	bool closes = *tag.at == '/', empty = tag.at[tag.len - 1] == '/';
	struct span name = { tag.at + closes, 0 };

	while (name.at + name.len < tag.at + tag.len && !strchr(BLANKS "/", name.at[name.len]))
		name.len++;
	if (name.len == 0)
		return false;
	if (closes) {
		if (r->depth == 0 || r->open[r->depth - 1].len != name.len ||
		    memcmp(r->open[r->depth - 1].at, name.at, name.len) != 0)
			return false;
		r->depth--;
		return true;
	}
	if (empty)
		return true;
	if (r->depth == DEPTH_MAX)
		return false;
	r->open[r->depth++] = name;
	return true;
}

/* Reads the next tag, and the text before it. */
static bool
next(struct reader *r)
{
	const char *open = memchr(r->at, '<', (size_t)(r->end - r->at));
	const char *close = open ? memchr(open, '>', (size_t)(r->end - open)) : NULL;
	struct span text = { r->at, open ? (size_t)(open - r->at) : 0 };

	if (!close || close == open + 1 || open[1] == '!')
		return false;
	r->at = close + 1;
	if (open[1] == '?')
		return true;
	if (open[1] == '/' && r->depth > 0 && !take_text(r, text))
		return false;
	return take_tag(r, (struct span){ open + 1, (size_t)(close - open - 1) });
}

int
s3_page_read(const char *xml, size_t len, struct s3_page *ret, struct err *e)
{
	struct reader r = { .at = xml, .end = xml + len, .page = ret };
	bool is_list = false;

	*ret = (struct s3_page){ 0 };
	do {
		if (!next(&r))
			return err_say(e, -EBADMSG, "the list of the bucket's objects is damaged");
		is_list |= r.depth == 1 && is(r.open[0], "ListBucketResult");
	} while (r.depth > 0 || !is_list);
	if (ret->more && !ret->token)
		return err_say(
		    e, -EBADMSG, "the list of the bucket's objects does not say how it goes on");
	return 0;
}

void
s3_page_done(struct s3_page *page)
{
	strings_done(&page->keys);
	free(page->token);
}
