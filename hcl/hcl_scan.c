/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_scan.c: divides a text into tokens. Runs in: cli, job-parser, supervisor (ACL policies), the
 * launcher's configuration child. */
#include "hcl/hcl_scan.h"

#include <string.h>

#include "common/utf8.h"

static int
peek(const struct hcl_parser *p, uint32_t at)
{
	return at < p->source->len ? (unsigned char)p->source->text[at] : -1;
}

static bool
is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static bool
is_letter(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Letters beyond ASCII: all but Latin-1's signs and the general punctuation (with its curly
 * quotes), which the specification's ID_Start excludes too. */
static size_t
letter_length(const char *s, size_t len)
{
	unsigned char c = (unsigned char)s[0];
	size_t n = c < 0x80 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

	if (c < 0x80)
		return is_letter(c);
	if (n > len || !utf8_is_text(s, n))
		return 0;
	if (c == 0xc2 && (unsigned char)s[1] != 0xaa && (unsigned char)s[1] != 0xb5)
		return 0;
	if (c == 0xe2 && ((unsigned char)s[1] == 0x80 || (unsigned char)s[1] == 0x81))
		return 0;
	return n;
}

size_t
hcl_word_length(const char *s, size_t len)
{
	size_t n = len > 0 ? letter_length(s, len) : 0;

	if (n == 0)
		return 0;
	for (;;) {
		size_t more = n < len ? letter_length(s + n, len - n) : 0;

		if (more == 0 && n < len && (is_digit((unsigned char)s[n]) || s[n] == '-'))
			more = 1;
		if (more == 0)
			return n;
		n += more;
	}
}

bool
hcl_is_identifier(const char *s)
{
	size_t len = strlen(s);

	return len > 0 && hcl_word_length(s, len) == len;
}

static uint32_t
skip_line(const struct hcl_parser *p, uint32_t at)
{
	while (peek(p, at) >= 0 && peek(p, at) != '\n')
		at++;
	return at;
}

/* Returns the byte after the comment at `at`, or `at` if there is none. */
static uint32_t
skip_comment(const struct hcl_parser *p, uint32_t at)
{
	const char *end;

	if (peek(p, at) == '#' || (peek(p, at) == '/' && peek(p, at + 1) == '/'))
		return skip_line(p, at);
	if (peek(p, at) != '/' || peek(p, at + 1) != '*')
		return at;
	end = memmem(p->source->text + at + 2, p->source->len - at - 2, "*/", 2);
	if (!end)
		hcl_fail(p->h, (struct hcl_range){ p->source, at, at + 2 },
		    "this comment has no end: expected */");
	return (uint32_t)(end + 2 - p->source->text);
}

static uint32_t
skip_space(const struct hcl_parser *p, uint32_t at)
{
	for (;;) {
		uint32_t before = at;
		int c = peek(p, at);

		if (c == ' ' || c == '\t' || (c == '\r' && peek(p, at + 1) == '\n') ||
		    (c == '\n' && !p->newlines))
			at++;
		else
			at = skip_comment(p, at);
		if (at == before)
			return at;
	}
}

static uint32_t
number_end(const struct hcl_parser *p, uint32_t at)
{
	uint32_t exponent;

	while (is_digit(peek(p, at)))
		at++;
	if (peek(p, at) == '.' && is_digit(peek(p, at + 1))) {
		at++;
		while (is_digit(peek(p, at)))
			at++;
	}
	if (peek(p, at) != 'e' && peek(p, at) != 'E')
		return at;
	exponent = at + 1;
	if (peek(p, exponent) == '+' || peek(p, exponent) == '-')
		exponent++;
	if (!is_digit(peek(p, exponent)))
		return at;
	while (is_digit(peek(p, exponent)))
		exponent++;
	return exponent;
}

/* Returns the byte after "<<EOT\n", or `at` if this is not a heredoc. */
static uint32_t
heredoc_end(const struct hcl_parser *p, uint32_t at)
{
	uint32_t marker = at + 2;
	size_t n;

	if (peek(p, at) != '<' || peek(p, at + 1) != '<')
		return at;
	if (peek(p, marker) == '-')
		marker++;
	n = hcl_word_length(p->source->text + marker, p->source->len - marker);
	if (n == 0)
		return at;
	marker += (uint32_t)n;
	if (peek(p, marker) == '\r')
		marker++;
	return peek(p, marker) == '\n' ? marker + 1 : at;
}

struct operator
{
	const char *text;
	int kind;
};

static int
find_operator(const struct hcl_parser *p, uint32_t at)
{
	static const struct operator two[] = {
		{ "==", HCL_TOK_EQUAL },
		{ "!=", HCL_TOK_NOT_EQUAL },
		{ "<=", HCL_TOK_LESS_EQUAL },
		{ ">=", HCL_TOK_GREATER_EQUAL },
		{ "&&", HCL_TOK_AND },
		{ "||", HCL_TOK_OR },
		{ "=>", HCL_TOK_ARROW },
		{ "~}", HCL_TOK_STRIP_END },
	};
	int c = peek(p, at), next = peek(p, at + 1);

	for (size_t i = 0; i < sizeof two / sizeof two[0]; i++)
		if (c == two[i].text[0] && next == two[i].text[1])
			return two[i].kind;
	return 0;
}

static uint32_t
scan_punctuation(struct hcl_parser *p, uint32_t at)
{
	int c = peek(p, at);
	int op = find_operator(p, at);

	if (op) {
		p->tok.kind = op;
		return at + 2;
	}
	if (c == '.' && peek(p, at + 1) == '.' && peek(p, at + 2) == '.') {
		p->tok.kind = HCL_TOK_ELLIPSIS;
		return at + 3;
	}
	if (c > 0 && strchr("{}[]()=,:.+-*/%<>!?\"\n", c)) {
		p->tok.kind = c;
		return at + 1;
	}
	/* The whole character, so that an error can show it. */
	p->tok.kind = -1;
	for (at++; (peek(p, at) & 0xc0) == 0x80 && peek(p, at) >= 0; at++)
		;
	return at;
}

void
hcl_scan_from(struct hcl_parser *p, uint32_t byte)
{
	uint32_t at = skip_space(p, byte), end;
	int c = peek(p, at);
	size_t word;

	p->before = byte;
	p->tok.space_before = at > byte;
	word = c < 0 ? 0 : hcl_word_length(p->source->text + at, p->source->len - at);
	if (c < 0) {
		p->tok.kind = HCL_TOK_END;
		end = at;
	} else if (word > 0) {
		p->tok.kind = HCL_TOK_WORD;
		end = at + (uint32_t)word;
	} else if (is_digit(c)) {
		p->tok.kind = HCL_TOK_NUMBER;
		end = number_end(p, at);
	} else if ((end = heredoc_end(p, at)) > at) {
		p->tok.kind = HCL_TOK_HEREDOC;
	} else {
		end = scan_punctuation(p, at);
	}
	p->tok.at = (struct hcl_range){ p->source, at, end };
	p->next = end;
}

void
hcl_scan(struct hcl_parser *p)
{
	hcl_scan_from(p, p->next);
}

bool
hcl_scan_newlines(struct hcl_parser *p, bool on)
{
	bool before = p->newlines;

	p->newlines = on;
	if (on != before)
		hcl_scan_from(p, p->before);
	return before;
}

void
hcl_check_utf8(struct hcl *h, const struct hcl_source *source)
{
	for (size_t i = 0; i < source->len;) {
		size_t n = utf8_char_length(source->text + i, source->len - i);

		if (n == 0)
			hcl_fail(h, (struct hcl_range){ source, (uint32_t)i, (uint32_t)i + 1 },
			    "expected UTF-8 text, found an invalid byte");
		i += n;
	}
}

static const char *
describe_token(struct hcl_parser *p)
{
	unsigned c;

	if (p->tok.kind == HCL_TOK_END)
		return "the end of the file";
	if (p->tok.kind == HCL_TOK_NEWLINE)
		return "the end of the line";
	if (p->tok.kind == HCL_TOK_QUOTE)
		return "a quoted text";
	if (p->tok.kind == HCL_TOK_HEREDOC)
		return "a heredoc";
	if (p->tok.at.to - p->tok.at.from > 40)
		return "a long word";
	if (!utf8_is_text(p->source->text + p->tok.at.from, p->tok.at.to - p->tok.at.from))
		return "bytes that are not UTF-8";
	c = (unsigned char)p->source->text[p->tok.at.from];
	if (c < 0x20 || c == 0x7f)
		return hcl_printf(p->h, "control character 0x%02x", c);
	return hcl_printf(p->h, "\"%s\"", hcl_token_text(p));
}

void
hcl_expected(struct hcl_parser *p, const char *what)
{
	hcl_fail(p->h, p->tok.at, "expected %s, found %s", what, describe_token(p));
}

void
hcl_take(struct hcl_parser *p, int kind, const char *what)
{
	if (p->tok.kind != kind)
		hcl_expected(p, what);
	hcl_scan(p);
}

bool
hcl_at_word(const struct hcl_parser *p, const char *word)
{
	size_t len = p->tok.at.to - p->tok.at.from;

	return p->tok.kind == HCL_TOK_WORD && strlen(word) == len &&
	       memcmp(p->source->text + p->tok.at.from, word, len) == 0;
}

char *
hcl_token_text(struct hcl_parser *p)
{
	return hcl_strndup(p->h, p->source->text + p->tok.at.from, p->tok.at.to - p->tok.at.from);
}

struct hcl_range
hcl_range_since(const struct hcl_parser *p, struct hcl_range from)
{
	return (struct hcl_range){ p->source, from.from, p->before };
}
