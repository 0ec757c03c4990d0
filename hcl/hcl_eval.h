/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_eval.h: evaluates expressions. Runs in: cli, job-parser. */
#ifndef DROVER_HCL_HCL_EVAL_H
#define DROVER_HCL_HCL_EVAL_H

#include "hcl/hcl_ast.h"
#include "hcl/hcl_value.h"

struct hcl_call;

/*
 * A function: its parameters, one letter each, and what computes its result. s string, n number,
 * b bool, a any; a capital letter accepts null too. "*" at the end: the last parameter may occur
 * any number of times, also none; "?": the last may be missing. A known function with an unknown
 * argument has an unknown result, unless `unknown` says that it takes them. An expression function
 * gets its arguments unevaluated.
 */
typedef struct hcl_value *hcl_function_fn(struct hcl_call *c);

/* Where expressions may call a function: Nomad has fewer of them when a task starts. */
enum hcl_use {
	HCL_IN_JOB,    /* job files */
	HCL_IN_CONFIG, /* the configuration of a task's driver */
	HCL_IN_BOTH,
};

struct hcl_function {
	const char *name;
	const char *params;
	hcl_function_fn *fn;
	bool unknown;
	bool expressions;
	enum hcl_use use;
};

/* Functions, sorted by name; those of the other use cannot be called. */
struct hcl_functions {
	const struct hcl_function *v;
	size_t n;
	enum hcl_use use; /* HCL_IN_JOB or HCL_IN_CONFIG */
};

/* A name and its value. A name that neither the scope nor an outer one has is an error, unless
 * `missing` returns a value for the path. */
struct hcl_variable {
	const char *name;
	struct hcl_value *value;
};

struct hcl_scope {
	const struct hcl_scope *up;
	const struct hcl_variable *variables;
	size_t n;
	const struct hcl_functions *functions; /* of the outermost scope */
	struct hcl_value *(*missing)(struct hcl *h, void *arg, const struct hcl_expr *path);
	void *arg;                 /* of missing, and for functions */
	struct hcl_value *element; /* of the splat that is evaluated */
};

struct hcl_call {
	struct hcl *h;
	const struct hcl_scope *scope;
	const struct hcl_function *function;
	struct hcl_range at;
	size_t n;
	struct hcl_value **args;
	const struct hcl_range *args_at;
	const struct hcl_item *exprs; /* of an expression function */
	void *arg;                    /* the outermost scope's */
};

/* Evaluates; does not return if the expression has an error. scope may be NULL: no names. */
struct hcl_value *hcl_eval(struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope);
/* The same, but an error returns NULL: then *ret_problem is its first problem (NULL if too many
 * were found before), and the document keeps none. Does not return after a limit was exceeded. */
struct hcl_value *hcl_eval_or_problem(struct hcl *h, const struct hcl_expr *e,
    const struct hcl_scope *scope, const struct hcl_problem **ret_problem);

/* Evaluates to true or false; false with *ret_unknown if it is not known. */
bool hcl_eval_condition(
    struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope, bool *ret_unknown);
/* a ? b : c. Both values are evaluated, and the result has their common type. */
struct hcl_value *hcl_eval_conditional(
    struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope);

/* The result of an operator. */
struct hcl_value *hcl_binary(
    struct hcl *h, enum hcl_op op, struct hcl_range at, struct hcl_value *a, struct hcl_value *b);
struct hcl_value *hcl_unary(
    struct hcl *h, enum hcl_op op, struct hcl_range at, struct hcl_value *a);
struct hcl_value *hcl_call_function(
    struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope);

/* one[two], and one.name */
struct hcl_value *hcl_index(
    struct hcl *h, struct hcl_range at, struct hcl_value *one, struct hcl_value *two);
struct hcl_value *hcl_attribute(
    struct hcl *h, struct hcl_range at, struct hcl_value *one, const char *name);

/* The type that an expression such as list(string) names. Leaves with hcl_fail() if it names none.
 * A constraint may contain any, and optional(string) for members. */
const struct hcl_type *hcl_read_type(struct hcl *h, const struct hcl_expr *e, bool constraint);

/* Says that an argument is wrong: "function(): argument NAME: SENTENCE". */
void hcl_refuse_argument(struct hcl_call *c, size_t i, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));
/* Begin and end a level of nesting of what a call reads (struct hcl_call), for lang/json.h and
 * lang/yaml_read.h. */
void hcl_call_enter(void *call);
void hcl_call_leave(void *call);

#endif
