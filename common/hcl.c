// SPDX-License-Identifier: Apache-2.0
/* hcl.c: parses HCL and JSON into a tree: values, members, blocks. Runs in: the launcher's
 * configuration child, supervisor. */
#include "common/hcl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/hcl_parser.h"
#include "common/utf8.h"

/* The densest text, "[1,1,…", has one node for each two bytes. */
#define ARENA_PER_BYTE (sizeof(struct hcl_node) / 2 + 16)

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

/* --- values --- */

static int parse_value(struct hcl_parser *p, struct hcl_node *node);
static int parse_members(struct hcl_parser *p, struct hcl_node *object, int closing);

static int
enter(struct hcl_parser *p)
{
	if (++p->depth > HCL_DEPTH_MAX)
		return hcl_expected(p, "at most 32 levels of nesting");
	return 0;
}

static struct hcl_node *
node_add(struct hcl_parser *p, struct hcl_node ***tail)
{
	struct hcl_node *node = hcl_arena_take(p, sizeof *node);

	if (!node) {
		(void)hcl_fail_full(p);
		return NULL;
	}
	node->at = p->pos;
	**tail = node;
	*tail = &node->next;
	return node;
}

static int
take_digits(struct hcl_parser *p)
{
	if (!hcl_is_digit(hcl_peek(p)))
		return hcl_expected(p, "a digit");
	while (hcl_is_digit(hcl_peek(p)))
		hcl_put(p, hcl_take(p));
	return 0;
}

static int
parse_number(struct hcl_parser *p, struct hcl_node *node)
{
	size_t start = p->used;
	int r;

	node->kind = HCL_NUMBER;
	if (hcl_peek(p) == '-')
		hcl_put(p, hcl_take(p));
	if (hcl_peek(p) == '0' && hcl_is_digit(hcl_peek_at(p, 1)))
		return hcl_expected(p, "a number without a leading zero");
	r = take_digits(p);
	if (r == 0 && hcl_peek(p) == '.') {
		hcl_put(p, hcl_take(p));
		r = take_digits(p);
	}
	if (r == 0 && (hcl_peek(p) == 'e' || hcl_peek(p) == 'E')) {
		hcl_put(p, hcl_take(p));
		if (hcl_peek(p) == '+' || hcl_peek(p) == '-')
			hcl_put(p, hcl_take(p));
		r = take_digits(p);
	}
	if (r < 0)
		return r;
	if (hcl_is_word(hcl_peek(p)))
		return hcl_expected(p, "the end of the number");
	return hcl_put_end(p, start, &node->text);
}

static int
parse_list(struct hcl_parser *p, struct hcl_node *list)
{
	struct hcl_node **tail = &list->first, *node;
	bool more = true;
	int r;

	list->kind = HCL_LIST;
	r = enter(p);
	if (r < 0)
		return r;
	(void)hcl_take(p);
	while ((r = hcl_skip_space(p)) == 0 &&
	       (hcl_peek(p) != ']' || (p->json && list->first && more))) {
		if (!more)
			return hcl_expected(p, "',' or ']'");
		node = node_add(p, &tail);
		r = node ? parse_value(p, node) : -E2BIG;
		if (r < 0 || (r = hcl_skip_space(p)) < 0)
			return r;
		more = hcl_peek(p) == ',';
		if (more)
			(void)hcl_take(p);
	}
	if (r < 0)
		return r;
	(void)hcl_take(p);
	p->depth--;
	return 0;
}

static int
parse_object(struct hcl_parser *p, struct hcl_node *object)
{
	int r = enter(p);

	if (r < 0)
		return r;
	(void)hcl_take(p);
	r = parse_members(p, object, '}');
	p->depth--;
	return r;
}

static int
parse_keyword(struct hcl_parser *p, struct hcl_node *node)
{
	static const struct {
		const char *word;
		enum hcl_kind kind;
	} words[] = { { "true", HCL_BOOL }, { "false", HCL_BOOL }, { "null", HCL_NULL } };

	for (size_t i = 0; i < ELEMENTSOF(words); i++) {
		size_t len = strlen(words[i].word);

		if ((size_t)(p->end - p->at) < len || memcmp(p->at, words[i].word, len) != 0 ||
		    hcl_is_word(hcl_peek_at(p, len)))
			continue;
		while (len-- > 0)
			(void)hcl_take(p);
		node->kind = words[i].kind;
		node->text = words[i].word;
		return 0;
	}
	return hcl_expected(p, "a value (a string, a number, true, false, a list or an object)");
}

static int
parse_value(struct hcl_parser *p, struct hcl_node *node)
{
	int c, r = hcl_skip_space(p);

	if (r < 0)
		return r;
	node->at = p->pos;
	c = hcl_peek(p);
	if (c == '"' || (!p->json && c == '<' && hcl_peek_at(p, 1) == '<')) {
		node->kind = HCL_STRING;
		return c == '"' ? hcl_parse_string(p, &node->text)
				: hcl_parse_heredoc(p, &node->text);
	}
	if (c == '[')
		return parse_list(p, node);
	if (c == '{')
		return parse_object(p, node);
	if (hcl_is_digit(c) || c == '-')
		return parse_number(p, node);
	return parse_keyword(p, node);
}

/* --- members: attributes and blocks --- */

static int
parse_key(struct hcl_parser *p, struct hcl_node *node, const char *what)
{
	node->key_at = node->at = p->pos;
	if (hcl_peek(p) == '"')
		return hcl_parse_string(p, &node->key);
	if (p->json || !hcl_is_word_start(hcl_peek(p)))
		return hcl_expected(p, what);
	return hcl_parse_word(p, &node->key);
}

/* Skips to the character after a member's name. '=', ':' and '{' may be on a later line. A label
 * must be on the same line, so the error about a missing one is reported there. */
static int
to_next_of_member(struct hcl_parser *p)
{
	const char *at;
	struct hcl_pos pos;
	int c, r;

	while (hcl_peek(p) == ' ' || hcl_peek(p) == '\t')
		(void)hcl_take(p);
	at = p->at;
	pos = p->pos;
	r = hcl_skip_space(p);
	c = hcl_peek(p);
	if (r < 0 || c == '{' || c == '=' || c == ':' || p->json)
		return r;
	if ((c == '"' || hcl_is_word_start(c)) && p->pos.line == pos.line)
		return 0;
	p->at = at;
	p->pos = pos;
	return hcl_expected(p, "'=' and a value, or '{' and a block");
}

/* Parses what follows a block's type: its labels, each an object that contains the next, then its
 * body. */
static int
parse_block(struct hcl_parser *p, struct hcl_node *node)
{
	unsigned depth = p->depth;
	int r;

	while (hcl_peek(p) == '"' || hcl_is_word_start(hcl_peek(p))) {
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
	if (hcl_peek(p) != '{')
		return hcl_expected(p, "a label or '{' and a block");
	r = parse_object(p, node);
	p->depth = depth;
	return r;
}

static int
parse_member(struct hcl_parser *p, struct hcl_node *node)
{
	int c, r;

	r = parse_key(p, node, p->json ? "'}' or a key in quotes" : "a name or a block");
	if (r < 0 || (r = to_next_of_member(p)) < 0)
		return r;
	c = hcl_peek(p);
	if (c == ':' || (c == '=' && !p->json)) {
		(void)hcl_take(p);
		return parse_value(p, node);
	}
	return p->json ? hcl_expected(p, "':' and a value") : parse_block(p, node);
}

/* Parses members up to closing, which is '}', or -1 for the end of the file. */
static int
parse_members(struct hcl_parser *p, struct hcl_node *object, int closing)
{
	struct hcl_node **tail = &object->first, *node;
	bool comma = false;
	int r;

	object->kind = HCL_OBJECT;
	while ((r = hcl_skip_space(p)) == 0 && (hcl_peek(p) != closing || (p->json && comma))) {
		if (p->json && object->first && !comma)
			return hcl_expected(p, "',' or '}'");
		if (closing == '}' && hcl_peek(p) < 0)
			return hcl_expected(p, "'}'");
		node = node_add(p, &tail);
		r = node ? parse_member(p, node) : -E2BIG;
		if (r < 0 || (r = hcl_skip_space(p)) < 0)
			return r;
		comma = hcl_peek(p) == ',';
		if (comma)
			(void)hcl_take(p);
	}
	if (r == 0 && closing >= 0)
		(void)hcl_take(p);
	return r;
}

/* --- the whole text --- */

static int
check_utf8(struct hcl_parser *p)
{
	const char *start = p->at;
	struct hcl_pos pos = p->pos;

	while (p->at < p->end) {
		size_t n = utf8_char_length(p->at, (size_t)(p->end - p->at));

		if (n == 0 || *p->at == '\0')
			return hcl_fail_at(p, p->pos, "expected UTF-8 text, found an invalid byte");
		while (n-- > 0)
			(void)hcl_take(p);
	}
	p->at = start;
	p->pos = pos;
	return 0;
}

static int
parse_text(struct hcl_parser *p, struct hcl_node **ret)
{
	struct hcl_node *root = NULL, **tail = &root;
	int r;

	if (p->end - p->at >= 3 && memcmp(p->at, "\xef\xbb\xbf", 3) == 0)
		p->at += 3;
	r = check_utf8(p);
	if (r < 0 || (r = hcl_skip_space(p)) < 0)
		return r;
	if (!node_add(p, &tail))
		return -E2BIG;
	p->json = hcl_peek(p) == '{';
	r = p->json ? parse_object(p, root) : parse_members(p, root, -1);
	if (r < 0 || (r = hcl_skip_space(p)) < 0)
		return r;
	if (hcl_peek(p) >= 0)
		return hcl_expected(p, "the end of the file");
	*ret = root;
	return 0;
}

int
hcl_parse(const char *text, size_t len, const char *name, struct hcl_doc *ret, struct err *e)
{
	struct hcl_parser p = {
		.name = name, .at = text, .end = text + len, .pos = { 1, 1 }, .e = e
	};
	cleanup_free char *arena = NULL;
	struct hcl_node *root = NULL;
	int r;

	if (len > HCL_BYTES_MAX)
		return err_say(e, -E2BIG, "%s: a configuration file may have at most 1 MiB", name);
	p.arena_size = 4096 + len * ARENA_PER_BYTE;
	if (p.arena_size > HCL_ARENA_MAX)
		p.arena_size = HCL_ARENA_MAX;
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
