/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_ast.h: what the parser makes of a text. Runs in: cli, job-parser. */
#ifndef DROVER_HCL_HCL_AST_H
#define DROVER_HCL_HCL_AST_H

#include "hcl/hcl.h"

struct hcl_value;

struct hcl_attr {
	const char *name;
	struct hcl_range name_at;
	const struct hcl_expr *expr;
	struct hcl_attr *next;
};

struct hcl_label {
	const char *text;
	struct hcl_range at;
};

struct hcl_block {
	const char *type;
	struct hcl_range type_at;
	size_t n_labels;
	const struct hcl_label *labels;
	const struct hcl_body *body;
	struct hcl_block *next;
};

/* Attributes and blocks are in the order of the text; attribute names are unique. */
struct hcl_body {
	struct hcl_attr *attrs;
	struct hcl_block *blocks;
	struct hcl_range at; /* with the braces */
};

/* Returns the body's attribute of this name, or NULL. It belongs to the body. */
const struct hcl_attr *hcl_body_attr(const struct hcl_body *body, const char *name);

enum hcl_expr_kind {
	HCL_EXPR_LITERAL,
	HCL_EXPR_TEMPLATE, /* parts, joined as a string */
	HCL_EXPR_WRAP,     /* "${a}": the value of a itself, in one */
	HCL_EXPR_JOIN,     /* the string of a template's for directive: the elements of `one` */
	HCL_EXPR_TUPLE,
	HCL_EXPR_OBJECT,
	HCL_EXPR_VARIABLE, /* name, the root of a path */
	HCL_EXPR_ATTR,     /* one.name */
	HCL_EXPR_INDEX,    /* one[two] */
	HCL_EXPR_SPLAT,    /* one[*], and `two` for each element */
	HCL_EXPR_ELEMENT,  /* inside a splat's `two`: the element */
	HCL_EXPR_CALL,
	HCL_EXPR_UNARY,
	HCL_EXPR_BINARY,
	HCL_EXPR_CONDITIONAL,
	HCL_EXPR_FOR,
	HCL_EXPR_PARENTHESES,
};

enum hcl_op {
	HCL_OP_OR,
	HCL_OP_AND,
	HCL_OP_EQUAL,
	HCL_OP_NOT_EQUAL,
	HCL_OP_GREATER,
	HCL_OP_GREATER_EQUAL,
	HCL_OP_LESS,
	HCL_OP_LESS_EQUAL,
	HCL_OP_ADD,
	HCL_OP_SUBTRACT,
	HCL_OP_MULTIPLY,
	HCL_OP_DIVIDE,
	HCL_OP_MODULO,
	HCL_OP_NOT,
	HCL_OP_NEGATE,
};

/* key is NULL in a tuple. bare: an unquoted word before "=", whose text is the key. */
struct hcl_item {
	const struct hcl_expr *key, *value;
};

struct hcl_for {
	const char *key_name; /* NULL: only the value has a name */
	const char *value_name;
	const struct hcl_expr *source;
	const struct hcl_expr *key; /* NULL: the result is a tuple */
	const struct hcl_expr *value;
	const struct hcl_expr *condition; /* NULL: all elements */
	bool grouped;                     /* values of equal keys form a tuple ("...") */
};

struct hcl_expr {
	enum hcl_expr_kind kind;
	enum hcl_op op;
	struct hcl_range at;
	const char *name; /* variable, attribute, function */
	const struct hcl_expr *one, *two, *three;
	size_t n;
	const struct hcl_item *items; /* tuple, object, arguments, parts of a template */
	bool expand;                  /* call: the last argument is a list of arguments ("...") */
	bool path; /* a step that is part of a path such as attr.cpu.arch or meta["x"] */
	const struct hcl_for *loop;
	struct hcl_value *value; /* literal */
	const char *number;      /* literal number, as written; value is NULL until it is used */
};

/*
 * Parses a document's body. On errors the problems are added and NULL is returned. A source that is
 * larger than the limit is refused.
 */
const struct hcl_body *hcl_parse_body(struct hcl *h, const struct hcl_source *source);
/* Parses a single expression, such as the value of a variable in the command line. NULL: errors. */
const struct hcl_expr *hcl_parse_expr(struct hcl *h, const struct hcl_source *source);
/* Parses a text with ${ } and %{ } in it, such as a string of a job's JSON. NULL: errors. */
const struct hcl_expr *hcl_parse_template(struct hcl *h, const struct hcl_source *source);

/* Returns whether the text is an identifier of HCL. */
bool hcl_is_identifier(const char *s);
/* The name, if the expression is a variable without further steps; else NULL. */
const char *hcl_expr_keyword(const struct hcl_expr *e);
/* Calls fn for each path (the outermost step of it) in the expression. */
typedef void hcl_path_fn(void *arg, const struct hcl_expr *path);
void hcl_expr_paths(const struct hcl_expr *e, hcl_path_fn *fn, void *arg);

#endif
