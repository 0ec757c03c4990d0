/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_parse_expr.c: parses expressions. Runs in: cli, job-parser. */
#include <string.h>

#include "hcl/hcl_doc.h"
#include "hcl/hcl_scan.h"

static const struct hcl_expr *read_operand(struct hcl_parser *p);

static struct hcl_expr *
new_expr(struct hcl_parser *p, enum hcl_expr_kind kind, struct hcl_range from)
{
	struct hcl_expr *e = hcl_new_object(p->h, struct hcl_expr);

	e->kind = kind;
	e->at = hcl_range_since(p, from);
	return e;
}

/* Items while their number is unknown; hcl_item_list_end() gives them their place. */
struct item_list {
	struct hcl_item *items;
	size_t n, size;
};

static void
add_item(struct hcl_parser *p, struct item_list *l, const struct hcl_expr *key,
    const struct hcl_expr *value)
{
	struct hcl_item *grown;

	if (l->n == l->size) {
		grown = hcl_alloc(p->h, (l->size ? 2 * l->size : 4) * sizeof *grown);
		if (l->n > 0)
			memcpy(grown, l->items, l->n * sizeof *grown);
		l->items = grown;
		l->size = l->size ? 2 * l->size : 4;
	}
	l->items[l->n++] = (struct hcl_item){ key, value };
}

static void
set_items(struct hcl_expr *e, const struct item_list *l)
{
	e->items = l->items;
	e->n = l->n;
}

static const struct hcl_expr *
read_number(struct hcl_parser *p)
{
	struct hcl_expr *e;
	char *text = hcl_token_text(p);
	struct hcl_range at = p->tok.at;

	hcl_scan(p);
	e = new_expr(p, HCL_EXPR_LITERAL, at);
	e->number = text;
	return e;
}

static char *
read_loop_name(struct hcl_parser *p)
{
	char *name;

	if (p->tok.kind != HCL_TOK_WORD)
		hcl_expected(p, "the name of a variable after \"for\"");
	name = hcl_token_text(p);
	hcl_scan(p);
	return name;
}

static void
read_loop_head(struct hcl_parser *p, struct hcl_for *loop)
{
	hcl_scan(p);
	loop->value_name = read_loop_name(p);
	if (p->tok.kind == ',') {
		hcl_scan(p);
		loop->key_name = loop->value_name;
		loop->value_name = read_loop_name(p);
	}
	if (!hcl_at_word(p, "in"))
		hcl_expected(p, "\"in\" and the list or map that \"for\" goes through");
	hcl_scan(p);
	loop->source = hcl_read_expr(p);
	hcl_take(p, ':', "\":\" before the value of \"for\"");
}

/* At "for", after the opening bracket or brace. */
static const struct hcl_expr *
read_for(struct hcl_parser *p, struct hcl_range open, int close)
{
	struct hcl_for *loop = hcl_new_object(p->h, struct hcl_for);
	struct hcl_expr *e;

	read_loop_head(p, loop);
	loop->value = hcl_read_expr(p);
	if (close == '}') {
		hcl_take(p, HCL_TOK_ARROW, "\"=>\": a \"for\" in braces makes keys and values");
		loop->key = loop->value;
		loop->value = hcl_read_expr(p);
		if (p->tok.kind == HCL_TOK_ELLIPSIS) {
			loop->grouped = true;
			hcl_scan(p);
		}
	}
	if (hcl_at_word(p, "if")) {
		hcl_scan(p);
		loop->condition = hcl_read_expr(p);
	}
	if (p->tok.kind != close)
		hcl_expected(p, close == '}' ? "\"if\" or \"}\" after \"for\""
					     : "\"if\" or \"]\" after \"for\"");
	e = hcl_new_object(p->h, struct hcl_expr);
	e->kind = HCL_EXPR_FOR;
	e->loop = loop;
	e->at = open;
	return e;
}

/* Reads over the closing character, with the setting for newlines of outside. */
static const struct hcl_expr *
close_expr(struct hcl_parser *p, struct hcl_expr *e, struct hcl_range open, bool newlines)
{
	p->newlines = newlines;
	hcl_scan(p);
	e->at = hcl_range_since(p, open);
	return e;
}

static const struct hcl_expr *
read_tuple(struct hcl_parser *p)
{
	struct hcl_range open = p->tok.at;
	struct item_list l = { 0 };
	struct hcl_expr *e;
	bool newlines = p->newlines;

	p->newlines = false;
	hcl_scan(p);
	if (hcl_at_word(p, "for"))
		return close_expr(p, (struct hcl_expr *)read_for(p, open, ']'), open, newlines);
	while (p->tok.kind != ']') {
		add_item(p, &l, NULL, hcl_read_expr(p));
		if (p->tok.kind == ',')
			hcl_scan(p);
		else if (p->tok.kind != ']')
			hcl_expected(p, "\",\" or \"]\" after an element");
	}
	e = new_expr(p, HCL_EXPR_TUPLE, open);
	set_items(e, &l);
	return close_expr(p, e, open, newlines);
}

/* A key is a word, which stands for itself, or an expression. */
static const struct hcl_expr *
read_key(struct hcl_parser *p)
{
	const struct hcl_expr *key = hcl_read_expr(p);

	if (key->kind == HCL_EXPR_ATTR || key->kind == HCL_EXPR_INDEX)
		for (const struct hcl_expr *e = key; e; e = e->one)
			if (e->kind == HCL_EXPR_VARIABLE)
				hcl_fail(p->h, key->at,
				    "this key is ambiguous: put it in parentheses for the value of "
				    "a "
				    "variable, or in quotes for the text itself");
	return key;
}

static void
read_members(struct hcl_parser *p, struct item_list *l)
{
	for (;;) {
		const struct hcl_expr *key;

		while (p->tok.kind == HCL_TOK_NEWLINE)
			hcl_scan(p);
		if (p->tok.kind == '}')
			return;
		key = read_key(p);
		if (p->tok.kind != '=' && p->tok.kind != ':')
			hcl_expected(p, "\"=\" or \":\" after the key of an object");
		hcl_scan(p);
		while (p->tok.kind == HCL_TOK_NEWLINE)
			hcl_scan(p);
		add_item(p, l, key, hcl_read_expr(p));
		if (p->tok.kind == ',' || p->tok.kind == HCL_TOK_NEWLINE)
			hcl_scan(p);
		else if (p->tok.kind != '}')
			hcl_expected(p, "a new line, \",\" or \"}\" after a value");
	}
}

static const struct hcl_expr *
read_object(struct hcl_parser *p)
{
	struct hcl_range open = p->tok.at;
	bool newlines = p->newlines;
	struct item_list l = { 0 };
	struct hcl_expr *e;

	p->newlines = false;
	hcl_scan(p);
	if (hcl_at_word(p, "for"))
		return close_expr(p, (struct hcl_expr *)read_for(p, open, '}'), open, newlines);
	(void)hcl_scan_newlines(p, true);
	read_members(p, &l);
	e = new_expr(p, HCL_EXPR_OBJECT, open);
	set_items(e, &l);
	return close_expr(p, e, open, newlines);
}

static const struct hcl_expr *
read_parentheses(struct hcl_parser *p)
{
	struct hcl_range open = p->tok.at;
	bool newlines = p->newlines;
	const struct hcl_expr *inner;
	struct hcl_expr *e;

	p->newlines = false;
	hcl_scan(p);
	inner = hcl_read_expr(p);
	if (p->tok.kind != ')')
		hcl_expected(p, "\")\"");
	e = new_expr(p, HCL_EXPR_PARENTHESES, open);
	e->one = inner;
	return close_expr(p, e, open, newlines);
}

static const struct hcl_expr *
read_call(struct hcl_parser *p, const char *name, struct hcl_range from)
{
	bool newlines = p->newlines;
	struct item_list l = { 0 };
	struct hcl_expr *e;
	bool expand = false;

	p->newlines = false;
	hcl_scan(p);
	while (p->tok.kind != ')') {
		add_item(p, &l, NULL, hcl_read_expr(p));
		if (p->tok.kind == HCL_TOK_ELLIPSIS) {
			expand = true;
			hcl_scan(p);
			if (p->tok.kind == ',')
				hcl_scan(p);
			if (p->tok.kind != ')')
				hcl_expected(
				    p, "\")\": only the last argument can be expanded by \"...\"");
		} else if (p->tok.kind == ',') {
			hcl_scan(p);
		} else if (p->tok.kind != ')') {
			hcl_expected(p, "\",\" or \")\" after an argument");
		}
	}
	e = new_expr(p, HCL_EXPR_CALL, from);
	e->name = name;
	set_items(e, &l);
	e->expand = expand;
	return close_expr(p, e, from, newlines);
}

static const struct hcl_expr *
read_word(struct hcl_parser *p)
{
	struct hcl_range at = p->tok.at;
	char *name = hcl_token_text(p);
	struct hcl_expr *e;

	hcl_scan(p);
	if (p->tok.kind == '(')
		return read_call(p, name, at);
	e = new_expr(p, HCL_EXPR_VARIABLE, at);
	e->name = name;
	e->path = true;
	return e;
}

static const struct hcl_expr *
read_term(struct hcl_parser *p)
{
	switch (p->tok.kind) {
	case HCL_TOK_WORD:
		return read_word(p);
	case HCL_TOK_NUMBER:
		return read_number(p);
	case HCL_TOK_QUOTE:
	case HCL_TOK_HEREDOC:
		return hcl_read_template(p);
	case '(':
		return read_parentheses(p);
	case '[':
		return read_tuple(p);
	case '{':
		return read_object(p);
	default:
		hcl_expected(p, "a value");
	}
}

static const struct hcl_expr *
new_element(struct hcl_parser *p)
{
	return new_expr(p, HCL_EXPR_ELEMENT, p->tok.at);
}

static const struct hcl_expr *
attr_of(struct hcl_parser *p, const struct hcl_expr *one, const char *name)
{
	struct hcl_expr *e = new_expr(p, HCL_EXPR_ATTR, one->at);

	e->one = one;
	e->name = name;
	e->path = one->path;
	return e;
}

static const struct hcl_expr *
index_by_number(
    struct hcl_parser *p, const struct hcl_expr *one, struct hcl_range at, const char *digits)
{
	struct hcl_expr *number = hcl_new_object(p->h, struct hcl_expr);
	struct hcl_expr *e = new_expr(p, HCL_EXPR_INDEX, one->at);

	number->kind = HCL_EXPR_LITERAL;
	number->at = at;
	number->number = digits;
	e->one = one;
	e->two = number;
	e->path = one->path;
	return e;
}

/* a.0.1: the old form of an index. "0.1" is one token of a number. */
static const struct hcl_expr *
read_old_index(struct hcl_parser *p, const struct hcl_expr *one)
{
	struct hcl_range at = p->tok.at;
	char *digits = hcl_token_text(p), *dot = strchr(digits, '.');

	if (strspn(digits, "0123456789.") != strlen(digits))
		hcl_expected(p, "the name of an attribute, or an index");
	hcl_scan(p);
	if (!dot)
		return index_by_number(p, one, at, digits);
	*dot = '\0';
	return index_by_number(p, index_by_number(p, one, at, digits), at, dot + 1);
}

static const struct hcl_expr *read_dot(struct hcl_parser *p, const struct hcl_expr *one);
static const struct hcl_expr *read_index(struct hcl_parser *p, const struct hcl_expr *one);

static const struct hcl_expr *
new_splat(struct hcl_parser *p, const struct hcl_expr *one, const struct hcl_expr *each)
{
	struct hcl_expr *e = new_expr(p, HCL_EXPR_SPLAT, one->at);

	e->one = one;
	e->two = each;
	return e;
}

/* a.*.b: the steps after it that are attributes or old indexes belong to each element. */
static const struct hcl_expr *
read_attr_splat(struct hcl_parser *p, const struct hcl_expr *one)
{
	const struct hcl_expr *each;

	hcl_scan(p);
	each = new_element(p);
	while (p->tok.kind == '.')
		each = read_dot(p, each);
	return new_splat(p, one, each);
}

static const struct hcl_expr *
read_dot(struct hcl_parser *p, const struct hcl_expr *one)
{
	char *name;

	hcl_scan(p);
	if (p->tok.kind == '*')
		return read_attr_splat(p, one);
	if (p->tok.kind == HCL_TOK_NUMBER)
		return read_old_index(p, one);
	if (p->tok.kind != HCL_TOK_WORD)
		hcl_expected(p, "the name of an attribute after \".\"");
	name = hcl_token_text(p);
	hcl_scan(p);
	return attr_of(p, one, name);
}

static bool
is_literal_key(const struct hcl_expr *e)
{
	return e->kind == HCL_EXPR_LITERAL;
}

static const struct hcl_expr *
read_full_splat(struct hcl_parser *p, const struct hcl_expr *one, bool newlines)
{
	const struct hcl_expr *each;

	hcl_scan(p);
	p->newlines = newlines;
	hcl_take(p, ']', "\"]\" after \"[*\"");
	each = new_element(p);
	while (p->tok.kind == '.' || p->tok.kind == '[')
		each = p->tok.kind == '.' ? read_dot(p, each) : read_index(p, each);
	return new_splat(p, one, each);
}

static const struct hcl_expr *
read_index(struct hcl_parser *p, const struct hcl_expr *one)
{
	bool newlines = p->newlines;
	const struct hcl_expr *two;
	struct hcl_expr *e;

	p->newlines = false;
	hcl_scan(p);
	if (p->tok.kind == '*')
		return read_full_splat(p, one, newlines);
	two = hcl_read_expr(p);
	if (p->tok.kind != ']')
		hcl_expected(p, "\"]\" after the index");
	e = new_expr(p, HCL_EXPR_INDEX, one->at);
	e->one = one;
	e->two = two;
	e->path = one->path && is_literal_key(two);
	return close_expr(p, e, one->at, newlines);
}

static const struct hcl_expr *
read_operand(struct hcl_parser *p)
{
	const struct hcl_expr *e = read_term(p);

	while (p->tok.kind == '.' || p->tok.kind == '[')
		e = p->tok.kind == '.' ? read_dot(p, e) : read_index(p, e);
	return e;
}

static const struct hcl_expr *
read_unary(struct hcl_parser *p)
{
	struct hcl_range at = p->tok.at;
	enum hcl_op op = p->tok.kind == '!' ? HCL_OP_NOT : HCL_OP_NEGATE;
	const struct hcl_expr *one;
	struct hcl_expr *e;

	if (p->tok.kind != '!' && p->tok.kind != '-')
		return read_operand(p);
	hcl_enter(p->h, at);
	hcl_scan(p);
	one = read_unary(p);
	hcl_exit(p->h);
	e = new_expr(p, HCL_EXPR_UNARY, at);
	e->op = op;
	e->one = one;
	return e;
}

/* The operators by precedence, the loosest first. */
static const struct level {
	struct {
		int token;
		enum hcl_op op;
	} ops[4];
} levels[] = {
	{ { { HCL_TOK_OR, HCL_OP_OR } } },
	{ { { HCL_TOK_AND, HCL_OP_AND } } },
	{ { { HCL_TOK_EQUAL, HCL_OP_EQUAL }, { HCL_TOK_NOT_EQUAL, HCL_OP_NOT_EQUAL } } },
	{ { { '>', HCL_OP_GREATER }, { HCL_TOK_GREATER_EQUAL, HCL_OP_GREATER_EQUAL },
	    { '<', HCL_OP_LESS }, { HCL_TOK_LESS_EQUAL, HCL_OP_LESS_EQUAL } } },
	{ { { '+', HCL_OP_ADD }, { '-', HCL_OP_SUBTRACT } } },
	{ { { '*', HCL_OP_MULTIPLY }, { '/', HCL_OP_DIVIDE }, { '%', HCL_OP_MODULO } } },
};

static bool
find_level_op(const struct level *l, int token, enum hcl_op *ret)
{
	for (size_t i = 0; i < 4 && l->ops[i].token; i++)
		if (l->ops[i].token == token) {
			*ret = l->ops[i].op;
			return true;
		}
	return false;
}

static const struct hcl_expr *
read_binary(struct hcl_parser *p, size_t level)
{
	const struct hcl_expr *left, *right;
	struct hcl_expr *e;
	enum hcl_op op;

	if (level == sizeof levels / sizeof levels[0])
		return read_unary(p);
	left = read_binary(p, level + 1);
	while (find_level_op(&levels[level], p->tok.kind, &op)) {
		hcl_scan(p);
		right = read_binary(p, level + 1);
		e = new_expr(p, HCL_EXPR_BINARY, left->at);
		e->op = op;
		e->one = left;
		e->two = right;
		left = e;
	}
	return left;
}

const struct hcl_expr *
hcl_read_expr(struct hcl_parser *p)
{
	const struct hcl_expr *condition;
	struct hcl_expr *e;

	hcl_enter(p->h, p->tok.at);
	condition = read_binary(p, 0);
	if (p->tok.kind == '?') {
		hcl_scan(p);
		e = hcl_new_object(p->h, struct hcl_expr);
		e->kind = HCL_EXPR_CONDITIONAL;
		e->one = condition;
		e->two = hcl_read_expr(p);
		hcl_take(p, ':', "\":\" and the value for the case that the condition is false");
		e->three = hcl_read_expr(p);
		e->at = hcl_range_since(p, condition->at);
		condition = e;
	}
	hcl_exit(p->h);
	return condition;
}

const char *
hcl_expr_keyword(const struct hcl_expr *e)
{
	return e->kind == HCL_EXPR_VARIABLE ? e->name : NULL;
}

static void
loop_paths(const struct hcl_for *loop, hcl_path_fn *fn, void *arg)
{
	hcl_expr_paths(loop->source, fn, arg);
	hcl_expr_paths(loop->key, fn, arg);
	hcl_expr_paths(loop->value, fn, arg);
	hcl_expr_paths(loop->condition, fn, arg);
}

void
hcl_expr_paths(const struct hcl_expr *e, hcl_path_fn *fn, void *arg)
{
	if (!e)
		return;
	if (e->path) {
		fn(arg, e);
		return;
	}
	hcl_expr_paths(e->one, fn, arg);
	hcl_expr_paths(e->two, fn, arg);
	hcl_expr_paths(e->three, fn, arg);
	for (size_t i = 0; i < e->n; i++) {
		if (e->items[i].key && !hcl_expr_keyword(e->items[i].key))
			hcl_expr_paths(e->items[i].key, fn, arg);
		hcl_expr_paths(e->items[i].value, fn, arg);
	}
	if (e->loop)
		loop_paths(e->loop, fn, arg);
}
