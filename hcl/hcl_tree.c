/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_tree.c: parses HCL version 1 and JSON into a tree of literals. Runs in: cli, job-parser,
 * supervisor (ACL policies), the launcher's configuration child. */
#include "hcl/hcl_tree.h"

#include <string.h>

#include "hcl/hcl_doc.h"
#include "hcl/hcl_part.h"
#include "lang/text.h"

const struct hcl_limits hcl_tree_limits = {
	.source_bytes = HCL_TREE_BYTES_MAX,
	.memory_bytes = (size_t)16 * 1024 * 1024,
	.depth = 32,
};

const char *
hcl_node_kind_name(enum hcl_node_kind kind)
{
	static const char *const names[] = {
		[HCL_NODE_NULL] = "null",
		[HCL_NODE_BOOL] = "a boolean",
		[HCL_NODE_NUMBER] = "a number",
		[HCL_NODE_STRING] = "a string",
		[HCL_NODE_LIST] = "a list",
		[HCL_NODE_OBJECT] = "a block or object",
	};

	return names[kind];
}

/* --- words and texts --- */

/* The byte after the word at the current token. Words of this version may have dots. */
static uint32_t
word_end(const struct hcl_parser *p)
{
	const struct hcl_source *s = p->source;
	uint32_t at = p->tok.at.to;

	while (at < s->len) {
		size_t n = hcl_word_length(s->text + at, s->len - at);
		bool inside = strchr(".-0123456789", s->text[at]) != NULL;

		if (n == 0 && !inside)
			break;
		at += n > 0 ? (uint32_t)n : 1;
	}
	return at;
}

static const char *
read_word(struct hcl_parser *p)
{
	uint32_t from = p->tok.at.from, to = word_end(p);

	hcl_scan_from(p, to);
	return hcl_strndup(p->h, p->source->text + from, to - from);
}

static void
refuse_sequence(struct hcl_reader *r)
{
	hcl_fail(r->p->h, hcl_reader_here(r, 2),
	    "expressions do not exist here: write \"$${\" for the text \"${\"");
}

/* A quoted text or a heredoc. */
static const char *
read_text(struct hcl_parser *p)
{
	struct hcl_reader r = {
		.p = p, .read_sequence = p->literal ? NULL : refuse_sequence, .last = &r.first
	};
	struct text text = { .arena = hcl_arena(p->h) };
	struct hcl_range open = p->tok.at;

	hcl_read_parts(&r);
	for (const struct hcl_part *part = r.first; part->kind == HCL_PART_TEXT; part = part->next)
		text_bytes(&text, part->text, part->len);
	if (text.len > 0 && memchr(text.text, '\0', text.len))
		hcl_fail(p->h, open, "a text cannot have a NUL character");
	hcl_scan_from(p, r.at);
	return text.text ? text.text : "";
}

/* --- values --- */

static void read_value(struct hcl_parser *p, struct hcl_node *node);
static void read_members(struct hcl_parser *p, struct hcl_node *object, int closing);

static struct hcl_node *
add_node(struct hcl_parser *p, struct hcl_node ***tail)
{
	struct hcl_node *node = hcl_new_object(p->h, struct hcl_node);

	node->at = node->key_at = p->tok.at;
	**tail = node;
	*tail = &node->next;
	return node;
}

static void
read_number(struct hcl_parser *p, struct hcl_node *node)
{
	const char *text;

	node->kind = HCL_NODE_NUMBER;
	if (p->tok.kind == '-')
		hcl_scan(p);
	if (p->tok.kind != HCL_TOK_NUMBER ||
	    (p->tok.at.from > node->at.from && p->tok.space_before))
		hcl_expected(p, "a number");
	text = p->source->text + p->tok.at.from;
	if (*text == '0' && p->tok.at.to > p->tok.at.from + 1 && text[1] >= '0' && text[1] <= '9')
		hcl_expected(p, "a number without a leading zero");
	node->at.to = p->tok.at.to;
	node->text =
	    hcl_strndup(p->h, p->source->text + node->at.from, node->at.to - node->at.from);
	hcl_scan(p);
	if (!p->tok.space_before && (p->tok.kind == HCL_TOK_WORD || p->tok.kind == '.'))
		hcl_expected(p, "the end of the number");
}

static void
read_list(struct hcl_parser *p, struct hcl_node *list)
{
	struct hcl_node **tail = &list->first;
	bool more = false;

	list->kind = HCL_NODE_LIST;
	hcl_enter(p->h, p->tok.at);
	hcl_scan(p);
	while (p->tok.kind != ']' || (p->dialect == HCL_JSON && more)) {
		if (list->first && !more)
			hcl_expected(p, "\",\" or \"]\"");
		read_value(p, add_node(p, &tail));
		more = p->tok.kind == ',';
		if (more)
			hcl_scan(p);
	}
	hcl_scan(p);
	hcl_exit(p->h);
}

static void
read_object(struct hcl_parser *p, struct hcl_node *object)
{
	hcl_enter(p->h, p->tok.at);
	hcl_scan(p);
	read_members(p, object, '}');
	hcl_exit(p->h);
}

static void
read_keyword(struct hcl_parser *p, struct hcl_node *node)
{
	static const struct {
		const char *word;
		enum hcl_node_kind kind;
	} words[] = { { "true", HCL_NODE_BOOL }, { "false", HCL_NODE_BOOL },
		{ "null", HCL_NODE_NULL } };

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (hcl_at_word(p, words[i].word) && word_end(p) == p->tok.at.to) {
			node->kind = words[i].kind;
			node->text = words[i].word;
			hcl_scan(p);
			return;
		}
	hcl_expected(p, "a value (a text in quotes, a number, true, false, a list or an object)");
}

static void
read_value(struct hcl_parser *p, struct hcl_node *node)
{
	node->at = p->tok.at;
	if (p->tok.kind == HCL_TOK_QUOTE ||
	    (p->tok.kind == HCL_TOK_HEREDOC && p->dialect == HCL_OLD)) {
		node->kind = HCL_NODE_STRING;
		node->text = read_text(p);
		if (p->source->text[node->at.from] == '"')
			node->at = hcl_range_since(p, node->at);
	} else if (p->tok.kind == '[') {
		read_list(p, node);
	} else if (p->tok.kind == '{') {
		read_object(p, node);
	} else if (p->tok.kind == HCL_TOK_NUMBER || p->tok.kind == '-') {
		read_number(p, node);
	} else {
		read_keyword(p, node);
	}
}

/* --- members: attributes and blocks --- */

static bool
at_key(const struct hcl_parser *p)
{
	return p->tok.kind == HCL_TOK_QUOTE ||
	       (p->tok.kind == HCL_TOK_WORD && p->dialect == HCL_OLD);
}

static void
read_key(struct hcl_parser *p, struct hcl_node *node, const char *what)
{
	node->key_at = p->tok.at;
	if (!at_key(p))
		hcl_expected(p, what);
	node->key = p->tok.kind == HCL_TOK_QUOTE ? read_text(p) : read_word(p);
	node->at = node->key_at = hcl_range_since(p, node->key_at);
}

/* Reports a member's name that is alone on its line. '=', ':' and '{' may be on a later line, a
 * label may not. */
static void
check_label_line(struct hcl_parser *p)
{
	struct hcl_range gap = { p->source, p->before, p->before };

	if (memchr(p->source->text + p->before, '\n', p->tok.at.from - p->before))
		hcl_fail(p->h, gap,
		    "expected \"=\" and a value, or \"{\" and a block, found the end of the line");
}

/* Reads what follows a block's type: its labels, each an object that contains the next, then its
 * body. */
static void
read_block(struct hcl_parser *p, struct hcl_node *node)
{
	unsigned depth = p->h->depth;

	while (at_key(p)) {
		struct hcl_node **inside = &node->first;

		check_label_line(p);
		hcl_enter(p->h, p->tok.at);
		node->kind = HCL_NODE_OBJECT;
		node = add_node(p, &inside);
		read_key(p, node, "a label");
	}
	if (p->tok.kind != '{')
		hcl_expected(p, "\"=\" and a value, or \"{\" and a block");
	read_object(p, node);
	p->h->depth = depth;
}

static void
read_member(struct hcl_parser *p, struct hcl_node *node)
{
	read_key(
	    p, node, p->dialect == HCL_JSON ? "\"}\" or a key in quotes" : "a setting or a block");
	if (p->tok.kind == ':' || (p->tok.kind == '=' && p->dialect == HCL_OLD)) {
		hcl_scan(p);
		read_value(p, node);
	} else if (p->dialect == HCL_JSON) {
		hcl_expected(p, "\":\" and a value");
	} else {
		read_block(p, node);
	}
}

static void
read_members(struct hcl_parser *p, struct hcl_node *object, int closing)
{
	struct hcl_node **tail = &object->first;
	bool json = p->dialect == HCL_JSON, comma = false;

	object->kind = HCL_NODE_OBJECT;
	while (p->tok.kind != closing || (json && comma)) {
		if (json && object->first && !comma)
			hcl_expected(p, "\",\" or \"}\"");
		if (p->tok.kind == HCL_TOK_END)
			hcl_expected(p, "\"}\"");
		read_member(p, add_node(p, &tail));
		comma = p->tok.kind == ',';
		if (comma)
			hcl_scan(p);
	}
	if (closing != HCL_TOK_END)
		hcl_scan(p);
}

/* --- the whole text --- */

static void
check_text(struct hcl *h, const struct hcl_source *s)
{
	const char *nul;

	if (s->len > h->limits.source_bytes)
		hcl_fail(h, (struct hcl_range){ s, 0, 0 }, "a file may have at most %zu KiB",
		    h->limits.source_bytes >> 10);
	hcl_check_utf8(h, s);
	nul = s->len ? memchr(s->text, '\0', s->len) : NULL;
	if (nul)
		hcl_fail(h,
		    (struct hcl_range){
			s, (uint32_t)(nul - s->text), (uint32_t)(nul - s->text) + 1 },
		    "expected UTF-8 text, found an invalid byte");
}

struct tree_call {
	const struct hcl_source *source;
	bool literal;
	struct hcl_node *root;
};

static void
parse_tree(struct hcl *h, void *arg)
{
	struct tree_call *c = arg;
	struct hcl_parser p = {
		.h = h, .source = c->source, .dialect = HCL_OLD, .literal = c->literal
	};
	bool marked = c->source->len >= 3 && memcmp(c->source->text, "\xef\xbb\xbf", 3) == 0;

	check_text(h, c->source);
	hcl_scan_from(&p, marked ? 3 : 0);
	h->busy_at = p.tok.at;
	c->root = hcl_new_object(h, struct hcl_node);
	c->root->at = p.tok.at;
	if (p.tok.kind == '{') {
		p.dialect = HCL_JSON;
		read_object(&p, c->root);
	} else {
		read_members(&p, c->root, HCL_TOK_END);
	}
	if (p.tok.kind != HCL_TOK_END)
		hcl_expected(&p, "the end of the file");
}

const struct hcl_node *
hcl_tree_parse(struct hcl *h, const struct hcl_source *source)
{
	struct tree_call c = { .source = source };

	return hcl_try(h, parse_tree, &c) ? c.root : NULL;
}

const struct hcl_node *
hcl_tree_parse_literal(struct hcl *h, const struct hcl_source *source)
{
	struct tree_call c = { .source = source, .literal = true };

	return hcl_try(h, parse_tree, &c) ? c.root : NULL;
}
