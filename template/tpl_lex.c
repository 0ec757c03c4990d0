/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_lex.c: splits a template into tokens. Runs in: template-renderer. */
#include "template/tpl_lex.h"

#include <stdio.h>
#include <string.h>

#include "template/go_text.h"

#define END_OF_TEXT (~(uint32_t)0)
#define SPACES      " \t\r\n"

static const char *
here(const struct tpl_lexer *l)
{
	return l->source->text + l->at;
}

static size_t
left_over(const struct tpl_lexer *l)
{
	return l->source->len - l->at;
}

static bool
begins(const struct tpl_lexer *l, size_t more, const char *s)
{
	size_t n = strlen(s);

	return left_over(l) >= more + n && memcmp(here(l) + more, s, n) == 0;
}

static bool
is_space(uint32_t ch)
{
	return ch == ' ' || ch == '\t' || ch == '\r' || ch == '\n';
}

static bool
is_word_char(uint32_t ch)
{
	return ch == '_' || (ch != END_OF_TEXT && (go_is_letter(ch) || go_is_digit(ch)));
}

static uint32_t
peek(const struct tpl_lexer *l, size_t *ret_len)
{
	*ret_len = 0;
	return left_over(l) > 0 ? go_char(here(l), left_over(l), ret_len) : END_OF_TEXT;
}

static uint32_t
peek_char(const struct tpl_lexer *l)
{
	size_t n;

	return peek(l, &n);
}

static uint32_t
next_char(struct tpl_lexer *l)
{
	size_t n;
	uint32_t ch = peek(l, &n);

	l->at += n;
	l->line += ch == '\n';
	return ch;
}

/* Goes on by n bytes. */
static void
skip(struct tpl_lexer *l, size_t n)
{
	for (const char *s = here(l), *end = s + n; (s = memchr(s, '\n', (size_t)(end - s))); s++)
		l->line++;
	l->at += n;
}

static void
ignore(struct tpl_lexer *l)
{
	l->start = l->at;
	l->start_line = l->line;
}

static struct tpl_token
token(struct tpl_lexer *l, enum tpl_token_kind kind)
{
	struct tpl_token t = { .kind = kind,
		.at = (uint32_t)l->start,
		.text = l->source->text + l->start,
		.len = l->at - l->start,
		.line = l->start_line };

	ignore(l);
	return t;
}

static struct tpl_token
error(struct tpl_lexer *l, const char *sentence)
{
	l->failed = true;
	return (struct tpl_token){ .kind = TPL_TOK_ERROR,
		.at = (uint32_t)l->start,
		.text = sentence,
		.len = strlen(sentence),
		.line = l->start_line };
}

/* "{{- ": the marker of n bytes after the delimiter. */
static bool
trims_left(const char *s, size_t n)
{
	return n >= 2 && s[0] == '-' && is_space((unsigned char)s[1]);
}

static bool
at_right(const struct tpl_lexer *l, bool *ret_trim)
{
	*ret_trim = left_over(l) >= 2 && is_space((unsigned char)here(l)[0]) && here(l)[1] == '-' &&
		    begins(l, 2, l->source->right);
	return *ret_trim || begins(l, 0, l->source->right);
}

static void
skip_spaces(struct tpl_lexer *l)
{
	size_t n = 0;

	while (n < left_over(l) && is_space((unsigned char)here(l)[n]))
		n++;
	skip(l, n);
}

/* Reads over the delimiter, and the spaces that its marker removes. */
static struct tpl_token
lex_right(struct tpl_lexer *l, bool trim)
{
	struct tpl_token t;

	if (trim) {
		skip(l, 2);
		ignore(l);
	}
	l->at += strlen(l->source->right);
	t = token(l, TPL_TOK_RIGHT);
	if (trim) {
		skip_spaces(l);
		ignore(l);
	}
	l->inside = false;
	return t;
}

/* At a comment. Returns a sentence, or NULL after it. */
static const char *
skip_comment(struct tpl_lexer *l)
{
	const char *end = memmem(here(l) + 2, left_over(l) - 2, "*/", 2);
	bool trim;

	if (!end)
		return "unclosed comment";
	skip(l, (size_t)(end + 2 - here(l)));
	if (!at_right(l, &trim))
		return "comment ends before closing delimiter";
	skip(l, (trim ? 2 : 0) + strlen(l->source->right));
	if (trim)
		skip_spaces(l);
	ignore(l);
	return NULL;
}

/* Text up to an action or the end. Spaces before an action with a marker are no part of it. */
static bool
lex_text(struct tpl_lexer *l, struct tpl_token *ret)
{
	const char *left = l->source->left;
	const char *action = memmem(here(l), left_over(l), left, strlen(left));
	size_t n = action ? (size_t)(action - here(l)) : left_over(l), kept = n;

	if (action && trims_left(action + strlen(left), left_over(l) - n - strlen(left)))
		while (kept > 0 && is_space((unsigned char)here(l)[kept - 1]))
			kept--;
	skip(l, kept);
	*ret = token(l, TPL_TOK_TEXT);
	skip(l, n - kept);
	ignore(l);
	return kept > 0;
}

static struct tpl_token
lex_outside(struct tpl_lexer *l)
{
	const char *left = l->source->left, *why;
	struct tpl_token t;
	size_t marker;

	for (;;) {
		if (lex_text(l, &t))
			return t;
		if (left_over(l) == 0)
			return token(l, TPL_TOK_END);
		l->at += strlen(left);
		marker = trims_left(here(l), left_over(l)) ? 2 : 0;
		if (!begins(l, marker, "/*"))
			break;
		skip(l, marker);
		ignore(l);
		why = skip_comment(l);
		if (why)
			return error(l, why);
	}
	t = token(l, TPL_TOK_LEFT);
	l->inside = true;
	skip(l, marker);
	ignore(l);
	l->parentheses = 0;
	return t;
}

static bool
at_terminator(const struct tpl_lexer *l)
{
	uint32_t ch = peek_char(l);

	return ch == END_OF_TEXT || is_space(ch) || (ch < 0x80 && strchr(".,|:)(", (int)ch)) ||
	       begins(l, 0, l->source->right);
}

/* U+0041 'A' */
static const char *
describe_char(struct tpl_lexer *l, uint32_t ch)
{
	struct text t = { .arena = l->arena };

	if (ch == END_OF_TEXT)
		return "U+FFFFFFFFFFFFFFFF";
	text_add(&t, arena_printf(l->arena, "U+%04X", ch));
	if (go_is_print(ch)) {
		text_add(&t, " '");
		go_add_char(&t, ch);
		text_add(&t, "'");
	}
	return t.text;
}

static struct tpl_token
bad_char(struct tpl_lexer *l)
{
	return error(l, arena_printf(l->arena, "bad character %s", describe_char(l, peek_char(l))));
}

static void
skip_word(struct tpl_lexer *l)
{
	while (is_word_char(peek_char(l)))
		(void)next_char(l);
}

static struct tpl_token
lex_word(struct tpl_lexer *l)
{
	static const struct {
		const char *word;
		enum tpl_token_kind kind;
	} words[] = { { "true", TPL_TOK_BOOL }, { "false", TPL_TOK_BOOL },
		{ "block", TPL_TOK_BLOCK }, { "break", TPL_TOK_BREAK },
		{ "continue", TPL_TOK_CONTINUE }, { "define", TPL_TOK_DEFINE },
		{ "else", TPL_TOK_ELSE }, { "end", TPL_TOK_DONE }, { "if", TPL_TOK_IF },
		{ "nil", TPL_TOK_NIL }, { "range", TPL_TOK_RANGE },
		{ "template", TPL_TOK_TEMPLATE }, { "with", TPL_TOK_WITH } };
	const char *s = l->source->text + l->start;
	size_t n;

	skip_word(l);
	if (!at_terminator(l))
		return bad_char(l);
	n = l->at - l->start;
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strlen(words[i].word) == n && memcmp(words[i].word, s, n) == 0)
			return token(l, words[i].kind);
	return token(l, TPL_TOK_WORD);
}

/* After "." or "$". */
static struct tpl_token
lex_name(struct tpl_lexer *l, enum tpl_token_kind kind)
{
	if (at_terminator(l))
		return token(l, kind == TPL_TOK_FIELD ? TPL_TOK_DOT : kind);
	skip_word(l);
	return at_terminator(l) ? token(l, kind) : bad_char(l);
}

/* After the quote. A backslash takes the next character with it. */
static struct tpl_token
lex_quoted(struct tpl_lexer *l, uint32_t quote, enum tpl_token_kind kind, const char *unterminated)
{
	for (;;) {
		uint32_t ch = next_char(l);

		if (ch == quote)
			return token(l, kind);
		if (ch == '\\' && quote != '`')
			ch = next_char(l);
		if (ch == END_OF_TEXT || (ch == '\n' && quote != '`'))
			return error(l, unterminated);
	}
}

static bool
accept(struct tpl_lexer *l, const char *some)
{
	if (left_over(l) == 0 || !*here(l) || !strchr(some, *here(l)))
		return false;
	l->at++;
	return true;
}

static void
accept_all(struct tpl_lexer *l, const char *some)
{
	while (accept(l, some))
		;
}

static bool
scan_number(struct tpl_lexer *l)
{
	const char *digits = "0123456789_", *exponent = "eE";

	(void)accept(l, "+-");
	if (accept(l, "0")) {
		if (accept(l, "xX")) {
			digits = "0123456789abcdefABCDEF_";
			exponent = "pP";
		} else if (accept(l, "oO")) {
			digits = "01234567_";
			exponent = "";
		} else if (accept(l, "bB")) {
			digits = "01_";
			exponent = "";
		}
	}
	accept_all(l, digits);
	if (accept(l, "."))
		accept_all(l, digits);
	if (accept(l, exponent)) {
		(void)accept(l, "+-");
		accept_all(l, "0123456789_");
	}
	(void)accept(l, "i");
	if (!is_word_char(peek_char(l)))
		return true;
	(void)next_char(l);
	return false;
}

static struct tpl_token
lex_number(struct tpl_lexer *l)
{
	struct text t = { .arena = l->arena };
	bool good = scan_number(l);

	if (good && left_over(l) > 0 && (*here(l) == '+' || *here(l) == '-')) {
		if (scan_number(l) && l->source->text[l->at - 1] == 'i')
			return token(l, TPL_TOK_COMPLEX);
		good = false;
	}
	if (good)
		return token(l, TPL_TOK_NUMBER);
	text_add(&t, "bad number syntax: ");
	go_quote(&t, l->source->text + l->start, l->at - l->start, false);
	return error(l, t.text);
}

/* A marker with its space before the delimiter is no part of the spaces. */
static struct tpl_token
lex_spaces(struct tpl_lexer *l)
{
	size_t n = 0;
	bool trim;

	while (n < left_over(l) && is_space((unsigned char)here(l)[n]))
		n++;
	skip(l, n - 1);
	if (at_right(l, &trim) && trim)
		return n == 1 ? lex_right(l, true) : token(l, TPL_TOK_SPACE);
	skip(l, 1);
	return token(l, TPL_TOK_SPACE);
}

static struct tpl_token
lex_parenthesis(struct tpl_lexer *l, uint32_t ch)
{
	if (ch == '(') {
		l->parentheses++;
		return token(l, TPL_TOK_OPEN);
	}
	if (l->parentheses == 0)
		return error(l, "unexpected right paren");
	l->parentheses--;
	return token(l, TPL_TOK_CLOSE);
}

static struct tpl_token
lex_sign(struct tpl_lexer *l, uint32_t ch)
{
	switch (ch) {
	case '=':
		return token(l, TPL_TOK_ASSIGN);
	case ':':
		return next_char(l) == '=' ? token(l, TPL_TOK_DECLARE) : error(l, "expected :=");
	case '|':
		return token(l, TPL_TOK_PIPE);
	case '"':
		return lex_quoted(l, ch, TPL_TOK_STRING, "unterminated quoted string");
	case '`':
		return lex_quoted(l, ch, TPL_TOK_RAW_STRING, "unterminated raw quoted string");
	case '\'':
		return lex_quoted(l, ch, TPL_TOK_CHARACTER, "unterminated character constant");
	case '$':
		return lex_name(l, TPL_TOK_VARIABLE);
	case '.':
		return lex_name(l, TPL_TOK_FIELD);
	case '(':
	case ')':
		return lex_parenthesis(l, ch);
	default:
		break;
	}
	if (ch < 0x80 && go_is_print(ch))
		return token(l, TPL_TOK_CHAR);
	return error(l,
	    arena_printf(l->arena, "unrecognized character in action: %s", describe_char(l, ch)));
}

static struct tpl_token
lex_inside(struct tpl_lexer *l)
{
	bool trim;
	uint32_t ch;

	if (at_right(l, &trim))
		return l->parentheses == 0 ? lex_right(l, trim) : error(l, "unclosed left paren");
	ch = peek_char(l);
	if (ch == END_OF_TEXT)
		return error(l, "unclosed action");
	if (is_space(ch))
		return lex_spaces(l);
	if (ch == '+' || ch == '-' || (ch >= '0' && ch <= '9') ||
	    (ch == '.' && left_over(l) > 1 && here(l)[1] >= '0' && here(l)[1] <= '9'))
		return lex_number(l);
	if (is_word_char(ch))
		return lex_word(l);
	return lex_sign(l, next_char(l));
}

struct tpl_token
tpl_lex(struct tpl_lexer *l)
{
	arena_step(l->arena, 1);
	if (l->failed)
		return (struct tpl_token){ .kind = TPL_TOK_END, .text = "EOF", .len = 3 };
	return l->inside ? lex_inside(l) : lex_outside(l);
}

const char *
tpl_token_text(struct arena *a, const struct tpl_token *t)
{
	struct text out = { .arena = a };
	size_t n = 0, len;

	if (t->kind == TPL_TOK_END)
		return "EOF";
	if (t->kind == TPL_TOK_ERROR)
		return t->text;
	if (t->kind > TPL_TOK_KEYWORD || t->kind == TPL_TOK_DOT)
		return arena_printf(a, "<%.*s>", (int)t->len, t->text);
	for (int chars = 0; chars < 10 && n < t->len && t->len > 10; chars++, n += len)
		(void)go_char(t->text + n, t->len - n, &len);
	go_quote(&out, t->text, t->len > 10 ? n : t->len, false);
	if (t->len > 10)
		text_add(&out, "...");
	return out.text;
}
