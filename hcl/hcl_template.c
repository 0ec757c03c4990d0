/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcl_template.c: parses quoted texts and heredocs with ${ } and %{ }. A template is read as a list
 * of parts, whose spaces are then adjusted, and then put together as an expression. Runs in: cli.
 */
#include <limits.h>
#include <string.h>

#include "common/utf8.h"
#include "hcl/hcl_doc.h"
#include "hcl/hcl_scan.h"
#include "hcl/hcl_value.h"

enum part_kind {
	PART_TEXT,
	PART_VALUE,
	PART_IF,
	PART_ELSE,
	PART_ENDIF,
	PART_FOR,
	PART_ENDFOR,
	PART_END
};

struct part {
	enum part_kind kind;
	struct hcl_range at;
	char *text; /* PART_TEXT; len bytes */
	size_t len;
	const struct hcl_expr *expr; /* value, condition, or the list of a for */
	const char *key_name, *value_name;
	struct part *next;
};

struct reader {
	struct hcl_parser *p;
	uint32_t at;
	char *buf; /* the text part that is being read */
	size_t len, size;
	uint32_t text_from;
	struct part *first, **last;
	struct part *previous; /* the part at the end of the list */
	bool strip_next;       /* the next text loses its spaces at the front */
};

static int
peek(const struct reader *r, uint32_t more)
{
	const struct hcl_source *s = r->p->source;

	return more < s->len - r->at ? (unsigned char)s->text[r->at + more] : -1;
}

static struct hcl_range
here(const struct reader *r, uint32_t n)
{
	return (struct hcl_range){ r->p->source, r->at, r->at + n };
}

static void
put(struct reader *r, const char *bytes, size_t n)
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

static struct part *
add_part(struct reader *r, enum part_kind kind, struct hcl_range at)
{
	struct part *part = hcl_new_object(r->p->h, struct part);

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
strip_front(struct part *part)
{
	while (part->len > 0 && is_space(*part->text)) {
		part->text++;
		part->len--;
	}
}

static void
strip_back(struct part *part)
{
	while (part->len > 0 && is_space(part->text[part->len - 1]))
		part->len--;
}

/* Ends the text that was read so far, if there is any. */
static void
end_text(struct reader *r)
{
	struct part *part;

	if (r->len == 0)
		return;
	part = add_part(r, PART_TEXT, (struct hcl_range){ r->p->source, r->text_from, r->at });
	part->text = hcl_strndup(r->p->h, r->buf, r->len);
	part->len = r->len;
	r->len = 0;
	if (r->strip_next)
		strip_front(part);
	r->strip_next = false;
}

static void
read_for_part(struct reader *r, struct part *part)
{
	struct hcl_parser *p = r->p;

	part->kind = PART_FOR;
	hcl_scan(p);
	if (p->tok.kind != HCL_TOK_WORD)
		hcl_expected(p, "the name of a variable after \"for\"");
	part->value_name = hcl_token_text(p);
	hcl_scan(p);
	if (p->tok.kind == ',') {
		hcl_scan(p);
		if (p->tok.kind != HCL_TOK_WORD)
			hcl_expected(p, "the name of a variable after \",\"");
		part->key_name = part->value_name;
		part->value_name = hcl_token_text(p);
		hcl_scan(p);
	}
	if (!hcl_at_word(p, "in"))
		hcl_expected(p, "\"in\"");
	hcl_scan(p);
	part->expr = hcl_read_expr(p);
}

static void
read_directive(struct reader *r, struct part *part)
{
	static const struct {
		const char *word;
		enum part_kind kind;
	} plain[] = { { "else", PART_ELSE }, { "endif", PART_ENDIF }, { "endfor", PART_ENDFOR } };
	struct hcl_parser *p = r->p;

	if (hcl_at_word(p, "if")) {
		part->kind = PART_IF;
		hcl_scan(p);
		part->expr = hcl_read_expr(p);
		return;
	}
	if (hcl_at_word(p, "for")) {
		read_for_part(r, part);
		return;
	}
	for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
		if (!hcl_at_word(p, plain[i].word))
			continue;
		part->kind = plain[i].kind;
		hcl_scan(p);
		return;
	}
	hcl_expected(p, "\"if\", \"else\", \"endif\", \"for\" or \"endfor\" after \"%{\"");
}

/* At ${ or %{. */
static void
read_sequence(struct reader *r)
{
	bool newlines = r->p->newlines, directive = peek(r, 0) == '%', strip = peek(r, 2) == '~';
	struct hcl_range at = here(r, 2);
	struct part *part;

	end_text(r);
	if (strip && r->previous && r->previous->kind == PART_TEXT)
		strip_back(r->previous);
	hcl_enter(r->p->h, at);
	r->p->newlines = false;
	hcl_scan_from(r->p, r->at + (strip ? 3 : 2));
	part = add_part(r, PART_VALUE, at);
	if (directive)
		read_directive(r, part);
	else
		part->expr = hcl_read_expr(r->p);
	if (r->p->tok.kind != '}' && r->p->tok.kind != HCL_TOK_STRIP_END)
		hcl_expected(r->p,
		    directive ? "\"}\" at the end of this %{ }" : "\"}\" at the end of this ${ }");
	r->strip_next = r->p->tok.kind == HCL_TOK_STRIP_END;
	r->at = r->p->next;
	part->at.to = r->at;
	r->p->newlines = newlines;
	r->text_from = r->at;
	hcl_exit(r->p->h);
}

static void
put_rune(struct reader *r, uint32_t c)
{
	char b[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		hcl_fail(r->p->h, here(r, 2), "this escape is not a character of Unicode");
	for (size_t i = n; i-- > 1; c >>= 6)
		b[i] = (char)(0x80 | (c & 0x3f));
	b[0] = (char)(n == 1 ? c : ((0xf00u >> n) & 0xff) | c);
	put(r, b, n);
}

static void
read_unicode_escape(struct reader *r, unsigned digits)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < digits; i++) {
		int c = peek(r, 2 + i);
		const char *hex = "0123456789abcdef";
		const char *at =
		    c > 0 ? strchr(hex, c >= 'A' && c <= 'F' ? c + 'a' - 'A' : c) : NULL;

		if (!at)
			hcl_fail(r->p->h, here(r, 2 + i), "\\%c needs %u hexadecimal digits",
			    peek(r, 1), digits);
		value = value << 4 | (uint32_t)(at - hex);
	}
	put_rune(r, value);
	r->at += 2 + digits;
}

static void
read_escape(struct reader *r)
{
	static const char letters[] = "n\nr\rt\t\"\"\\\\";
	int c = peek(r, 1);

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
	hcl_fail(r->p->h, here(r, 2),
	    "unknown escape: a backslash in quotes is followed by n, r, t, \\, \", u or U; for a "
	    "backslash itself write two");
}

/* Reads one character of text, or a sequence. $${ and %%{ stand for ${ and %{. */
static void
read_template_char(struct reader *r, bool sequences)
{
	int c = peek(r, 0);

	if ((c == '$' || c == '%') && peek(r, 1) == c && peek(r, 2) == '{') {
		put(r, (char[]){ (char)c, '{' }, 2);
		r->at += 3;
	} else if ((c == '$' || c == '%') && peek(r, 1) == '{' && sequences) {
		read_sequence(r);
	} else {
		put(r, (char[]){ (char)c }, 1);
		r->at++;
	}
}

static void
read_quoted_parts(struct reader *r, bool sequences)
{
	struct hcl_range open = r->p->tok.at;

	r->at = open.to;
	r->text_from = r->at;
	while (peek(r, 0) != '"') {
		if (peek(r, 0) < 0)
			hcl_fail(r->p->h, open, "this text has no end: expected a quote");
		if (peek(r, 0) == '\n')
			hcl_fail(r->p->h, here(r, 0),
			    "a text in quotes ends on its line: expected a quote; for a text of "
			    "several lines use a heredoc (<<EOF), for a new line \\n");
		if (peek(r, 0) == '\\')
			read_escape(r);
		else
			read_template_char(r, sequences);
	}
	end_text(r);
	(void)add_part(r, PART_END, here(r, 1));
	r->at++;
}

/* Returns whether the line at r->at is the heredoc's last, and its length without the line's end.
 */
static bool
at_heredoc_end(const struct reader *r, const char *marker, size_t len, uint32_t *ret_len)
{
	uint32_t n = 0, end;

	while (peek(r, n) == ' ' || peek(r, n) == '\t')
		n++;
	for (size_t i = 0; i < len; i++)
		if (peek(r, n + (uint32_t)i) != (unsigned char)marker[i])
			return false;
	n += (uint32_t)len;
	for (end = n; peek(r, end) == ' ' || peek(r, end) == '\t' || peek(r, end) == '\r'; end++)
		;
	*ret_len = n;
	return peek(r, end) == '\n' || peek(r, end) < 0;
}

/* Each line is a part of its own, because ~} removes spaces of its line only. */
static void
read_heredoc_parts(struct reader *r, const char *marker, size_t len)
{
	struct hcl_range open = r->p->tok.at;
	bool line_start = true;
	uint32_t last;

	r->at = open.to;
	r->text_from = r->at;
	while (!line_start || !at_heredoc_end(r, marker, len, &last)) {
		uint32_t before = r->at;

		if (peek(r, 0) < 0)
			hcl_fail(r->p->h, open,
			    "this heredoc has no end: expected a line with %.*s alone", (int)len,
			    marker);
		read_template_char(r, true);
		line_start = r->p->source->text[r->at - 1] == '\n' && r->at == before + 1;
		if (!line_start)
			continue;
		end_text(r);
		r->text_from = r->at;
	}
	(void)add_part(r, PART_END, here(r, 0));
	r->at += last;
}

static size_t
count_indent(const struct part *part)
{
	size_t n = 0;

	while (n < part->len && is_space(part->text[n]))
		n++;
	return n;
}

/* Removes from each line of a <<- heredoc as many spaces as the least indented line has. A line of
 * spaces alone does not count, and keeps its spaces. */
static void
remove_indent(struct part *parts)
{
	size_t least = SIZE_MAX, indent;
	bool line_start = true;

	for (struct part *x = parts; x && x->kind != PART_END; x = x->next) {
		if (line_start) {
			indent = x->kind == PART_TEXT ? count_indent(x) : 0;
			if (x->kind == PART_TEXT && indent == x->len && indent > 0 &&
			    x->text[indent - 1] == '\n')
				indent = SIZE_MAX;
			least = indent < least ? indent : least;
		}
		line_start = x->kind == PART_TEXT && x->len > 0 && x->text[x->len - 1] == '\n';
	}
	line_start = true;
	for (struct part *x = parts; x && x->kind != PART_END; x = x->next) {
		bool at_start = line_start;

		line_start = x->kind == PART_TEXT && x->len > 0 && x->text[x->len - 1] == '\n';
		if (!at_start || x->kind != PART_TEXT || count_indent(x) == x->len)
			continue;
		x->text += least;
		x->len -= least;
	}
}

static const struct hcl_expr *
text_expr(struct hcl *h, const char *text, size_t len, struct hcl_range at)
{
	struct hcl_expr *e = hcl_new_object(h, struct hcl_expr);

	e->kind = HCL_EXPR_LITERAL;
	e->at = at;
	e->value = hcl_string(h, text, len);
	return e;
}

static const struct hcl_expr *build(
    struct hcl *h, struct part **at, struct hcl_range whole, bool inner);

static void
expect_part(struct hcl *h, const struct part *found, enum part_kind kind, const struct part *open,
    const char *what)
{
	if (found->kind != kind)
		hcl_fail(h, open->at, "this has no end: expected %%{ %s }", what);
}

static const struct hcl_expr *
build_if(struct hcl *h, struct part **at)
{
	struct hcl_expr *e = hcl_new_object(h, struct hcl_expr);
	const struct part *open = *at;

	e->kind = HCL_EXPR_CONDITIONAL;
	e->at = open->at;
	e->one = open->expr;
	*at = (*at)->next;
	e->two = build(h, at, open->at, true);
	if ((*at)->kind == PART_ELSE) {
		*at = (*at)->next;
		e->three = build(h, at, open->at, true);
	} else {
		e->three = text_expr(h, "", 0, open->at);
	}
	expect_part(h, *at, PART_ENDIF, open, "endif");
	*at = (*at)->next;
	return e;
}

static const struct hcl_expr *
build_for(struct hcl *h, struct part **at)
{
	struct hcl_expr *e = hcl_new_object(h, struct hcl_expr),
			*join = hcl_new_object(h, struct hcl_expr);
	struct hcl_for *loop = hcl_new_object(h, struct hcl_for);
	const struct part *open = *at;

	loop->key_name = open->key_name;
	loop->value_name = open->value_name;
	loop->source = open->expr;
	*at = (*at)->next;
	loop->value = build(h, at, open->at, true);
	expect_part(h, *at, PART_ENDFOR, open, "endfor");
	*at = (*at)->next;
	e->kind = HCL_EXPR_FOR;
	e->at = open->at;
	e->loop = loop;
	join->kind = HCL_EXPR_JOIN;
	join->at = open->at;
	join->one = e;
	return join;
}

static const struct hcl_expr *
build_part(struct hcl *h, struct part **at)
{
	const struct part *part = *at;

	switch (part->kind) {
	case PART_IF:
		return build_if(h, at);
	case PART_FOR:
		return build_for(h, at);
	case PART_TEXT:
		*at = part->next;
		return text_expr(h, part->text, part->len, part->at);
	default:
		*at = part->next;
		return part->expr;
	}
}

static bool
ends_template(const struct part *part)
{
	return part->kind == PART_END || part->kind == PART_ELSE || part->kind == PART_ENDIF ||
	       part->kind == PART_ENDFOR;
}

/* Makes the expression of the parts up to the end, or (inner) to the end of a directive. */
static const struct hcl_expr *
build(struct hcl *h, struct part **at, struct hcl_range whole, bool inner)
{
	struct hcl_expr *e = hcl_new_object(h, struct hcl_expr);
	struct hcl_item *items;
	size_t n = 0, size = 0;
	bool wraps = !inner && (*at)->kind == PART_VALUE && (*at)->next->kind == PART_END;

	for (const struct part *x = *at; x; x = x->next)
		size++;
	items = hcl_alloc(h, size * sizeof *items);
	hcl_enter(h, whole);
	while (!ends_template(*at))
		items[n++].value = build_part(h, at);
	hcl_exit(h);
	if (!inner && (*at)->kind != PART_END)
		hcl_fail(h, (*at)->at,
		    "this directive closes nothing: there is no %%{ if } or %%{ for } before it");
	e->at = whole;
	e->items = items;
	e->n = n;
	e->kind = wraps ? HCL_EXPR_WRAP : HCL_EXPR_TEMPLATE;
	if (wraps)
		e->one = items[0].value;
	if (n == 0)
		return text_expr(h, "", 0, whole);
	if (n == 1 && items[0].value->kind == HCL_EXPR_LITERAL && items[0].value->value && !wraps) {
		((struct hcl_expr *)items[0].value)->at = whole;
		return items[0].value;
	}
	return e;
}

const struct hcl_expr *
hcl_read_template(struct hcl_parser *p)
{
	struct reader r = { .p = p, .last = &r.first };
	struct hcl_range open = p->tok.at;
	const char *marker = p->source->text + open.from + 2;
	bool flush = p->tok.kind == HCL_TOK_HEREDOC && *marker == '-';
	const struct hcl_expr *e;
	struct part *at;

	if (p->tok.kind == HCL_TOK_QUOTE) {
		read_quoted_parts(&r, true);
	} else {
		marker += flush;
		read_heredoc_parts(&r, marker,
		    hcl_word_length(marker, open.to - (size_t)(marker - p->source->text)));
		if (flush)
			remove_indent(r.first);
	}
	hcl_scan_from(p, r.at);
	at = r.first;
	e = build(p->h, &at, (struct hcl_range){ p->source, open.from, r.at }, false);
	return e;
}

const char *
hcl_read_quoted_text(struct hcl_parser *p, const char *what)
{
	struct reader r = { .p = p, .last = &r.first };
	struct hcl_range open = p->tok.at;

	read_quoted_parts(&r, false);
	if (r.first->kind == PART_TEXT && memchr(r.first->text, '\0', r.first->len))
		hcl_fail(p->h, open, "%s cannot have a NUL character", what);
	hcl_scan_from(p, r.at);
	return r.first->kind == PART_TEXT ? r.first->text : "";
}
