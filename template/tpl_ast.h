/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_ast.h: what the parser makes of a template's text. Runs in: template-renderer. */
#ifndef DROVER_TEMPLATE_TPL_AST_H
#define DROVER_TEMPLATE_TPL_AST_H

#include <sys/queue.h>

#include "template/go_value.h"

enum tpl_kind {
	/* statements */
	TPL_TEXT,
	TPL_ACTION,
	TPL_IF,
	TPL_WITH,
	TPL_RANGE,
	TPL_CALL, /* {{template "name" pipeline}} */
	TPL_BREAK,
	TPL_CONTINUE,
	/* parts of statements */
	TPL_PIPE,     /* children: its commands */
	TPL_COMMAND,  /* children: function and arguments */
	TPL_FIELD,    /* names: .a.b */
	TPL_VARIABLE, /* names: $x.a.b, the first with its $ */
	TPL_CHAIN,    /* (pipe).a.b: the pipe is the child */
	TPL_FUNCTION,
	TPL_DOT,
	TPL_NIL,
	TPL_BOOL,
	TPL_NUMBER,
	TPL_STRING,
};

struct tpl_number {
	bool is_int, is_uint, is_float; /* what it can be used as */
	bool as_float;                  /* it is a float where nothing says what it is */
	int64_t i;
	uint64_t u;
	double f;
};

STAILQ_HEAD(tpl_nodes, tpl_node);

struct tpl_node {
	enum tpl_kind kind;
	uint32_t at;      /* byte in the text */
	const char *text; /* text; name of a function or template; literal as written */
	size_t len;
	union {
		struct tpl_number number;
		struct {
			const char *value; /* of a string */
			size_t value_len;
		};
		bool boolean;
		const struct go_function *function;
		struct {
			const char **names; /* of a field, variable or chain */
			size_t n_names;
		};
		struct {
			struct tpl_nodes children; /* commands, arguments */
			struct tpl_node *declared[2];
			size_t n_declared;
			bool assign; /* "=": the variables exist */
		};
		struct {
			struct tpl_node *pipe;
			struct tpl_nodes *list, *else_list; /* NULL: there is none */
		};
	};
	struct tpl_node *chained; /* of a chain */
	STAILQ_ENTRY(tpl_node) entry;
};

/* A template: the text itself, or one that define or block makes. */
struct tpl_tree {
	const char *name; /* "" for the text itself */
	size_t name_len;
	struct tpl_nodes *root;
	struct tpl_tree *next;
};

struct tpl_text {
	const char *name; /* that error sentences show; NULL: "" */
	const char *text;
	size_t len;
	const char *left, *right; /* delimiters */
	struct tpl_tree *trees;
};

const struct tpl_tree *tpl_find_tree(const struct tpl_text *t, const char *name, size_t len);

/* The node as error sentences show it. */
void tpl_node_text(struct text *out, const struct tpl_node *n);

#endif
