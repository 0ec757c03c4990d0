/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_parse.c: parses texts and actions. Runs in: template-renderer. */
#include "template/tpl_parse.h"

#include <string.h>

#include "template/go_text.h"

/* What ended a list. */
enum ending { BY_END, BY_ELSE, BY_ELSE_IF, BY_ELSE_WITH };

static enum ending parse_list(struct tpl_parser *p, struct tpl_nodes *list);
static struct tpl_node *parse_control(
    struct tpl_parser *p, enum tpl_kind kind, const char *context);

void
tpl_parse_fail(struct tpl_parser *p, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	p->problem = arena_printf(p->arena, "template: %s:%u: %s",
	    p->text->name ? p->text->name : "", p->line, arena_vprintf(p->arena, fmt, args));
	va_end(args);
	arena_leave(p->arena);
}

void
tpl_unexpected(struct tpl_parser *p, struct tpl_token t, const char *context)
{
	const char *text = tpl_token_text(p->arena, &t);
	bool of_action;

	if (t.kind != TPL_TOK_ERROR)
		tpl_parse_fail(p, "unexpected %s in %s", text, context);
	if (p->action_line == 0 || p->action_line == t.line)
		tpl_parse_fail(p, "%s", text);
	of_action = t.len > 7 && strcmp(text + t.len - 7, " action") == 0;
	tpl_parse_fail(
	    p, "%s%s started at :%u", text, of_action ? "" : " in action", p->action_line);
}

struct tpl_token
tpl_next(struct tpl_parser *p)
{
	struct tpl_token t;

	if (p->n_pending > 0)
		return p->pending[--p->n_pending];
	t = tpl_lex(&p->lexer);
	p->line = t.line;
	return t;
}

void
tpl_put_back(struct tpl_parser *p, struct tpl_token t)
{
	p->pending[p->n_pending++] = t;
}

struct tpl_token
tpl_next_visible(struct tpl_parser *p)
{
	struct tpl_token t;

	do
		t = tpl_next(p);
	while (t.kind == TPL_TOK_SPACE);
	return t;
}

struct tpl_token
tpl_peek(struct tpl_parser *p)
{
	struct tpl_token t = tpl_next(p);

	tpl_put_back(p, t);
	return t;
}

struct tpl_token
tpl_peek_visible(struct tpl_parser *p)
{
	struct tpl_token t = tpl_next_visible(p);

	tpl_put_back(p, t);
	return t;
}

struct tpl_node *
tpl_node(struct tpl_parser *p, enum tpl_kind kind, struct tpl_token t)
{
	struct tpl_node *n = arena_new(p->arena, struct tpl_node);

	n->kind = kind;
	n->at = t.at;
	n->text = t.text;
	n->len = t.len;
	return n;
}

const char *
tpl_literal(struct tpl_parser *p, struct tpl_token t, size_t *ret_len)
{
	struct text out = { .arena = p->arena };

	if (!go_unquote(&out, t.text, t.len))
		tpl_parse_fail(p, "invalid syntax");
	*ret_len = out.len;
	return out.text;
}

static void
expect_right(struct tpl_parser *p, const char *context)
{
	struct tpl_token t = tpl_next_visible(p);

	if (t.kind != TPL_TOK_RIGHT)
		tpl_unexpected(p, t, context);
}

static const char *
parse_name(struct tpl_parser *p, struct tpl_token t, const char *context, size_t *ret_len)
{
	if (t.kind != TPL_TOK_STRING && t.kind != TPL_TOK_RAW_STRING)
		tpl_unexpected(p, t, context);
	return tpl_literal(p, t, ret_len);
}

/* Whether it has nothing but spaces; then it may be defined again. */
static bool
is_empty(const struct tpl_nodes *list)
{
	const struct tpl_node *n;

	STAILQ_FOREACH (n, list, entry) {
		if (n->kind != TPL_TEXT)
			return false;
		for (size_t i = 0, len; i < n->len; i += len)
			if (!go_is_space(go_char(n->text + i, n->len - i, &len)))
				return false;
	}
	return true;
}

static void
add_tree(struct tpl_parser *p, const char *name, size_t len, struct tpl_nodes *root)
{
	struct tpl_tree *tree = (struct tpl_tree *)tpl_find_tree(p->text, name, len);
	struct text quoted = { .arena = p->arena };

	if (!tree) {
		tree = arena_new(p->arena, struct tpl_tree);
		tree->next = p->text->trees;
		p->text->trees = tree;
	} else if (!is_empty(tree->root)) {
		if (is_empty(root))
			return;
		go_quote(&quoted, name, len, false);
		tpl_parse_fail(p, "template: multiple definition of template %s", quoted.text);
	}
	*tree = (struct tpl_tree){ name, len, root, tree->next };
}

/* The contents of define or block: a text of its own, whose only variable is $. */
static void
parse_body(struct tpl_parser *p, const char *name, size_t len, const char *context)
{
	static const char *const ends[] = { "{{end}}", "{{else}}", "{{else}}", "{{else}}" };
	struct tpl_nodes *root = arena_new(p->arena, struct tpl_nodes);
	struct tpl_parser outer = *p;
	enum ending ending;

	p->vars = NULL;
	p->n_vars = p->vars_room = p->range_depth = 0;
	p->action_line = 0;
	p->vars = arena_alloc(p->arena, 4 * sizeof *p->vars);
	p->vars_room = 4;
	p->vars[p->n_vars++] = "$";
	ending = parse_list(p, root);
	if (ending != BY_END)
		tpl_parse_fail(p, "unexpected %s in %s", ends[ending], context);
	add_tree(p, name, len, root);
	p->vars = outer.vars;
	p->n_vars = outer.n_vars;
	p->vars_room = outer.vars_room;
	p->range_depth = outer.range_depth;
	p->action_line = outer.action_line;
}

static struct tpl_node *
parse_block(struct tpl_parser *p)
{
	struct tpl_token t = tpl_next_visible(p);
	struct tpl_node *n = tpl_node(p, TPL_CALL, t);
	size_t len;
	const char *name = parse_name(p, t, "block clause", &len);

	n->pipe = tpl_parse_pipe(p, "block clause", TPL_TOK_RIGHT);
	parse_body(p, name, len, "block clause");
	return n;
}

static struct tpl_node *
parse_call(struct tpl_parser *p)
{
	struct tpl_token t = tpl_next_visible(p), next;
	struct tpl_node *n = tpl_node(p, TPL_CALL, t);
	size_t len;

	(void)parse_name(p, t, "template clause", &len);
	next = tpl_next_visible(p);
	if (next.kind != TPL_TOK_RIGHT) {
		tpl_put_back(p, next);
		n->pipe = tpl_parse_pipe(p, "template clause", TPL_TOK_RIGHT);
	}
	return n;
}

static struct tpl_node *
parse_jump(struct tpl_parser *p, struct tpl_token t)
{
	bool is_break = t.kind == TPL_TOK_BREAK;

	expect_right(p, is_break ? "{{break}}" : "{{continue}}");
	if (p->range_depth == 0)
		tpl_parse_fail(p, "{{%s}} outside {{range}}", is_break ? "break" : "continue");
	return tpl_node(p, is_break ? TPL_BREAK : TPL_CONTINUE, t);
}

/* Returns NULL at {{end}} or {{else …}}. */
static struct tpl_node *
parse_action(struct tpl_parser *p, enum ending *ret_ending)
{
	struct tpl_token t = tpl_next_visible(p), next;
	struct tpl_node *n;

	switch (t.kind) {
	case TPL_TOK_BLOCK:
		return parse_block(p);
	case TPL_TOK_BREAK:
	case TPL_TOK_CONTINUE:
		return parse_jump(p, t);
	case TPL_TOK_TEMPLATE:
		return parse_call(p);
	case TPL_TOK_IF:
		return parse_control(p, TPL_IF, "if");
	case TPL_TOK_RANGE:
		return parse_control(p, TPL_RANGE, "range");
	case TPL_TOK_WITH:
		return parse_control(p, TPL_WITH, "with");
	case TPL_TOK_DONE:
		expect_right(p, "end");
		*ret_ending = BY_END;
		return NULL;
	case TPL_TOK_ELSE:
		next = tpl_peek_visible(p);
		*ret_ending = next.kind == TPL_TOK_IF     ? BY_ELSE_IF
			      : next.kind == TPL_TOK_WITH ? BY_ELSE_WITH
							  : BY_ELSE;
		if (*ret_ending == BY_ELSE)
			expect_right(p, "else");
		return NULL;
	default:
		tpl_put_back(p, t);
		n = tpl_node(p, TPL_ACTION, t);
		n->pipe = tpl_parse_pipe(p, "command", TPL_TOK_RIGHT);
		return n;
	}
}

/* A text or an action; NULL at {{end}} or {{else …}}. */
static struct tpl_node *
parse_statement(struct tpl_parser *p, enum ending *ret_ending)
{
	struct tpl_token t = tpl_next_visible(p);
	struct tpl_node *n;

	if (t.kind == TPL_TOK_TEXT)
		return tpl_node(p, TPL_TEXT, t);
	if (t.kind != TPL_TOK_LEFT)
		tpl_unexpected(p, t, "input");
	p->action_line = t.line;
	arena_enter(p->arena);
	n = parse_action(p, ret_ending);
	arena_exit(p->arena);
	p->action_line = 0;
	return n;
}

static enum ending
parse_list(struct tpl_parser *p, struct tpl_nodes *list)
{
	enum ending ending;
	struct tpl_node *n;

	STAILQ_INIT(list);
	while (tpl_peek_visible(p).kind != TPL_TOK_END) {
		n = parse_statement(p, &ending);
		if (!n)
			return ending;
		STAILQ_INSERT_TAIL(list, n, entry);
	}
	tpl_parse_fail(p, "unexpected EOF");
}

/* {{else}}, {{else if}} after if, {{else with}} after with: the statement that follows is the
 * only one of the list, and takes the end. */
static void
parse_else(struct tpl_parser *p, struct tpl_node *n, enum ending ending)
{
	struct tpl_nodes *list = arena_new(p->arena, struct tpl_nodes);
	struct tpl_node *only;

	n->else_list = list;
	if ((n->kind == TPL_IF && ending == BY_ELSE_IF) ||
	    (n->kind == TPL_WITH && ending == BY_ELSE_WITH)) {
		(void)tpl_next(p);
		arena_enter(p->arena);
		only = parse_control(p, n->kind, n->kind == TPL_IF ? "if" : "with");
		arena_exit(p->arena);
		STAILQ_INIT(list);
		STAILQ_INSERT_TAIL(list, only, entry);
		return;
	}
	if (parse_list(p, list) != BY_END)
		tpl_parse_fail(p, "expected end; found {{else}}");
}

static struct tpl_node *
parse_control(struct tpl_parser *p, enum tpl_kind kind, const char *context)
{
	size_t n_vars = p->n_vars;
	struct tpl_node *pipe = tpl_parse_pipe(p, context, TPL_TOK_RIGHT);
	struct tpl_node *n =
	    tpl_node(p, kind, (struct tpl_token){ .at = pipe->at, .text = pipe->text });
	enum ending ending;

	n->pipe = pipe;
	n->list = arena_new(p->arena, struct tpl_nodes);
	p->range_depth += kind == TPL_RANGE;
	ending = parse_list(p, n->list);
	p->range_depth -= kind == TPL_RANGE;
	if (ending != BY_END)
		parse_else(p, n, ending);
	p->n_vars = n_vars;
	return n;
}

/* {{define "name"}}…{{end}}, which is no part of the text. Returns false if it is something else.
 */
static bool
parse_definition(struct tpl_parser *p)
{
	struct tpl_token left = tpl_next(p), t = tpl_next_visible(p);
	const char *name;
	size_t len;

	if (t.kind != TPL_TOK_DEFINE) {
		tpl_put_back(p, t);
		tpl_put_back(p, left);
		return false;
	}
	name = parse_name(p, tpl_next_visible(p), "define clause", &len);
	expect_right(p, "define clause");
	parse_body(p, name, len, "define clause");
	return true;
}

void
tpl_parse(struct tpl_parser *p)
{
	struct tpl_nodes *root = arena_new(p->arena, struct tpl_nodes);
	enum ending ending;
	struct tpl_node *n;

	p->lexer =
	    (struct tpl_lexer){ .arena = p->arena, .source = p->text, .line = 1, .start_line = 1 };
	p->vars = arena_alloc(p->arena, 4 * sizeof *p->vars);
	p->vars_room = 4;
	p->vars[p->n_vars++] = "$";
	STAILQ_INIT(root);
	while (tpl_peek(p).kind != TPL_TOK_END) {
		if (tpl_peek(p).kind == TPL_TOK_LEFT && parse_definition(p))
			continue;
		n = parse_statement(p, &ending);
		if (!n)
			tpl_parse_fail(
			    p, "unexpected %s", ending == BY_END ? "{{end}}" : "{{else}}");
		STAILQ_INSERT_TAIL(root, n, entry);
	}
	add_tree(p, "", 0, root);
}

const struct tpl_tree *
tpl_find_tree(const struct tpl_text *t, const char *name, size_t len)
{
	for (const struct tpl_tree *tree = t->trees; tree; tree = tree->next)
		if (tree->name_len == len && memcmp(tree->name, name, len) == 0)
			return tree;
	return NULL;
}
