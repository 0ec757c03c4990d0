// SPDX-License-Identifier: Apache-2.0
/* hcl.c: HCL and JSON to a tree. Runs in: the launcher's configuration child. */
#include "common/hcl.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/utf8.h"

/* Everything of one document: nodes and strings. The densest text, "[1,1,…", has a node in every
 * two bytes. */
#define ARENA_SIZE_MAX ((size_t)16 * 1024 * 1024)
#define ARENA_PER_BYTE (sizeof(struct hcl_node) / 2 + 16)

struct parser {
	const char *name;
	const char *at, *end;
	struct hcl_pos pos;
	unsigned depth;
	bool json;
	char *arena;
	size_t arena_size, used;
	bool full;
	struct err *e;
};

const char *
hcl_kind_name(enum hcl_kind kind)
{
	static const char *const names[] = {
		[HCL_NULL] = "null",
		[HCL_BOOL] = "a boolean",
		[HCL_NUMBER] = "a number",
		[HCL_STRING] = "a string",
		[HCL_LIST] = "a list",
		[HCL_OBJECT] = "a block or object",
	};

	return names[kind];
}

/* --- characters --- */

static int
peek_at(const struct parser *p, size_t n)
{
	return n < (size_t)(p->end - p->at) ? (unsigned char)p->at[n] : -1;
}

static int
peek(const struct parser *p)
{
	return peek_at(p, 0);
}

static char
take(struct parser *p)
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
is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static bool
is_word_start(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool
is_word(int c)
{
	return is_word_start(c) || is_digit(c) || c == '-' || c == '.';
}

static bool
is_control(int c)
{
	return (c >= 0 && c < 0x20 && c != '\t') || c == 0x7f;
}

/* --- errors --- */

static int
fail_at(struct parser *p, struct hcl_pos pos, const char *sentence)
{
	return err_say(p->e, -EINVAL, "%s:%u:%u: %s", p->name, pos.line, pos.column, sentence);
}

static int
fail_full(struct parser *p)
{
	return err_say(p->e, -E2BIG,
	    "%s:%u:%u: the configuration holds too much (limit: %zu MiB in memory)", p->name,
	    p->pos.line, p->pos.column, ARENA_SIZE_MAX >> 20);
}

/* What stands at p->at, for a human. */
static void
describe(const struct parser *p, char *ret, size_t size)
{
	int c = peek(p), n = 1;

	if (c < 0) {
		(void)snprintf(ret, size, "the end of the file");
	} else if (c == '\n' || (c == '\r' && peek_at(p, 1) == '\n')) {
		(void)snprintf(ret, size, "the end of the line");
	} else if (is_control(c)) {
		(void)snprintf(ret, size, "control character 0x%02x", (unsigned)c);
	} else {
		while (n < 32 && (is_word(c) ? is_word(peek_at(p, (size_t)n))
					     : (peek_at(p, (size_t)n) & 0xc0) == 0x80))
			n++;
		(void)snprintf(ret, size, "'%.*s'", n, p->at);
	}
}

static int
expected(struct parser *p, const char *what)
{
	char found[64];

	describe(p, found, sizeof found);
	return err_say(p->e, -EINVAL, "%s:%u:%u: expected %s, found %s", p->name, p->pos.line,
	    p->pos.column, what, found);
}

/* --- memory --- */

static void *
arena_take(struct parser *p, size_t size)
{
	size_t at = (p->used + 15) & ~(size_t)15;

	if (p->full || at + size > p->arena_size) {
		p->full = true;
		return NULL;
	}
	p->used = at + size;
	return memset(p->arena + at, 0, size);
}

/* Text grows at the arena's end, because nothing else is allocated while a string is read. */
static void
put(struct parser *p, char c)
{
	if (p->used >= p->arena_size)
		p->full = true;
	else
		p->arena[p->used++] = c;
}

static int
put_end(struct parser *p, size_t start, const char **ret)
{
	put(p, '\0');
	if (p->full)
		return fail_full(p);
	*ret = p->arena + start;
	return 0;
}

static void
put_utf8(struct parser *p, uint32_t c)
{
	if (c < 0x80) {
		put(p, (char)c);
		return;
	}
	if (c < 0x800) {
		put(p, (char)(0xc0 | c >> 6));
	} else {
		if (c < 0x10000) {
			put(p, (char)(0xe0 | c >> 12));
		} else {
			put(p, (char)(0xf0 | c >> 18));
			put(p, (char)(0x80 | (c >> 12 & 0x3f)));
		}
		put(p, (char)(0x80 | (c >> 6 & 0x3f)));
	}
	put(p, (char)(0x80 | (c & 0x3f)));
}

/* --- space and comments --- */

static int
skip_block_comment(struct parser *p)
{
	struct hcl_pos start = p->pos;

	(void)take(p);
	(void)take(p);
	for (;;) {
		if (peek(p) < 0)
			return fail_at(p, start,
			    "expected '*/' to end this comment, found the end of the file");
		if (take(p) == '*' && peek(p) == '/') {
			(void)take(p);
			return 0;
		}
	}
}

static int
skip_space(struct parser *p)
{
	for (;;) {
		int c = peek(p), r;

		if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
			(void)take(p);
		} else if (!p->json && (c == '#' || (c == '/' && peek_at(p, 1) == '/'))) {
			while (peek(p) >= 0 && peek(p) != '\n')
				(void)take(p);
		} else if (!p->json && c == '/' && peek_at(p, 1) == '*') {
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
take_hex(struct parser *p, unsigned digits, uint32_t *ret)
{
	uint32_t v = 0;

	for (unsigned i = 0; i < digits; i++) {
		int c = peek(p), low = c | 0x20;

		if (is_digit(c))
			v = v << 4 | (uint32_t)(c - '0');
		else if (low >= 'a' && low <= 'f')
			v = v << 4 | (uint32_t)(low - 'a' + 10);
		else
			return expected(p,
			    digits == 4 ? "four hexadecimal digits" : "eight hexadecimal digits");
		(void)take(p);
	}
	*ret = v;
	return 0;
}

/* Behind "\u" or "\U". JSON writes what is beyond U+FFFF as two surrogates. */
static int
parse_unicode(struct parser *p, struct hcl_pos start, unsigned digits)
{
	uint32_t c = 0, low = 0;
	int r;

	r = take_hex(p, digits, &c);
	if (r < 0)
		return r;
	if (c >= 0xd800 && c < 0xdc00 && digits == 4) {
		if (peek(p) != '\\' || peek_at(p, 1) != 'u')
			return expected(p, "the second half of a surrogate pair");
		(void)take(p);
		(void)take(p);
		r = take_hex(p, 4, &low);
		if (r < 0)
			return r;
		if (low < 0xdc00 || low > 0xdfff)
			return fail_at(p, start,
			    "expected a surrogate pair, found another character behind its first "
			    "half");
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	if (c == 0 || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		return fail_at(p, start,
		    "expected the number of a character, found one that is none (or NUL)");
	put_utf8(p, c);
	return 0;
}

static int
parse_escape(struct parser *p)
{
	static const struct {
		char letter, means;
		bool json_only;
	} escapes[] = { { 'n', '\n', false }, { 't', '\t', false }, { 'r', '\r', false },
		{ '"', '"', false }, { '\\', '\\', false }, { '/', '/', true }, { 'b', '\b', true },
		{ 'f', '\f', true } };
	struct hcl_pos start = p->pos;
	int c;

	(void)take(p);
	c = peek(p);
	if (c == 'u' || (c == 'U' && !p->json)) {
		(void)take(p);
		return parse_unicode(p, start, c == 'u' ? 4 : 8);
	}
	for (size_t i = 0; i < ELEMENTSOF(escapes); i++)
		if (c == escapes[i].letter && (p->json || !escapes[i].json_only)) {
			(void)take(p);
			put(p, escapes[i].means);
			return 0;
		}
	return expected(p, "one of n t r \" \\ u behind a backslash");
}

/* "$${" is the text "${"; "${" alone would be an expression, of which a configuration has none. */
static int
parse_dollar(struct parser *p)
{
	if (peek_at(p, 1) == '{')
		return expected(
		    p, "text (expressions do not exist here; \"$${\" is a plain \"${\")");
	if (peek_at(p, 1) == '$' && peek_at(p, 2) == '{') {
		(void)take(p);
		put(p, take(p));
		put(p, take(p));
		return 0;
	}
	put(p, take(p));
	return 0;
}

static int
parse_string(struct parser *p, const char **ret)
{
	size_t start = p->used;
	int r = 0;

	(void)take(p);
	while (peek(p) != '"') {
		int c = peek(p);

		if (c < 0 || is_control(c))
			return expected(p, "a closing '\"'");
		if (c == '\\')
			r = parse_escape(p);
		else if (c == '$' && !p->json)
			r = parse_dollar(p);
		else
			put(p, take(p));
		if (r < 0)
			return r;
	}
	(void)take(p);
	return put_end(p, start, ret);
}

static int
parse_word(struct parser *p, const char **ret)
{
	size_t start = p->used;

	while (is_word(peek(p)))
		put(p, take(p));
	return put_end(p, start, ret);
}

/* --- heredocs --- */

static const char *
line_end(const struct parser *p, const char *at)
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

/* Finds the line that ends a heredoc and the indentation that all its lines have. NULL if there is
 * none. */
static const char *
heredoc_end(const struct parser *p, const char *marker, size_t *ret_indent)
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
heredoc_line(struct parser *p, size_t indent)
{
	int r = 0;

	for (size_t i = 0; i < indent && (peek(p) == ' ' || peek(p) == '\t'); i++)
		(void)take(p);
	while (peek(p) != '\n') {
		if (peek(p) == '\r' && peek_at(p, 1) == '\n')
			(void)take(p);
		else if (is_control(peek(p)))
			return expected(p, "text");
		else if (peek(p) == '$')
			r = parse_dollar(p);
		else
			put(p, take(p));
		if (r < 0)
			return r;
	}
	put(p, take(p));
	return 0;
}

static int
parse_heredoc(struct parser *p, const char **ret)
{
	struct hcl_pos begin = p->pos;
	const char *marker, *end;
	size_t indent = 0, start;
	bool strip;
	int r;

	(void)take(p);
	(void)take(p);
	strip = peek(p) == '-';
	if (strip)
		(void)take(p);
	if (!is_word_start(peek(p)))
		return expected(p, "the word that ends this heredoc");
	r = parse_word(p, &marker);
	if (r < 0)
		return r;
	if (peek(p) == '\r')
		(void)take(p);
	if (peek(p) != '\n')
		return expected(p, "the end of the line");
	(void)take(p);
	end = heredoc_end(p, marker, &indent);
	if (!end)
		return fail_at(p, begin,
		    "expected a line with this heredoc's word alone, found the end of the file");
	start = p->used;
	while (p->at < end) {
		r = heredoc_line(p, strip ? indent : 0);
		if (r < 0)
			return r;
	}
	while (is_word(peek(p)) || peek(p) == ' ' || peek(p) == '\t')
		(void)take(p);
	return put_end(p, start, ret);
}

/* --- values --- */

static int parse_value(struct parser *p, struct hcl_node *node);
static int parse_members(struct parser *p, struct hcl_node *object, int closing);

static int
enter(struct parser *p)
{
	if (++p->depth > HCL_DEPTH_MAX)
		return expected(p, "at most 32 levels of nesting");
	return 0;
}

static struct hcl_node *
node_add(struct parser *p, struct hcl_node ***tail)
{
	struct hcl_node *node = arena_take(p, sizeof *node);

	if (!node) {
		(void)fail_full(p);
		return NULL;
	}
	node->at = p->pos;
	**tail = node;
	*tail = &node->next;
	return node;
}

static int
take_digits(struct parser *p)
{
	if (!is_digit(peek(p)))
		return expected(p, "a digit");
	while (is_digit(peek(p)))
		put(p, take(p));
	return 0;
}

static int
parse_number(struct parser *p, struct hcl_node *node)
{
	size_t start = p->used;
	int r;

	node->kind = HCL_NUMBER;
	if (peek(p) == '-')
		put(p, take(p));
	if (peek(p) == '0' && is_digit(peek_at(p, 1)))
		return expected(p, "a number without a leading zero");
	r = take_digits(p);
	if (r == 0 && peek(p) == '.') {
		put(p, take(p));
		r = take_digits(p);
	}
	if (r == 0 && (peek(p) == 'e' || peek(p) == 'E')) {
		put(p, take(p));
		if (peek(p) == '+' || peek(p) == '-')
			put(p, take(p));
		r = take_digits(p);
	}
	if (r < 0)
		return r;
	if (is_word(peek(p)))
		return expected(p, "the end of the number");
	return put_end(p, start, &node->text);
}

static int
parse_list(struct parser *p, struct hcl_node *list)
{
	struct hcl_node **tail = &list->first, *node;
	bool more = true;
	int r;

	list->kind = HCL_LIST;
	r = enter(p);
	if (r < 0)
		return r;
	(void)take(p);
	while ((r = skip_space(p)) == 0 && (peek(p) != ']' || (p->json && list->first && more))) {
		if (!more)
			return expected(p, "',' or ']'");
		node = node_add(p, &tail);
		r = node ? parse_value(p, node) : -E2BIG;
		if (r < 0 || (r = skip_space(p)) < 0)
			return r;
		more = peek(p) == ',';
		if (more)
			(void)take(p);
	}
	if (r < 0)
		return r;
	(void)take(p);
	p->depth--;
	return 0;
}

static int
parse_object(struct parser *p, struct hcl_node *object)
{
	int r = enter(p);

	if (r < 0)
		return r;
	(void)take(p);
	r = parse_members(p, object, '}');
	p->depth--;
	return r;
}

static int
parse_keyword(struct parser *p, struct hcl_node *node)
{
	static const struct {
		const char *word;
		enum hcl_kind kind;
	} words[] = { { "true", HCL_BOOL }, { "false", HCL_BOOL }, { "null", HCL_NULL } };

	for (size_t i = 0; i < ELEMENTSOF(words); i++) {
		size_t len = strlen(words[i].word);

		if ((size_t)(p->end - p->at) < len || memcmp(p->at, words[i].word, len) != 0 ||
		    is_word(peek_at(p, len)))
			continue;
		while (len-- > 0)
			(void)take(p);
		node->kind = words[i].kind;
		node->text = words[i].word;
		return 0;
	}
	return expected(p, "a value (a string, a number, true, false, a list or an object)");
}

static int
parse_value(struct parser *p, struct hcl_node *node)
{
	int c, r = skip_space(p);

	if (r < 0)
		return r;
	node->at = p->pos;
	c = peek(p);
	if (c == '"' || (!p->json && c == '<' && peek_at(p, 1) == '<')) {
		node->kind = HCL_STRING;
		return c == '"' ? parse_string(p, &node->text) : parse_heredoc(p, &node->text);
	}
	if (c == '[')
		return parse_list(p, node);
	if (c == '{')
		return parse_object(p, node);
	if (is_digit(c) || c == '-')
		return parse_number(p, node);
	return parse_keyword(p, node);
}

/* --- members: attributes and blocks --- */

static int
parse_key(struct parser *p, struct hcl_node *node, const char *what)
{
	node->key_at = node->at = p->pos;
	if (peek(p) == '"')
		return parse_string(p, &node->key);
	if (p->json || !is_word_start(peek(p)))
		return expected(p, what);
	return parse_word(p, &node->key);
}

/* To what follows a name: '=', ':', '{' wherever they are, a label only on the same line, or its
 * absence is reported there. */
static int
to_next_of_member(struct parser *p)
{
	const char *at;
	struct hcl_pos pos;
	int c, r;

	while (peek(p) == ' ' || peek(p) == '\t')
		(void)take(p);
	at = p->at;
	pos = p->pos;
	r = skip_space(p);
	c = peek(p);
	if (r < 0 || c == '{' || c == '=' || c == ':' || p->json)
		return r;
	if ((c == '"' || is_word_start(c)) && p->pos.line == pos.line)
		return 0;
	p->at = at;
	p->pos = pos;
	return expected(p, "'=' and a value, or '{' and a block");
}

/* Behind a block's type: its labels, each an object around the next, then its body. */
static int
parse_block(struct parser *p, struct hcl_node *node)
{
	unsigned depth = p->depth;
	int r;

	while (peek(p) == '"' || is_word_start(peek(p))) {
		struct hcl_node **inside = &node->first;

		r = enter(p);
		if (r < 0)
			return r;
		node->kind = HCL_OBJECT;
		node = node_add(p, &inside);
		r = node ? parse_key(p, node, "a label") : -E2BIG;
		if (r < 0 || (r = to_next_of_member(p)) < 0)
			return r;
	}
	if (peek(p) != '{')
		return expected(p, "a label or '{' and a block");
	r = parse_object(p, node);
	p->depth = depth;
	return r;
}

static int
parse_member(struct parser *p, struct hcl_node *node)
{
	int c, r;

	r = parse_key(p, node, p->json ? "'}' or a key in quotes" : "a name or a block");
	if (r < 0 || (r = to_next_of_member(p)) < 0)
		return r;
	c = peek(p);
	if (c == ':' || (c == '=' && !p->json)) {
		(void)take(p);
		return parse_value(p, node);
	}
	return p->json ? expected(p, "':' and a value") : parse_block(p, node);
}

/* Up to closing, which is '}' or -1 for the end of the file. */
static int
parse_members(struct parser *p, struct hcl_node *object, int closing)
{
	struct hcl_node **tail = &object->first, *node;
	bool comma = false;
	int r;

	object->kind = HCL_OBJECT;
	while ((r = skip_space(p)) == 0 && (peek(p) != closing || (p->json && comma))) {
		if (p->json && object->first && !comma)
			return expected(p, "',' or '}'");
		if (closing == '}' && peek(p) < 0)
			return expected(p, "'}'");
		node = node_add(p, &tail);
		r = node ? parse_member(p, node) : -E2BIG;
		if (r < 0 || (r = skip_space(p)) < 0)
			return r;
		comma = peek(p) == ',';
		if (comma)
			(void)take(p);
	}
	if (r == 0 && closing >= 0)
		(void)take(p);
	return r;
}

/* --- the whole text --- */

static int
check_utf8(struct parser *p)
{
	const char *start = p->at;
	struct hcl_pos pos = p->pos;

	while (p->at < p->end) {
		size_t n = utf8_char_length(p->at, (size_t)(p->end - p->at));

		if (n == 0 || *p->at == '\0')
			return fail_at(
			    p, p->pos, "expected text in UTF-8, found a byte that is none");
		while (n-- > 0)
			(void)take(p);
	}
	p->at = start;
	p->pos = pos;
	return 0;
}

static int
parse_text(struct parser *p, struct hcl_node **ret)
{
	struct hcl_node *root = NULL, **tail = &root;
	int r;

	if (p->end - p->at >= 3 && memcmp(p->at, "\xef\xbb\xbf", 3) == 0)
		p->at += 3;
	r = check_utf8(p);
	if (r < 0 || (r = skip_space(p)) < 0)
		return r;
	if (!node_add(p, &tail))
		return -E2BIG;
	p->json = peek(p) == '{';
	r = p->json ? parse_object(p, root) : parse_members(p, root, -1);
	if (r < 0 || (r = skip_space(p)) < 0)
		return r;
	if (peek(p) >= 0)
		return expected(p, "the end of the file");
	*ret = root;
	return 0;
}

int
hcl_parse(const char *text, size_t len, const char *name, struct hcl_doc *ret, struct err *e)
{
	struct parser p = { .name = name, .at = text, .end = text + len, .pos = { 1, 1 }, .e = e };
	cleanup_free char *arena = NULL;
	struct hcl_node *root = NULL;
	int r;

	if (len > HCL_BYTES_MAX)
		return err_say(e, -E2BIG, "%s: a configuration file may have 1 MiB", name);
	p.arena_size = 4096 + len * ARENA_PER_BYTE;
	if (p.arena_size > ARENA_SIZE_MAX)
		p.arena_size = ARENA_SIZE_MAX;
	p.arena = arena = malloc(p.arena_size);
	if (!arena)
		return err_set(e, -ENOMEM, "read %s", name);
	r = parse_text(&p, &root);
	if (r < 0)
		return r;
	*ret = (struct hcl_doc){ .root = root, .arena = steal_ptr(&arena) };
	return 0;
}

void
hcl_doc_done(struct hcl_doc *doc)
{
	free(doc->arena);
	*doc = (struct hcl_doc){ 0 };
}
