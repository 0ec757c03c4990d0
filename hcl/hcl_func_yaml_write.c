/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcl_func_yaml_write.c: writes values as YAML in block style, with the same line breaks as
 * go-cty-yaml: strings are quoted, or literal blocks if they have several lines. Runs in: cli,
 * job-parser.
 */
#include <stdio.h>
#include <string.h>
#include <unistr.h>

#include "hcl/hcl_doc.h"
#include "hcl/hcl_func.h"
#include "hcl/hcl_normal.h"
#include "hcl/hcl_number.h"
#include "lang/text.h"

#define INDENT     2
#define WIDTH      80  /* column after which a quoted string continues on the next line */
#define SIMPLE_MAX 128 /* bytes of a key that needs no "?" */

struct writer {
	struct text out;
	int column, indent; /* indent: of the block, -1 outside of all */
	bool space;         /* the last thing was a space, or the beginning of a line */
	bool line_start;    /* only indentation and indicators are in this line */
	bool open_ended;    /* the document could go on: it needs an end mark */
};

/* Where a value is: alone, after "-", or after ":" or "?". */
enum place { PLACE_ROOT, PLACE_ITEM, PLACE_MAPPING };

static void write_value(struct writer *w, const struct hcl_value *v, enum place place);

static void
put(struct writer *w, char ch)
{
	text_bytes(&w->out, &ch, 1);
	w->column++;
}

static void
put_break(struct writer *w)
{
	text_add(&w->out, "\n");
	w->column = 0;
}

static void
write_indent(struct writer *w)
{
	int indent = w->indent < 0 ? 0 : w->indent;

	if (!w->line_start || w->column > indent || (w->column == indent && !w->space))
		put_break(w);
	while (w->column < indent)
		put(w, ' ');
	w->space = true;
	w->line_start = true;
}

/* A sign such as "-". before: with a space before it if there is none; keep: it may be at the
 * beginning of a line. */
static void
write_sign(struct writer *w, const char *sign, bool before, bool keep)
{
	if (before && !w->space)
		put(w, ' ');
	for (; *sign; sign++)
		put(w, *sign);
	w->space = false;
	w->line_start = w->line_start && keep;
	w->open_ended = false;
}

static void
write_plain(struct writer *w, const char *s, enum place place)
{
	if (!w->space)
		put(w, ' ');
	for (; *s; s++)
		put(w, *s);
	w->space = false;
	w->line_start = false;
	if (place == PLACE_ROOT)
		w->open_ended = true;
}

static bool
is_break(ucs4_t ch)
{
	return ch == '\r' || ch == '\n' || ch == 0x85 || ch == 0x2028 || ch == 0x2029;
}

/* What YAML 1.1 calls printable, but for tabs and for characters above U+FFFF. */
static bool
is_printable(ucs4_t ch)
{
	return ch == '\n' || (ch >= 0x20 && ch <= 0x7e) || (ch >= 0xa0 && ch <= 0xd7ff) ||
	       (ch >= 0xe000 && ch <= 0xfffd && ch != 0xfeff);
}

static void
write_escape(struct writer *w, ucs4_t ch)
{
	static const struct {
		ucs4_t ch;
		char name;
	} names[] = { { 0, '0' }, { 7, 'a' }, { 8, 'b' }, { 9, 't' }, { 10, 'n' }, { 11, 'v' },
		{ 12, 'f' }, { 13, 'r' }, { 27, 'e' }, { '"', '"' }, { '\\', '\\' }, { 0x85, 'N' },
		{ 0xa0, '_' }, { 0x2028, 'L' }, { 0x2029, 'P' } };
	char buf[16];

	(void)snprintf(buf, sizeof buf,
	    ch <= 0xff     ? "\\x%02X"
	    : ch <= 0xffff ? "\\u%04X"
			   : "\\U%08X",
	    ch);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (names[i].ch == ch)
			(void)snprintf(buf, sizeof buf, "\\%c", names[i].name);
	for (const char *s = buf; *s; s++)
		put(w, *s);
}

static void
put_char(struct writer *w, const char *s, size_t n)
{
	text_bytes(&w->out, s, n);
	w->column++;
}

/* key: it stays in one line. A text that begins with a byte order mark is escaped as a whole. */
static void
write_quoted(struct writer *w, const char *s, size_t len, bool key)
{
	bool mark = len >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0, spaces = false;
	size_t n;
	ucs4_t ch;

	write_sign(w, "\"", true, false);
	for (size_t i = 0; i < len; i += n) {
		n = (size_t)u8_mbtouc(&ch, (const uint8_t *)s + i, len - i);
		if (!is_printable(ch) || is_break(ch) || ch == '"' || ch == '\\' || mark) {
			write_escape(w, ch);
			spaces = false;
		} else if (ch == ' ' && !key && !spaces && w->column > WIDTH && i > 0 &&
			   i < len - 1) {
			write_indent(w);
			if (s[i + 1] == ' ')
				put(w, '\\');
			spaces = true;
		} else {
			put_char(w, s + i, n);
			spaces = ch == ' ';
		}
	}
	write_sign(w, "\"", false, false);
}

/* What is known about a text before it is written. */
struct shape {
	bool breaks;  /* it has several lines, in YAML's sense */
	bool literal; /* it can be a literal block */
};

static struct shape
examine(const char *s, size_t len)
{
	struct shape shape = { .literal = len > 0 && s[len - 1] != ' ' };
	bool space_before = false;
	ucs4_t ch;
	size_t n;

	for (size_t i = 0; i < len; i += n) {
		n = (size_t)u8_mbtouc(&ch, (const uint8_t *)s + i, len - i);
		if (is_break(ch)) {
			shape.breaks = true;
			shape.literal &= !space_before;
		}
		shape.literal &= is_printable(ch);
		space_before = ch == ' ';
	}
	return shape;
}

/* Whether the character that ends before *len is a line break; moves *len before it. */
static bool
ends_with_break(const char *s, size_t *len)
{
	ucs4_t ch = 0;
	const uint8_t *at = u8_prev(&ch, (const uint8_t *)s + *len, (const uint8_t *)s);

	*len = at ? (size_t)(at - (const uint8_t *)s) : 0;
	return at && is_break(ch);
}

/* "-": no line break at the end; "+": more than one, or nothing else. */
static void
write_hints(struct writer *w, const char *s, size_t len)
{
	ucs4_t first;

	(void)u8_mbtouc(&first, (const uint8_t *)s, len);
	if (first == ' ' || is_break(first))
		write_sign(w, "2", false, false);
	if (!ends_with_break(s, &len))
		write_sign(w, "-", false, false);
	else if (len == 0 || ends_with_break(s, &len))
		write_sign(w, "+", false, false);
}

static void
write_literal(struct writer *w, const char *s, size_t len)
{
	bool breaks = true;
	ucs4_t ch;
	size_t n;

	write_sign(w, "|", true, false);
	write_hints(w, s, len);
	put_break(w);
	w->line_start = true;
	w->space = true;
	for (size_t i = 0; i < len; i += n) {
		n = (size_t)u8_mbtouc(&ch, (const uint8_t *)s + i, len - i);
		if (!is_break(ch) && breaks)
			write_indent(w);
		put_char(w, s + i, n);
		breaks = is_break(ch);
		if (breaks)
			w->column = 0;
		w->line_start = breaks;
	}
}

static void
write_string(struct writer *w, const char *s, size_t len, bool key)
{
	int indent = w->indent;

	w->indent = indent < 0 ? INDENT : indent + INDENT;
	if (!key && memchr(s, '\n', len) && examine(s, len).literal)
		write_literal(w, s, len);
	else
		write_quoted(w, s, len, key);
	w->indent = indent;
}

/* The items of a mapping's value are not indented below its key. */
static void
write_items(struct writer *w, const struct hcl_value *v, enum place place)
{
	int indent = w->indent;

	if (indent < 0)
		w->indent = 0;
	else if (place != PLACE_MAPPING || w->line_start)
		w->indent += INDENT;
	for (size_t i = 0; i < v->len; i++) {
		write_indent(w);
		write_sign(w, "-", true, true);
		write_value(w, v->items[i], PLACE_ITEM);
	}
	w->indent = indent;
}

static void
write_members(struct writer *w, const struct hcl_value *v)
{
	int indent = w->indent;

	w->indent = indent < 0 ? 0 : indent + INDENT;
	for (size_t i = 0; i < v->len; i++) {
		const struct hcl_member *m = &v->members[i];
		bool simple = m->key_len <= SIMPLE_MAX && !examine(m->key, m->key_len).breaks;

		write_indent(w);
		if (!simple)
			write_sign(w, "?", true, true);
		write_string(w, m->key, m->key_len, simple);
		if (!simple)
			write_indent(w);
		write_sign(w, ":", !simple, !simple);
		write_value(w, m->value, PLACE_MAPPING);
	}
	w->indent = indent;
}

static void
write_value(struct writer *w, const struct hcl_value *v, enum place place)
{
	hcl_step(hcl_of_arena(w->out.arena), 1);
	if (hcl_is_null(v))
		write_plain(w, "null", place);
	else if (v->kind == HCL_BOOL)
		write_plain(w, v->boolean ? "true" : "false", place);
	else if (v->kind == HCL_NUMBER)
		write_plain(w, hcl_number_text(hcl_of_arena(w->out.arena), v->number), place);
	else if (v->kind == HCL_STRING)
		write_string(w, v->string, v->len, false);
	else if (v->len == 0)
		write_sign(w, hcl_is_mapping(v) ? "{}" : "[]", true, false);
	else if (hcl_is_mapping(v))
		write_members(w, v);
	else
		write_items(w, v, place);
}

struct hcl_value *
hcl_fn_yamlencode(struct hcl_call *c)
{
	struct writer w = {
		.out = { .arena = hcl_arena(c->h) }, .indent = -1, .space = true, .line_start = true
	};

	if (!hcl_is_wholly_known(c->args[0]))
		return hcl_unknown(c->h, &hcl_type_string);
	write_value(&w, c->args[0], PLACE_ROOT);
	write_indent(&w);
	if (w.open_ended) {
		write_sign(&w, "...", true, false);
		write_indent(&w);
	}
	return hcl_normal_string(c->h, w.out.text, w.out.len);
}
