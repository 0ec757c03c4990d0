/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_parse.h: parses templates. Runs in: template-renderer. */
#ifndef DROVER_TEMPLATE_TPL_PARSE_H
#define DROVER_TEMPLATE_TPL_PARSE_H

#include "template/tpl_lex.h"

struct tpl_parser {
	struct arena *arena;
	struct tpl_text *text;
	struct tpl_lexer lexer;
	struct tpl_token pending[3]; /* that were put back, the last one first */
	unsigned n_pending;
	unsigned line;        /* of the newest token */
	unsigned action_line; /* where the action began; 0 outside of actions */
	unsigned range_depth;
	const char **vars; /* names that exist here */
	size_t n_vars, vars_room;
	const char *denied; /* of struct template_options */
	/* NULL: tpl_find_function() */
	const struct go_function *(*find_function)(const char *name, size_t len);
	const char *problem; /* the sentence, after arena_leave() */
};

/* Parses p->text. Leaves with p->problem. p starts with arena, text and denied set. */
void tpl_parse(struct tpl_parser *p);

/* The inside, for tpl_parse*.c. */
void tpl_parse_fail(struct tpl_parser *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));
void tpl_unexpected(struct tpl_parser *p, struct tpl_token t, const char *context)
    __attribute__((noreturn));
struct tpl_token tpl_next(struct tpl_parser *p);
struct tpl_token tpl_next_visible(struct tpl_parser *p); /* but spaces */
struct tpl_token tpl_peek(struct tpl_parser *p);
struct tpl_token tpl_peek_visible(struct tpl_parser *p);
void tpl_put_back(struct tpl_parser *p, struct tpl_token t);
struct tpl_node *tpl_node(struct tpl_parser *p, enum tpl_kind kind, struct tpl_token t);
/* A literal's text; leaves if it is none. */
const char *tpl_literal(struct tpl_parser *p, struct tpl_token t, size_t *ret_len);
/* Reads up to and with the token `end`. */
struct tpl_node *tpl_parse_pipe(struct tpl_parser *p, const char *context, enum tpl_token_kind end);
void tpl_parse_number(struct tpl_parser *p, struct tpl_token t, struct tpl_number *ret);

#endif
