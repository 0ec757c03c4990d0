// SPDX-License-Identifier: Apache-2.0
/* hcl_text.c: characters, space, comments, strings and heredocs of HCL and JSON. Runs in: the
 * launcher's configuration child, supervisor. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/hcl_parser.h"

/* --- characters --- */

char
hcl_take(struct hcl_parser *p)
{
	char c = *p->at++;

	if (c == '\n') {
		p->pos.line++;
		p->pos.column = 1;
	} else if (((unsigned char)c & 0xc0) != 0x80) {
		p->pos.column++;
	}
	return c;
}

static bool
is_control(int c)
{
	return (c >= 0 && c < 0x20 && c != '\t') || c == 0x7f;
}

/* --- errors --- */

int
hcl_fail_at(struct hcl_parser *p, struct hcl_pos pos, const char *sentence)
{
	return err_say(p->e, -EINVAL, "%s:%u:%u: %s", p->name, pos.line, pos.column, sentence);
}

int
hcl_fail_full(struct hcl_parser *p)
{
	return err_say(p->e, -E2BIG,
	    "%s:%u:%u: the configuration is too large (limit: %zu MiB in memory)", p->name,
	    p->pos.line, p->pos.column, HCL_ARENA_MAX >> 20);
}

/* Describes the character or word at p->at for an error sentence. */
static void
describe(const struct hcl_parser *p, char *ret, size_t size)
{
	int c = hcl_peek(p), n = 1;

	if (c < 0) {
		(void)snprintf(ret, size, "the end of the file");
	} else if (c == '\n' || (c == '\r' && hcl_peek_at(p, 1) == '\n')) {
		(void)snprintf(ret, size, "the end of the line");
	} else if (is_control(c)) {
		(void)snprintf(ret, size, "control character 0x%02x", (unsigned)c);
	} else {
		while (n < 32 && (hcl_is_word(c) ? hcl_is_word(hcl_peek_at(p, (size_t)n))
						 : (hcl_peek_at(p, (size_t)n) & 0xc0) == 0x80))
			n++;
		(void)snprintf(ret, size, "'%.*s'", n, p->at);
	}
}

int
hcl_expected(struct hcl_parser *p, const char *what)
{
	char found[64];

	describe(p, found, sizeof found);
	return err_say(p->e, -EINVAL, "%s:%u:%u: expected %s, found %s", p->name, p->pos.line,
	    p->pos.column, what, found);
}

/* --- memory --- */

void *
hcl_arena_take(struct hcl_parser *p, size_t size)
{
	size_t at = (p->used + 15) & ~(size_t)15;

	if (p->full || at + size > p->arena_size) {
		p->full = true;
		return NULL;
	}
	p->used = at + size;
	return memset(p->arena + at, 0, size);
}

void
hcl_put(struct hcl_parser *p, char c)
{
	if (p->used >= p->arena_size)
		p->full = true;
	else
		p->arena[p->used++] = c;
}

int
hcl_put_end(struct hcl_parser *p, size_t start, const char **ret)
{
	hcl_put(p, '\0');
	if (p->full)
		return hcl_fail_full(p);
	*ret = p->arena + start;
	return 0;
}

static void
put_utf8(struct hcl_parser *p, uint32_t c)
{
	if (c < 0x80) {
		hcl_put(p, (char)c);
		return;
	}
	if (c < 0x800) {
		hcl_put(p, (char)(0xc0 | c >> 6));
	} else {
		if (c < 0x10000) {
			hcl_put(p, (char)(0xe0 | c >> 12));
		} else {
			hcl_put(p, (char)(0xf0 | c >> 18));
			hcl_put(p, (char)(0x80 | (c >> 12 & 0x3f)));
		}
		hcl_put(p, (char)(0x80 | (c >> 6 & 0x3f)));
	}
	hcl_put(p, (char)(0x80 | (c & 0x3f)));
}

/* --- space and comments --- */

static int
skip_block_comment(struct hcl_parser *p)
{
	struct hcl_pos start = p->pos;

	(void)hcl_take(p);
	(void)hcl_take(p);
	for (;;) {
		if (hcl_peek(p) < 0)
			return hcl_fail_at(p, start,
			    "expected '*/' to end this comment, found the end of the file");
		if (hcl_take(p) == '*' && hcl_peek(p) == '/') {
			(void)hcl_take(p);
			return 0;
		}
	}
}

int
hcl_skip_space(struct hcl_parser *p)
{
	for (;;) {
		int c = hcl_peek(p), r;

		if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
			(void)hcl_take(p);
		} else if (!p->json && (c == '#' || (c == '/' && hcl_peek_at(p, 1) == '/'))) {
			while (hcl_peek(p) >= 0 && hcl_peek(p) != '\n')
				(void)hcl_take(p);
		} else if (!p->json && c == '/' && hcl_peek_at(p, 1) == '*') {
			r = skip_block_comment(p);
			if (r < 0)
				return r;
		} else {
			return 0;
		}
	}
}

/* --- strings --- */

static int
take_hex(struct hcl_parser *p, unsigned digits, uint32_t *ret)
{
	uint32_t v = 0;

	for (unsigned i = 0; i < digits; i++) {
		int c = hcl_peek(p), low = c | 0x20;

		if (hcl_is_digit(c))
			v = v << 4 | (uint32_t)(c - '0');
		else if (low >= 'a' && low <= 'f')
			v = v << 4 | (uint32_t)(low - 'a' + 10);
		else
			return hcl_expected(p,
			    digits == 4 ? "four hexadecimal digits" : "eight hexadecimal digits");
		(void)hcl_take(p);
	}
	*ret = v;
	return 0;
}

/* Reads the digits after "\u" or "\U". JSON writes characters beyond U+FFFF as two surrogates. */
static int
parse_unicode(struct hcl_parser *p, struct hcl_pos start, unsigned digits)
{
	uint32_t c = 0, low = 0;
	int r;

	r = take_hex(p, digits, &c);
	if (r < 0)
		return r;
	if (c >= 0xd800 && c < 0xdc00 && digits == 4) {
		if (hcl_peek(p) != '\\' || hcl_peek_at(p, 1) != 'u')
			return hcl_expected(p, "the second half of a surrogate pair");
		(void)hcl_take(p);
		(void)hcl_take(p);
		r = take_hex(p, 4, &low);
		if (r < 0)
			return r;
		if (low < 0xdc00 || low > 0xdfff)
			return hcl_fail_at(p, start,
			    "expected a surrogate pair, found another character after its first "
			    "half");
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	if (c == 0 || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		return hcl_fail_at(p, start,
		    "expected the number of a Unicode character, found an invalid one (or NUL)");
	put_utf8(p, c);
	return 0;
}

static int
parse_escape(struct hcl_parser *p)
{
	static const struct {
		char letter, means;
		bool json_only;
	} escapes[] = { { 'n', '\n', false }, { 't', '\t', false }, { 'r', '\r', false },
		{ '"', '"', false }, { '\\', '\\', false }, { '/', '/', true }, { 'b', '\b', true },
		{ 'f', '\f', true } };
	struct hcl_pos start = p->pos;
	int c;

	(void)hcl_take(p);
	c = hcl_peek(p);
	if (c == 'u' || (c == 'U' && !p->json)) {
		(void)hcl_take(p);
		return parse_unicode(p, start, c == 'u' ? 4 : 8);
	}
	for (size_t i = 0; i < ELEMENTSOF(escapes); i++)
		if (c == escapes[i].letter && (p->json || !escapes[i].json_only)) {
			(void)hcl_take(p);
			hcl_put(p, escapes[i].means);
			return 0;
		}
	return hcl_expected(p, "one of n t r \" \\ u after a backslash");
}

/* "$${" stands for the text "${". A plain "${" would begin an expression, which is an error
 * here. */
static int
parse_dollar(struct hcl_parser *p)
{
	if (hcl_peek_at(p, 1) == '{')
		return hcl_expected(
		    p, "text (expressions do not exist here; \"$${\" is a plain \"${\")");
	if (hcl_peek_at(p, 1) == '$' && hcl_peek_at(p, 2) == '{') {
		(void)hcl_take(p);
		hcl_put(p, hcl_take(p));
		hcl_put(p, hcl_take(p));
		return 0;
	}
	hcl_put(p, hcl_take(p));
	return 0;
}

int
hcl_parse_string(struct hcl_parser *p, const char **ret)
{
	size_t start = p->used;
	int r = 0;

	(void)hcl_take(p);
	while (hcl_peek(p) != '"') {
		int c = hcl_peek(p);

		if (c < 0 || is_control(c))
			return hcl_expected(p, "a closing '\"'");
		if (c == '\\')
			r = parse_escape(p);
		else if (c == '$' && !p->json)
			r = parse_dollar(p);
		else
			hcl_put(p, hcl_take(p));
		if (r < 0)
			return r;
	}
	(void)hcl_take(p);
	return hcl_put_end(p, start, ret);
}

int
hcl_parse_word(struct hcl_parser *p, const char **ret)
{
	size_t start = p->used;

	while (hcl_is_word(hcl_peek(p)))
		hcl_put(p, hcl_take(p));
	return hcl_put_end(p, start, ret);
}

/* --- heredocs --- */

static const char *
line_end(const struct hcl_parser *p, const char *at)
{
	const char *end = memchr(at, '\n', (size_t)(p->end - at));

	return end ? end : p->end;
}

static size_t
indentation(const char *at, const char *end)
{
	size_t n = 0;

	while (at + n < end && (at[n] == ' ' || at[n] == '\t'))
		n++;
	return n;
}

static bool
is_marker(const char *at, const char *end, const char *marker)
{
	size_t len = strlen(marker);

	at += indentation(at, end);
	if (end > at && end[-1] == '\r')
		end--;
	return (size_t)(end - at) == len && memcmp(at, marker, len) == 0;
}

/* Finds the line that ends a heredoc, and the indentation common to all its lines. Returns NULL if
 * there is no such line. */
static const char *
heredoc_end(const struct hcl_parser *p, const char *marker, size_t *ret_indent)
{
	size_t indent = SIZE_MAX;

	for (const char *at = p->at; at < p->end;) {
		const char *end = line_end(p, at);
		size_t n = indentation(at, end);

		if (is_marker(at, end, marker)) {
			*ret_indent = indent == SIZE_MAX ? 0 : indent;
			return at;
		}
		if (at + n < end && *(at + n) != '\r' && n < indent)
			indent = n;
		at = end < p->end ? end + 1 : end;
	}
	return NULL;
}

static int
heredoc_line(struct hcl_parser *p, size_t indent)
{
	int r = 0;

	for (size_t i = 0; i < indent && (hcl_peek(p) == ' ' || hcl_peek(p) == '\t'); i++)
		(void)hcl_take(p);
	while (hcl_peek(p) != '\n') {
		if (hcl_peek(p) == '\r' && hcl_peek_at(p, 1) == '\n')
			(void)hcl_take(p);
		else if (is_control(hcl_peek(p)))
			return hcl_expected(p, "text");
		else if (hcl_peek(p) == '$')
			r = parse_dollar(p);
		else
			hcl_put(p, hcl_take(p));
		if (r < 0)
			return r;
	}
	hcl_put(p, hcl_take(p));
	return 0;
}

int
hcl_parse_heredoc(struct hcl_parser *p, const char **ret)
{
	struct hcl_pos begin = p->pos;
	const char *marker, *end;
	size_t indent = 0, start;
	bool strip;
	int r;

	(void)hcl_take(p);
	(void)hcl_take(p);
	strip = hcl_peek(p) == '-';
	if (strip)
		(void)hcl_take(p);
	if (!hcl_is_word_start(hcl_peek(p)))
		return hcl_expected(p, "the word that ends this heredoc");
	r = hcl_parse_word(p, &marker);
	if (r < 0)
		return r;
	if (hcl_peek(p) == '\r')
		(void)hcl_take(p);
	if (hcl_peek(p) != '\n')
		return hcl_expected(p, "the end of the line");
	(void)hcl_take(p);
	end = heredoc_end(p, marker, &indent);
	if (!end)
		return hcl_fail_at(p, begin,
		    "expected a line with only this heredoc's word, found the end of the file");
	start = p->used;
	while (p->at < end) {
		r = heredoc_line(p, strip ? indent : 0);
		if (r < 0)
			return r;
	}
	while (hcl_is_word(hcl_peek(p)) || hcl_peek(p) == ' ' || hcl_peek(p) == '\t')
		(void)hcl_take(p);
	return hcl_put_end(p, start, ret);
}
