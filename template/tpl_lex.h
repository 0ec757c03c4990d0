/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_lex.h: tokens, for the parser. Runs in: template-renderer. */
#ifndef DROVER_TEMPLATE_TPL_LEX_H
#define DROVER_TEMPLATE_TPL_LEX_H

#include "template/tpl_ast.h"

enum tpl_token_kind {
	TPL_TOK_ERROR, /* its text is the sentence */
	TPL_TOK_END,
	TPL_TOK_TEXT,
	TPL_TOK_LEFT,  /* {{ */
	TPL_TOK_RIGHT, /* }} */
	TPL_TOK_SPACE,
	TPL_TOK_ASSIGN,
	TPL_TOK_DECLARE,
	TPL_TOK_PIPE,
	TPL_TOK_OPEN,
	TPL_TOK_CLOSE,
	TPL_TOK_CHAR,
	TPL_TOK_DOT,
	TPL_TOK_FIELD,
	TPL_TOK_VARIABLE,
	TPL_TOK_WORD, /* a function */
	TPL_TOK_BOOL,
	TPL_TOK_NUMBER,
	TPL_TOK_COMPLEX,
	TPL_TOK_CHARACTER, /* 'x' */
	TPL_TOK_STRING,
	TPL_TOK_RAW_STRING,
	TPL_TOK_KEYWORD, /* the first of them */
	TPL_TOK_BLOCK,
	TPL_TOK_BREAK,
	TPL_TOK_CONTINUE,
	TPL_TOK_DEFINE,
	TPL_TOK_ELSE,
	TPL_TOK_DONE, /* end */
	TPL_TOK_IF,
	TPL_TOK_NIL,
	TPL_TOK_RANGE,
	TPL_TOK_TEMPLATE,
	TPL_TOK_WITH,
};

struct tpl_token {
	enum tpl_token_kind kind;
	uint32_t at;
	const char *text;
	size_t len;
	unsigned line; /* where it begins */
};

struct tpl_lexer {
	struct arena *arena;
	const struct tpl_text *source;
	size_t at, start; /* start: of the token */
	unsigned line, start_line;
	unsigned parentheses;
	bool inside; /* of an action */
	bool failed;
};

struct tpl_token tpl_lex(struct tpl_lexer *l);
/* The token as error sentences show it. */
const char *tpl_token_text(struct arena *a, const struct tpl_token *t);

#endif
