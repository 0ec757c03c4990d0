/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_parse_pipe.c: parses pipelines: commands, operands, literals. Runs in: template-renderer. */
#include <errno.h>
#include <string.h>

#include "common/glob.h"
#include "template/go_text.h"
#include "template/tpl_functions.h"
#include "template/tpl_parse.h"

static void
parse_character(struct tpl_parser *p, struct tpl_token t, struct tpl_number *ret)
{
	uint32_t ch;
	bool byte;
	size_t n = go_unquote_char(t.text + 1, t.len - 1, '\'', &ch, &byte);

	if (n == 0)
		tpl_parse_fail(p, "invalid syntax");
	if (n + 2 != t.len)
		tpl_parse_fail(p, "malformed character constant: %.*s", (int)t.len, t.text);
	*ret = (struct tpl_number){
		.is_int = true, .is_uint = true, .is_float = true, .i = ch, .u = ch, .f = ch
	};
}

static const char *
quoted(struct tpl_parser *p, struct tpl_token t)
{
	struct text out = { .arena = p->arena };

	go_quote(&out, t.text, t.len, false);
	return out.text;
}

/* A float that is an integer can be used as one. */
static void
parse_real(struct tpl_parser *p, struct tpl_token t, struct tpl_number *ret)
{
	bool real = memchr(t.text, '.', t.len) || memchr(t.text, 'e', t.len) ||
		    memchr(t.text, 'E', t.len) || memchr(t.text, 'p', t.len) ||
		    memchr(t.text, 'P', t.len);

	if (go_parse_float(p->arena, t.text, t.len, &ret->f) < 0)
		tpl_parse_fail(p, "illegal number syntax: %s", quoted(p, t));
	if (!real)
		tpl_parse_fail(p, "integer overflow: %s", quoted(p, t));
	ret->is_float = true;
	if (ret->f >= -0x1p63 && ret->f < 0x1p63 && (double)(int64_t)ret->f == ret->f) {
		ret->is_int = true;
		ret->i = (int64_t)ret->f;
	}
	if (ret->f >= 0 && ret->f < 0x1p64 && (double)(uint64_t)ret->f == ret->f) {
		ret->is_uint = true;
		ret->u = (uint64_t)ret->f;
	}
}

void
tpl_parse_number(struct tpl_parser *p, struct tpl_token t, struct tpl_number *ret)
{
	bool hex = t.len > 2 && t.text[0] == '0' && (t.text[1] == 'x' || t.text[1] == 'X');

	*ret = (struct tpl_number){ 0 };
	if (t.kind == TPL_TOK_CHARACTER) {
		parse_character(p, t, ret);
		return;
	}
	if (t.kind == TPL_TOK_COMPLEX || t.text[t.len - 1] == 'i')
		tpl_parse_fail(
		    p, "complex numbers such as %.*s are not supported", (int)t.len, t.text);
	ret->is_uint = go_parse_uint(t.text, t.len, 0, &ret->u) == 0;
	ret->is_int = go_parse_int(t.text, t.len, 0, &ret->i) == 0;
	if (ret->is_int && ret->i == 0)
		ret->is_uint = true;
	ret->is_float = ret->is_int || ret->is_uint;
	ret->f = ret->is_int ? (double)ret->i : (double)ret->u;
	if (!ret->is_float)
		parse_real(p, t, ret);
	for (size_t i = 0; i < t.len; i++)
		ret->as_float |= strchr(hex ? ".pP" : ".eEpP", t.text[i]) != NULL;
	if (hex && !memchr(t.text, 'p', t.len) && !memchr(t.text, 'P', t.len))
		ret->as_float = false;
}

static void
add_name(struct tpl_parser *p, struct tpl_node *n, const char *name, size_t len)
{
	const char **names = arena_alloc(p->arena, (n->n_names + 1) * sizeof *names);

	arena_step(p->arena, n->n_names);
	if (n->n_names > 0)
		memcpy(names, n->names, n->n_names * sizeof *names);
	names[n->n_names++] = arena_strndup(p->arena, name, len);
	n->names = names;
}

static struct tpl_node *
parse_variable(struct tpl_parser *p, struct tpl_token t)
{
	struct tpl_node *n = tpl_node(p, TPL_VARIABLE, t);

	add_name(p, n, t.text, t.len);
	for (size_t i = 0; i < p->n_vars; i++)
		if (strcmp(p->vars[i], n->names[0]) == 0)
			return n;
	tpl_parse_fail(p, "undefined variable \"%s\"", n->names[0]);
}

/* Go's own functions cannot be denied, as with Nomad. */
static const char own[] = "and call eq ge gt html index js le len lt ne not or print printf "
			  "println slice urlquery";

static struct tpl_node *
parse_function(struct tpl_parser *p, struct tpl_token t)
{
	const struct go_function *f =
	    (p->find_function ? p->find_function : tpl_find_function)(t.text, t.len);
	struct tpl_node *n;

	if (!f)
		tpl_parse_fail(p, "function %s not defined", quoted(p, t));
	n = tpl_node(p, TPL_FUNCTION, t);
	if (glob_list_fits(p->denied, f->name) && !glob_list_fits(own, f->name))
		n->function = tpl_denied_function(p->arena, f);
	else
		n->function = f;
	return n;
}

/* A number, a text or a word of the language. */
static struct tpl_node *
parse_literal(struct tpl_parser *p, struct tpl_token t)
{
	struct tpl_node *n;
	size_t len;

	switch (t.kind) {
	case TPL_TOK_DOT:
		return tpl_node(p, TPL_DOT, t);
	case TPL_TOK_NIL:
		return tpl_node(p, TPL_NIL, t);
	case TPL_TOK_BOOL:
		n = tpl_node(p, TPL_BOOL, t);
		n->boolean = *t.text == 't';
		return n;
	case TPL_TOK_NUMBER:
	case TPL_TOK_COMPLEX:
	case TPL_TOK_CHARACTER:
		n = tpl_node(p, TPL_NUMBER, t);
		tpl_parse_number(p, t, &n->number);
		return n;
	case TPL_TOK_STRING:
	case TPL_TOK_RAW_STRING:
		n = tpl_node(p, TPL_STRING, t);
		n->value = tpl_literal(p, t, &len);
		n->value_len = len;
		return n;
	default:
		return NULL;
	}
}

static struct tpl_node *
parse_term(struct tpl_parser *p)
{
	struct tpl_token t = tpl_next_visible(p);
	struct tpl_node *n;

	switch (t.kind) {
	case TPL_TOK_WORD:
		return parse_function(p, t);
	case TPL_TOK_VARIABLE:
		return parse_variable(p, t);
	case TPL_TOK_FIELD:
		n = tpl_node(p, TPL_FIELD, t);
		add_name(p, n, t.text + 1, t.len - 1);
		return n;
	case TPL_TOK_OPEN:
		arena_enter(p->arena);
		n = tpl_parse_pipe(p, "parenthesized pipeline", TPL_TOK_CLOSE);
		arena_exit(p->arena);
		return n;
	default:
		n = parse_literal(p, t);
		if (!n)
			tpl_put_back(p, t);
		return n;
	}
}

/* A term and the fields after it. */
static struct tpl_node *
parse_operand(struct tpl_parser *p)
{
	struct tpl_node *n = parse_term(p), *chain;
	struct tpl_token t;

	if (!n || tpl_peek(p).kind != TPL_TOK_FIELD)
		return n;
	if (n->kind == TPL_DOT || n->kind == TPL_NIL || n->kind == TPL_BOOL ||
	    n->kind == TPL_NUMBER || n->kind == TPL_STRING) {
		struct text out = { .arena = p->arena };

		go_quote(&out, n->text, n->len, false);
		tpl_parse_fail(p, "unexpected . after term %s", out.text);
	}
	t = tpl_peek(p);
	if (n->kind == TPL_FIELD || n->kind == TPL_VARIABLE) {
		n->at = t.at;
		chain = n;
	} else {
		chain = tpl_node(p, TPL_CHAIN, t);
		chain->chained = n;
	}
	while (tpl_peek(p).kind == TPL_TOK_FIELD) {
		t = tpl_next(p);
		add_name(p, chain, t.text + 1, t.len - 1);
	}
	return chain;
}

static struct tpl_node *
parse_command(struct tpl_parser *p)
{
	struct tpl_node *command = tpl_node(p, TPL_COMMAND, tpl_peek_visible(p)), *operand;
	struct tpl_token t;

	STAILQ_INIT(&command->children);
	do {
		(void)tpl_peek_visible(p);
		operand = parse_operand(p);
		if (operand)
			STAILQ_INSERT_TAIL(&command->children, operand, entry);
		t = tpl_next(p);
	} while (t.kind == TPL_TOK_SPACE);
	if (t.kind == TPL_TOK_RIGHT || t.kind == TPL_TOK_CLOSE)
		tpl_put_back(p, t);
	else if (t.kind != TPL_TOK_PIPE)
		tpl_unexpected(p, t, "operand");
	if (STAILQ_EMPTY(&command->children))
		tpl_parse_fail(p, "empty command");
	return command;
}

static void
declare(struct tpl_parser *p, struct tpl_node *pipe, struct tpl_token t)
{
	struct tpl_node *n = tpl_node(p, TPL_VARIABLE, t);

	add_name(p, n, t.text, t.len);
	pipe->declared[pipe->n_declared++] = n;
	if (p->n_vars == p->vars_room) {
		const char **grown =
		    arena_alloc(p->arena, 2 * (p->vars_room + 4) * sizeof(const char *));

		if (p->n_vars > 0)
			memcpy(grown, p->vars, p->n_vars * sizeof *grown);
		p->vars = grown;
		p->vars_room = 2 * (p->vars_room + 4);
	}
	p->vars[p->n_vars++] = n->names[0];
}

/* "$x :=", "$x =" or, for range, "$i, $x :=". Returns whether another variable follows. */
static bool
parse_declaration(struct tpl_parser *p, struct tpl_node *pipe, const char *context)
{
	struct tpl_token v = tpl_next_visible(p), space = tpl_next(p), next = space;
	enum tpl_token_kind after;

	if (space.kind == TPL_TOK_SPACE)
		next = tpl_next_visible(p);
	if (next.kind == TPL_TOK_ASSIGN || next.kind == TPL_TOK_DECLARE) {
		pipe->assign = next.kind == TPL_TOK_ASSIGN;
		declare(p, pipe, v);
		return false;
	}
	if (next.kind != TPL_TOK_CHAR || *next.text != ',') {
		tpl_put_back(p, next);
		if (space.kind == TPL_TOK_SPACE)
			tpl_put_back(p, space);
		tpl_put_back(p, v);
		return false;
	}
	declare(p, pipe, v);
	if (strcmp(context, "range") != 0 || pipe->n_declared >= 2)
		tpl_parse_fail(p, "too many declarations in %s", context);
	after = tpl_peek_visible(p).kind;
	if (after == TPL_TOK_VARIABLE)
		return true;
	if (after != TPL_TOK_RIGHT && after != TPL_TOK_CLOSE)
		tpl_parse_fail(p, "range can only initialize variables");
	return false;
}

/* Only functions, methods and fields take what comes through a pipe. */
static void
check_pipe(struct tpl_parser *p, const struct tpl_node *pipe, const char *context)
{
	const struct tpl_node *command, *first;
	unsigned stage = 0;

	if (STAILQ_EMPTY(&pipe->children))
		tpl_parse_fail(p, "missing value for %s", context);
	STAILQ_FOREACH (command, &pipe->children, entry) {
		first = STAILQ_FIRST(&command->children);
		if (++stage > 1 &&
		    (first->kind == TPL_BOOL || first->kind == TPL_DOT || first->kind == TPL_NIL ||
			first->kind == TPL_NUMBER || first->kind == TPL_STRING))
			tpl_parse_fail(p, "non executable command in pipeline stage %u", stage);
	}
}

static bool
begins_command(enum tpl_token_kind kind)
{
	return (kind >= TPL_TOK_DOT && kind <= TPL_TOK_RAW_STRING) || kind == TPL_TOK_NIL ||
	       kind == TPL_TOK_OPEN;
}

struct tpl_node *
tpl_parse_pipe(struct tpl_parser *p, const char *context, enum tpl_token_kind end)
{
	struct tpl_node *pipe = tpl_node(p, TPL_PIPE, tpl_peek_visible(p));
	struct tpl_token t;

	STAILQ_INIT(&pipe->children);
	while (tpl_peek_visible(p).kind == TPL_TOK_VARIABLE)
		if (!parse_declaration(p, pipe, context))
			break;
	for (t = tpl_next_visible(p); t.kind != end; t = tpl_next_visible(p)) {
		struct tpl_node *command;

		if (!begins_command(t.kind))
			tpl_unexpected(p, t, context);
		tpl_put_back(p, t);
		command = parse_command(p);
		STAILQ_INSERT_TAIL(&pipe->children, command, entry);
	}
	check_pipe(p, pipe, context);
	return pipe;
}
