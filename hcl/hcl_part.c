/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_part.c: reads quoted texts and heredocs, with their escapes, as parts. Runs in: cli,
 * job-parser, supervisor (ACL policies), the launcher's configuration child. */
#include "hcl/hcl_part.h"

#include <string.h>

#include "hcl/hcl_doc.h"

int
hcl_reader_peek(const struct hcl_reader *r, uint32_t more)
{
	const struct hcl_source *s = r->p->source;

	return more < s->len - r->at ? (unsigned char)s->text[r->at + more] : -1;
}

struct hcl_range
hcl_reader_here(const struct hcl_reader *r, uint32_t n)
{
	return (struct hcl_range){ r->p->source, r->at, r->at + n };
}

static void
put(struct hcl_reader *r, const char *bytes, size_t n)
{
	if (r->len + n > r->size) {
		size_t size = 2 * (r->len + n) + 64;
		char *grown = hcl_alloc(r->p->h, size);

		if (r->len > 0)
			memcpy(grown, r->buf, r->len);
		r->buf = grown;
		r->size = size;
	}
	memcpy(r->buf + r->len, bytes, n);
	r->len += n;
}

struct hcl_part *
hcl_part_add(struct hcl_reader *r, enum hcl_part_kind kind, struct hcl_range at)
{
	struct hcl_part *part = hcl_new_object(r->p->h, struct hcl_part);

	part->kind = kind;
	part->at = at;
	*r->last = part;
	r->last = &part->next;
	r->previous = part;
	return part;
}

static bool
is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static void
strip_front(struct hcl_part *part)
{
	while (part->len > 0 && is_space(*part->text)) {
		part->text++;
		part->len--;
	}
}

void
hcl_part_strip(struct hcl_part *part)
{
	while (part->len > 0 && is_space(part->text[part->len - 1]))
		part->len--;
}

void
hcl_part_end_text(struct hcl_reader *r)
{
	struct hcl_part *part;

	if (r->len == 0)
		return;
	part =
	    hcl_part_add(r, HCL_PART_TEXT, (struct hcl_range){ r->p->source, r->text_from, r->at });
	part->text = hcl_strndup(r->p->h, r->buf, r->len);
	part->len = r->len;
	r->len = 0;
	if (r->strip_next)
		strip_front(part);
	r->strip_next = false;
}

static void
put_rune(struct hcl_reader *r, uint32_t c)
{
	char b[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		hcl_fail(
		    r->p->h, hcl_reader_here(r, 2), "this escape is not a character of Unicode");
	for (size_t i = n; i-- > 1; c >>= 6)
		b[i] = (char)(0x80 | (c & 0x3f));
	b[0] = (char)(n == 1 ? c : ((0xf00u >> n) & 0xff) | c);
	put(r, b, n);
}

/* Reads the digits of the escape that begins `from` bytes ahead. */
static uint32_t
read_hex(struct hcl_reader *r, uint32_t from, unsigned digits)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < digits; i++) {
		int c = hcl_reader_peek(r, from + 2 + i);
		const char *hex = "0123456789abcdef";
		const char *at =
		    c > 0 ? strchr(hex, c >= 'A' && c <= 'F' ? c + 'a' - 'A' : c) : NULL;

		if (!at)
			hcl_fail(r->p->h, hcl_reader_here(r, from + 2 + i),
			    "\\%c needs %u hexadecimal digits", hcl_reader_peek(r, from + 1),
			    digits);
		value = value << 4 | (uint32_t)(at - hex);
	}
	return value;
}

/* JSON writes a character beyond U+FFFF as two escapes. */
static void
read_unicode_escape(struct hcl_reader *r, unsigned digits)
{
	uint32_t value = read_hex(r, 0, digits), second = 0;
	bool pair = r->p->dialect == HCL_JSON && value >= 0xd800 && value < 0xdc00 &&
		    hcl_reader_peek(r, 6) == '\\' && hcl_reader_peek(r, 7) == 'u';

	if (pair)
		second = read_hex(r, 6, 4);
	if (second >= 0xdc00 && second < 0xe000)
		value = 0x10000 + ((value - 0xd800) << 10) + (second - 0xdc00);
	put_rune(r, value);
	r->at += pair ? 12 : 2 + digits;
}

static void
read_escape(struct hcl_reader *r)
{
	static const char letters[] = "n\nr\rt\t\"\"\\\\", json[] = "//b\bf\f";
	int c = hcl_reader_peek(r, 1);

	if (c == 'u' || c == 'U') {
		read_unicode_escape(r, c == 'u' ? 4 : 8);
		return;
	}
	for (const char *l = letters; *l; l += 2)
		if (c == (unsigned char)*l) {
			put(r, l + 1, 1);
			r->at += 2;
			return;
		}
	for (const char *l = json; *l && r->p->dialect == HCL_JSON; l += 2)
		if (c == (unsigned char)*l) {
			put(r, l + 1, 1);
			r->at += 2;
			return;
		}
	hcl_fail(r->p->h, hcl_reader_here(r, 2),
	    "unknown escape: a backslash in quotes is followed by n, r, t, \\, \", u or U; for a "
	    "backslash itself write two");
}

/* Reads one character of text, or a sequence. $${ and %%{ stand for ${ and %{. */
static void
read_template_char(struct hcl_reader *r)
{
	enum hcl_dialect dialect = r->p->dialect;
	int c = hcl_reader_peek(r, 0), next = hcl_reader_peek(r, 1);
	bool special =
	    dialect == HCL_NATIVE ? c == '$' || c == '%' : c == '$' && dialect == HCL_OLD;

	if (special && next == c && hcl_reader_peek(r, 2) == '{') {
		put(r, (char[]){ (char)c, '{' }, 2);
		r->at += 3;
	} else if (special && next == '{' && r->read_sequence) {
		r->read_sequence(r);
	} else {
		put(r, (char[]){ (char)c }, 1);
		r->at++;
	}
}

static void
read_quoted_parts(struct hcl_reader *r)
{
	struct hcl_range open = r->p->tok.at;

	r->at = open.to;
	r->text_from = r->at;
	while (hcl_reader_peek(r, 0) != '"') {
		if (hcl_reader_peek(r, 0) < 0)
			hcl_fail(r->p->h, open, "this text has no end: expected a quote");
		if (hcl_reader_peek(r, 0) == '\n')
			hcl_fail(r->p->h, hcl_reader_here(r, 0),
			    "a text in quotes ends on its line: expected a quote; for a text of "
			    "several lines use a heredoc (<<EOF), for a new line \\n");
		if (hcl_reader_peek(r, 0) == '\\')
			read_escape(r);
		else
			read_template_char(r);
	}
	hcl_part_end_text(r);
	(void)hcl_part_add(r, HCL_PART_END, hcl_reader_here(r, 1));
	r->at++;
}

/* Returns whether the line at r->at is the heredoc's last, and its length without the line's end.
 */
static bool
at_heredoc_end(const struct hcl_reader *r, const char *marker, size_t len, uint32_t *ret_len)
{
	uint32_t n = 0, end;

	while (hcl_reader_peek(r, n) == ' ' || hcl_reader_peek(r, n) == '\t')
		n++;
	for (size_t i = 0; i < len; i++)
		if (hcl_reader_peek(r, n + (uint32_t)i) != (unsigned char)marker[i])
			return false;
	n += (uint32_t)len;
	for (end = n; hcl_reader_peek(r, end) == ' ' || hcl_reader_peek(r, end) == '\t' ||
		      hcl_reader_peek(r, end) == '\r';
	     end++)
		;
	*ret_len = n;
	return hcl_reader_peek(r, end) == '\n' || hcl_reader_peek(r, end) < 0;
}

/* Reads one character or a sequence. Returns whether a line has ended. Each line is a part of its
 * own, because ~} removes spaces of its line only. */
static bool
read_line_char(struct hcl_reader *r)
{
	uint32_t before = r->at;

	read_template_char(r);
	if (r->p->source->text[r->at - 1] != '\n' || r->at != before + 1)
		return false;
	hcl_part_end_text(r);
	r->text_from = r->at;
	return true;
}

static void
read_heredoc_parts(struct hcl_reader *r, const char *marker, size_t len)
{
	struct hcl_range open = r->p->tok.at;
	bool line_start = true;
	uint32_t last;

	r->at = open.to;
	r->text_from = r->at;
	while (!line_start || !at_heredoc_end(r, marker, len, &last)) {
		if (hcl_reader_peek(r, 0) < 0)
			hcl_fail(r->p->h, open,
			    "this heredoc has no end: expected a line with %.*s alone", (int)len,
			    marker);
		line_start = read_line_char(r);
	}
	(void)hcl_part_add(r, HCL_PART_END, hcl_reader_here(r, 0));
	r->at += last;
}

void
hcl_read_all_parts(struct hcl_reader *r)
{
	r->text_from = r->at;
	while (hcl_reader_peek(r, 0) >= 0)
		(void)read_line_char(r);
	hcl_part_end_text(r);
	(void)hcl_part_add(r, HCL_PART_END, hcl_reader_here(r, 0));
}

static size_t
count_indent(const struct hcl_part *part)
{
	size_t n = 0;

	while (n < part->len && is_space(part->text[n]))
		n++;
	return n;
}

static bool
ends_line(const struct hcl_part *part)
{
	return part->kind == HCL_PART_TEXT && part->len > 0 && part->text[part->len - 1] == '\n';
}

/* Whether the part is a whole line of spaces. Spaces before a ${ or %{ are not. */
static bool
is_blank_line(const struct hcl_part *part)
{
	return ends_line(part) && count_indent(part) == part->len;
}

/* Removes from each line of a <<- heredoc as many spaces as the least indented line has. A line of
 * spaces alone does not count, and keeps its spaces. */
static void
remove_indent(struct hcl_part *parts)
{
	size_t least = SIZE_MAX, indent;
	bool line_start = true;

	for (struct hcl_part *x = parts; x && x->kind != HCL_PART_END; x = x->next) {
		if (line_start && !is_blank_line(x)) {
			indent = x->kind == HCL_PART_TEXT ? count_indent(x) : 0;
			least = indent < least ? indent : least;
		}
		line_start = ends_line(x);
	}
	line_start = true;
	for (struct hcl_part *x = parts; x && x->kind != HCL_PART_END; x = x->next) {
		if (line_start && x->kind == HCL_PART_TEXT && !is_blank_line(x)) {
			x->text += least;
			x->len -= least;
		}
		line_start = ends_line(x);
	}
}

void
hcl_read_parts(struct hcl_reader *r)
{
	struct hcl_range open = r->p->tok.at;
	const char *text = r->p->source->text, *marker = text + open.from + 2;
	bool flush = r->p->tok.kind == HCL_TOK_HEREDOC && *marker == '-';

	if (r->p->tok.kind == HCL_TOK_QUOTE) {
		read_quoted_parts(r);
		return;
	}
	marker += flush;
	read_heredoc_parts(r, marker, hcl_word_length(marker, open.to - (size_t)(marker - text)));
	if (flush)
		remove_indent(r->first);
}

static void
refuse_sequence(struct hcl_reader *r)
{
	char c = (char)hcl_reader_peek(r, 0);

	hcl_fail(r->p->h, hcl_reader_here(r, 2),
	    "a label is not evaluated: it cannot have %c{ (for these characters themselves write "
	    "%c%c{)",
	    c, c, c);
}

const char *
hcl_read_quoted_text(struct hcl_parser *p, const char *what)
{
	struct hcl_reader r = { .p = p, .last = &r.first };
	struct hcl_range open = p->tok.at;

	if (p->dialect == HCL_NATIVE)
		r.read_sequence = refuse_sequence;
	hcl_read_parts(&r);
	if (r.first->kind == HCL_PART_TEXT && memchr(r.first->text, '\0', r.first->len))
		hcl_fail(p->h, open, "%s cannot have a NUL character", what);
	hcl_scan_from(p, r.at);
	return r.first->kind == HCL_PART_TEXT ? r.first->text : "";
}
