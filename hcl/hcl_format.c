/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcl_format.c: writes a text with canonical spaces. It divides the text into tokens, comments and
 * the literal parts of templates among them, then each line into what is before "=", the
 * assignment, and a comment at its end; these are aligned with those of the lines around. Runs in:
 * cli, job-parser.
 */
#include "hcl/hcl_format.h"

#include <string.h>

#include "hcl/hcl_scan.h"
#include "lang/text.h"

enum kind {
	WORD,
	NUMBER,
	OPEN,  /* { [ ( */
	CLOSE, /* } ] ) */
	OPEN_QUOTE,
	CLOSE_QUOTE,
	OPEN_HEREDOC,
	CLOSE_HEREDOC,
	LITERAL,        /* text of a template */
	OPEN_SEQUENCE,  /* ${ %{ ${~ %{~ */
	CLOSE_SEQUENCE, /* } ~} of a sequence */
	COMMENT,
	NEWLINE,
	SIGN,
};

struct token {
	enum kind kind;
	const char *text;
	size_t len;
	size_t spaces; /* before it */
};

struct line {
	struct token *lead, *assign, *comment;
	size_t n_lead, n_assign; /* comment: one token, or NULL */
};

struct formatter {
	struct hcl *h;
	const struct hcl_source *source;
	uint32_t at;
	struct token *tokens;
	size_t n, size;
	struct line *lines;
	size_t n_lines;
};

static int
peek(const struct formatter *f, uint32_t more)
{
	return more < f->source->len - f->at ? (unsigned char)f->source->text[f->at + more] : -1;
}

static void
add_token(struct formatter *f, enum kind kind, uint32_t len)
{
	struct token *grown;

	hcl_step(f->h, 1);
	if (f->n == f->size) {
		f->size = f->size ? 2 * f->size : 256;
		grown = hcl_alloc(f->h, f->size * sizeof *grown);
		if (f->n > 0)
			memcpy(grown, f->tokens, f->n * sizeof *grown);
		f->tokens = grown;
	}
	f->tokens[f->n++] =
	    (struct token){ .kind = kind, .text = f->source->text + f->at, .len = len };
	f->at += len;
}

static uint32_t
length_to(const struct formatter *f, const char *end, size_t end_len)
{
	const char *from = f->source->text + f->at;
	const char *found = memmem(from, f->source->len - f->at, end, end_len);

	return found ? (uint32_t)(found - from + (ptrdiff_t)end_len)
		     : (uint32_t)(f->source->len - f->at);
}

static void scan_code(struct formatter *f, bool in_sequence);

static bool
at_sequence(const struct formatter *f)
{
	return (peek(f, 0) == '$' || peek(f, 0) == '%') && peek(f, 1) == '{';
}

static bool
at_escaped_sequence(const struct formatter *f)
{
	return (peek(f, 0) == '$' || peek(f, 0) == '%') && peek(f, 1) == peek(f, 0) &&
	       peek(f, 2) == '{';
}

static void
scan_sequence(struct formatter *f)
{
	add_token(f, OPEN_SEQUENCE, peek(f, 2) == '~' ? 3 : 2);
	scan_code(f, true);
	add_token(f, CLOSE_SEQUENCE, peek(f, 0) == '~' ? 2 : 1);
}

/* Adds the literal that began `len` bytes before. */
static void
end_literal(struct formatter *f, uint32_t *len)
{
	f->at -= *len;
	if (*len > 0)
		add_token(f, LITERAL, *len);
	*len = 0;
}

static void
scan_quoted(struct formatter *f)
{
	uint32_t len = 0;

	add_token(f, OPEN_QUOTE, 1);
	while (peek(f, 0) >= 0 && peek(f, 0) != '"') {
		uint32_t step = peek(f, 0) == '\\' ? 2 : at_escaped_sequence(f) ? 3 : 1;

		if (step == 1 && at_sequence(f)) {
			end_literal(f, &len);
			scan_sequence(f);
			continue;
		}
		f->at += step;
		len += step;
	}
	end_literal(f, &len);
	add_token(f, CLOSE_QUOTE, 1);
}

/* The length of the heredoc's last line without its end, or 0 on another line. */
static uint32_t
heredoc_end(const struct formatter *f, const char *marker, size_t len)
{
	uint32_t n = 0;

	while (peek(f, n) == ' ' || peek(f, n) == '\t')
		n++;
	if (f->source->len - f->at < n + len ||
	    memcmp(f->source->text + f->at + n, marker, len) != 0)
		return 0;
	n += (uint32_t)len;
	while (peek(f, n) == ' ' || peek(f, n) == '\t')
		n++;
	return peek(f, n) == '\n' || peek(f, n) < 0 ||
		       (peek(f, n) == '\r' && peek(f, n + 1) == '\n')
		   ? n
		   : 0;
}

static void
scan_heredoc(struct formatter *f, uint32_t open_len)
{
	const char *marker = f->source->text + f->at + 2;
	size_t marker_len;
	uint32_t len = 0, end;

	marker += *marker == '-';
	marker_len = hcl_word_length(marker, open_len);
	add_token(f, OPEN_HEREDOC, open_len);
	for (bool line_start = true;;) {
		if (line_start && (end = heredoc_end(f, marker, marker_len)) > 0)
			break;
		if (at_sequence(f) && !at_escaped_sequence(f)) {
			end_literal(f, &len);
			scan_sequence(f);
			line_start = false;
			continue;
		}
		line_start = peek(f, 0) == '\n';
		len += at_escaped_sequence(f) ? 3 : 1;
		f->at += at_escaped_sequence(f) ? 3 : 1;
	}
	end_literal(f, &len);
	add_token(f, CLOSE_HEREDOC, end);
}

static uint32_t
heredoc_open_length(const struct formatter *f)
{
	uint32_t n = 2;
	size_t word;

	if (peek(f, 0) != '<' || peek(f, 1) != '<')
		return 0;
	n += peek(f, n) == '-';
	word = hcl_word_length(f->source->text + f->at + n, f->source->len - f->at - n);
	n += (uint32_t)word;
	n += peek(f, n) == '\r';
	return word > 0 && peek(f, n) == '\n' ? n + 1 : 0;
}

static uint32_t
number_length(const struct formatter *f)
{
	uint32_t n = 0;

	while ((peek(f, n) >= '0' && peek(f, n) <= '9') || peek(f, n) == '.' ||
	       ((peek(f, n) == 'e' || peek(f, n) == 'E') &&
		   ((peek(f, n + 1) >= '0' && peek(f, n + 1) <= '9') || peek(f, n + 1) == '+' ||
		       peek(f, n + 1) == '-')) ||
	       ((peek(f, n) == '+' || peek(f, n) == '-') && n > 0 &&
		   (peek(f, n - 1) == 'e' || peek(f, n - 1) == 'E')))
		n++;
	return n;
}

static uint32_t
sign_length(const struct formatter *f)
{
	static const char *const two[] = { "==", "!=", "<=", ">=", "&&", "||", "=>" };

	if (peek(f, 0) == '.' && peek(f, 1) == '.' && peek(f, 2) == '.')
		return 3;
	for (size_t i = 0; i < sizeof two / sizeof two[0]; i++)
		if (peek(f, 0) == two[i][0] && peek(f, 1) == two[i][1])
			return 2;
	return 1;
}

static void
scan_code_token(struct formatter *f)
{
	size_t word = hcl_word_length(f->source->text + f->at, f->source->len - f->at);
	int c = peek(f, 0);
	uint32_t len;

	if (c == '#' || (c == '/' && peek(f, 1) == '/'))
		add_token(f, COMMENT, length_to(f, "\n", 1));
	else if (c == '/' && peek(f, 1) == '*')
		add_token(f, COMMENT, length_to(f, "*/", 2));
	else if (c == '\n')
		add_token(f, NEWLINE, 1);
	else if (c == '\r' && peek(f, 1) == '\n')
		add_token(f, NEWLINE, 2);
	else if (word > 0)
		add_token(f, WORD, (uint32_t)word);
	else if (c >= '0' && c <= '9')
		add_token(f, NUMBER, number_length(f));
	else if (c == '"')
		scan_quoted(f);
	else if ((len = heredoc_open_length(f)) > 0)
		scan_heredoc(f, len);
	else
		add_token(f,
		    strchr("{[(", c)   ? OPEN
		    : strchr("}])", c) ? CLOSE
				       : SIGN,
		    sign_length(f));
}

/* To the end of the text, or to the brace that closes a sequence. */
static void
scan_code(struct formatter *f, bool in_sequence)
{
	unsigned braces = 0;

	while (peek(f, 0) >= 0) {
		int c = peek(f, 0);

		if (c == ' ' || c == '\t') {
			f->at++;
			continue;
		}
		if (in_sequence && braces == 0 && (c == '}' || (c == '~' && peek(f, 1) == '}')))
			return;
		braces += c == '{';
		braces -= c == '}';
		scan_code_token(f);
	}
}

static bool
ends_line(const struct token *t)
{
	return t->kind == NEWLINE ||
	       (t->kind == COMMENT && t->len > 0 && t->text[t->len - 1] == '\n');
}

static bool
is_sign(const struct token *t, const char *sign)
{
	return t && t->kind == SIGN && t->len == strlen(sign) && memcmp(t->text, sign, t->len) == 0;
}

static int
bracket_change(const struct token *t)
{
	return t->kind == OPEN || t->kind == OPEN_SEQUENCE     ? 1
	       : t->kind == CLOSE || t->kind == CLOSE_SEQUENCE ? -1
							       : 0;
}

/* An assignment whose brackets are closed on its line is aligned; others begin a longer value. */
static void
divide_line(struct line *l)
{
	int brackets = 0;

	if (l->n_lead > 1 && l->lead[l->n_lead - 1].kind == COMMENT)
		l->comment = &l->lead[--l->n_lead];
	for (size_t i = 1; i < l->n_lead; i++) {
		if (!is_sign(&l->lead[i], "="))
			continue;
		for (size_t j = i; j < l->n_lead; j++)
			brackets += bracket_change(&l->lead[j]);
		if (brackets == 0) {
			l->assign = &l->lead[i];
			l->n_assign = l->n_lead - i;
			l->n_lead = i;
		}
		return;
	}
}

static void
divide_text(struct formatter *f)
{
	size_t start = 0;

	f->lines = hcl_alloc(f->h, (f->n + 1) * sizeof *f->lines);
	for (size_t i = 0; i < f->n; i++) {
		if (!ends_line(&f->tokens[i]) && i + 1 < f->n)
			continue;
		f->lines[f->n_lines].lead = &f->tokens[start];
		f->lines[f->n_lines].n_lead = i + 1 - start;
		divide_line(&f->lines[f->n_lines++]);
		start = i + 1;
	}
}

/* Each line that opens more brackets than it closes begins a level, however many they are. */
static void
indent_lines(struct formatter *f)
{
	int *levels = hcl_alloc(f->h, (f->n_lines + 1) * sizeof *levels), brackets;
	size_t n = 0;

	for (size_t i = 0; i < f->n_lines; i++) {
		struct line *l = &f->lines[i];

		if (l->n_lead == 0 || l->lead[0].kind == NEWLINE)
			continue;
		brackets = 0;
		for (size_t j = 0; j < l->n_lead; j++) {
			brackets += bracket_change(&l->lead[j]);
			if (l->lead[j].kind == OPEN_HEREDOC)
				break;
		}
		for (size_t j = 0; j < l->n_assign; j++)
			brackets += bracket_change(&l->assign[j]);
		for (int closed = -brackets; closed > 0 && n > 0;) {
			int here = closed < levels[n - 1] ? closed : levels[n - 1];

			levels[n - 1] -= here;
			closed -= here;
			n -= levels[n - 1] == 0;
		}
		l->lead[0].spaces = 2 * n;
		if (brackets > 0)
			levels[n++] = brackets;
	}
}

static bool
is_negation(const struct token *before)
{
	static const char *const signs[] = { "=", ":", ",", "?", "+", "*", "/", "%", "-",
		"==", "!=", ">", ">=", "<", "<=", "&&", "||", "!" };

	if (!before || before->kind == OPEN)
		return true;
	for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
		if (is_sign(before, signs[i]))
			return true;
	return false;
}

static bool
is_template_text(const struct token *t)
{
	return t->kind == LITERAL || t->kind == OPEN_QUOTE || t->kind == OPEN_HEREDOC;
}

static bool
is_brace(const struct token *t, char brace)
{
	return (t->kind == OPEN || t->kind == CLOSE) && *t->text == brace;
}

/* Whether a space is between these tokens; before is the one in front of them, or NULL. */
static bool
has_space(const struct token *before, const struct token *t, const struct token *after)
{
	if (after->kind == NEWLINE ||
	    (t->kind == WORD && *after->text == '(' && after->kind == OPEN))
		return false;
	if (is_sign(t, ".") || is_sign(after, ".") || is_sign(after, ",") || is_sign(after, "..."))
		return false;
	if (is_sign(t, ","))
		return true;
	if (is_template_text(t) || after->kind == LITERAL || after->kind == CLOSE_QUOTE ||
	    after->kind == CLOSE_HEREDOC)
		return false;
	if (t->kind == WORD && t->len == 2 && memcmp(t->text, "in", 2) == 0 && before &&
	    before->kind == WORD)
		return true;
	if (is_brace(after, '[') && (t->kind == WORD || t->kind == NUMBER || bracket_change(t) < 0))
		return false;
	if (is_sign(t, "!"))
		return false;
	if (is_sign(t, "-"))
		return !is_negation(before);
	if (is_brace(t, '{') || is_brace(after, '}'))
		return !(is_brace(t, '{') && is_brace(after, '}'));
	if (t->kind == OPEN_SEQUENCE && is_brace(after, '{'))
		return true;
	if (is_brace(t, '}') && after->kind == CLOSE_SEQUENCE)
		return true;
	if (t->kind == CLOSE_SEQUENCE && after->kind == OPEN_SEQUENCE)
		return false;
	return bracket_change(t) <= 0 && bracket_change(after) >= 0;
}

static void
space_tokens(struct token *tokens, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++)
		tokens[i + 1].spaces =
		    has_space(i > 0 ? &tokens[i - 1] : NULL, &tokens[i], &tokens[i + 1]);
}

static size_t
count_columns(const struct token *tokens, size_t n)
{
	size_t columns = 0;

	for (size_t i = 0; i < n; i++) {
		columns += tokens[i].spaces;
		for (size_t j = 0; j < tokens[i].len; j++)
			columns += ((unsigned char)tokens[i].text[j] & 0xc0) != 0x80;
	}
	return columns;
}

/* Aligns the assignments (or comments) of neighbouring lines behind the longest of them. */
static void
align_cells(struct formatter *f, bool comments)
{
	for (size_t i = 0; i < f->n_lines;) {
		size_t end, widest = 0;

		for (end = i; end < f->n_lines; end++) {
			const struct line *l = &f->lines[end];
			size_t columns = count_columns(l->lead, l->n_lead);

			if (comments ? !l->comment : !l->assign)
				break;
			columns += comments ? count_columns(l->assign, l->n_assign) : 0;
			widest = columns > widest ? columns : widest;
		}
		for (size_t j = i; j < end; j++) {
			struct line *l = &f->lines[j];
			size_t columns = count_columns(l->lead, l->n_lead);

			columns += comments ? count_columns(l->assign, l->n_assign) : 0;
			(comments ? l->comment : l->assign)->spaces = widest - columns + 1;
		}
		i = end > i ? end : i + 1;
	}
}

static char *
write_tokens(struct formatter *f, size_t *ret_len)
{
	struct text t = { .arena = hcl_arena(f->h) };

	text_bytes(&t, f->source->text,
	    f->tokens && f->n > 0 && f->source->len >= 3 &&
		    (unsigned char)f->source->text[0] == 0xef
		? 3
		: 0);
	for (size_t i = 0; i < f->n; i++) {
		for (size_t j = 0; j < f->tokens[i].spaces; j++)
			text_bytes(&t, " ", 1);
		text_bytes(&t, f->tokens[i].text, f->tokens[i].len);
	}
	*ret_len = t.len;
	return t.text;
}

struct format_call {
	const struct hcl_source *source;
	char *text;
	size_t len;
};

static void
format(struct hcl *h, void *arg)
{
	struct format_call *c = arg;
	struct formatter f = { .h = h, .source = c->source };

	if (c->source->len >= 3 && memcmp(c->source->text, "\xef\xbb\xbf", 3) == 0)
		f.at = 3;
	scan_code(&f, false);
	divide_text(&f);
	indent_lines(&f);
	for (size_t i = 0; i < f.n_lines; i++) {
		space_tokens(f.lines[i].lead, f.lines[i].n_lead);
		if (f.lines[i].assign)
			f.lines[i].assign[0].spaces = 1;
		space_tokens(f.lines[i].assign, f.lines[i].n_assign);
	}
	align_cells(&f, false);
	align_cells(&f, true);
	c->text = write_tokens(&f, &c->len);
}

char *
hcl_format(struct hcl *h, const struct hcl_source *source, size_t *ret_len)
{
	struct format_call c = { .source = source };

	if (!hcl_parse_body(h, source) || !hcl_try(h, format, &c))
		return NULL;
	*ret_len = c.len;
	return c.text;
}
