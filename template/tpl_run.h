/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_run.h: one execution of a template. Runs in: template-renderer. */
#ifndef DROVER_TEMPLATE_TPL_RUN_H
#define DROVER_TEMPLATE_TPL_RUN_H

#include "template/go_function.h"
#include "template/template.h"
#include "template/tpl_ast.h"

struct tpl_variable {
	const char *name; /* with its $ */
	struct go_value value;
};

/* A call of executeTemplate() that has not ended. */
struct tpl_nested {
	const struct tpl_tree *tree;
	const struct tpl_node *node; /* of the call */
	const char *name;
	struct tpl_nested *outer;
};

struct tpl_need;
struct tpl_secret;
struct tpl_regex;

struct tpl_run {
	struct arena *arena;
	const struct tpl_text *text;
	const struct template_data *data;
	bool missing_key_fails;
	struct text *out;
	size_t output_max;
	const struct tpl_tree *tree; /* that is executed */
	const struct tpl_node *node; /* that errors are about */
	struct tpl_variable *vars;
	size_t n_vars, vars_room, first_var; /* first_var: of this template */
	struct tpl_nested *nested;
	struct go_value scratch;
	STAILQ_HEAD(, tpl_need) needs; /* dependencies that were asked for */
	size_t n_needs;
	STAILQ_HEAD(, tpl_secret) secrets; /* values that errors must not show */
	bool sees_secrets;                 /* it has read a variable, a file or the environment */
	SLIST_HEAD(, tpl_regex) regexes;   /* that were compiled */
	const char *problem;               /* the sentence, after arena_leave() */
};

/* Executes the template of this name into run->out. */
void tpl_execute(struct tpl_run *run, const struct tpl_tree *tree, struct go_value dot);
/* Ends the execution with a sentence about run->node. Values in it are in quotes or marked, so that
 * they can be hidden. */
void tpl_fail(struct tpl_run *run, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));
/* Leaves with a complete sentence, to which calls of executeTemplate() add theirs. */
void tpl_fail_with(struct tpl_run *run, const char *sentence) __attribute__((noreturn));
/* tpl_hide.c: returns the sentence without its marks. If the template has read a secret, values are
 * [redacted], unless the template itself has them as a text. */
const char *tpl_hide_values(struct tpl_run *run, const char *sentence);
/* Fails if the output is larger than permitted. */
void tpl_check_output(struct tpl_run *run);

/* The value of a pipeline; its variables are set. */
struct go_value tpl_eval_pipe(
    struct tpl_run *run, struct go_value dot, const struct tpl_node *pipe);
void tpl_push(struct tpl_run *run, const char *name, struct go_value value);
void tpl_set(struct tpl_run *run, const char *name, struct go_value value);

/* Calls a function or method. args: the nodes after its name; final: what comes through a pipe, or
 * NULL; node: what an error of the function is about. */
struct go_value tpl_call(struct tpl_run *run, struct go_value dot, const struct go_function *f,
    const char *name, struct go_value self, const struct tpl_node *node,
    const struct tpl_node *args, const struct go_value *final);
struct go_value tpl_eval_arg(
    struct tpl_run *run, struct go_value dot, const struct go_type *type, const struct tpl_node *n);
struct go_value tpl_eval_function(struct tpl_run *run, struct go_value dot,
    const struct tpl_node *n, const struct tpl_node *command, const struct tpl_node *args,
    const struct go_value *final);
struct go_value tpl_eval_chain(struct tpl_run *run, struct go_value dot, const struct tpl_node *n,
    const struct tpl_node *args, const struct go_value *final);

/* Whether the expression matches a part of the text; fails if it is wrong. */
bool tpl_regex_matches(struct go_call *c, struct go_value pattern, const char *s);

/* What a list or map has stored: a nil there is an interface without a value. */
struct go_value tpl_stored(const struct go_type *elem, struct go_value v);

struct tpl_need {
	struct template_need need;
	struct go_value value; /* what it was the first time; no value: it is missing */
	STAILQ_ENTRY(tpl_need) entry;
};

/* Lists what the template asked for, under the name that events show; *ret_new: it was not asked
 * for before. */
struct tpl_need *tpl_need(
    struct tpl_run *run, const struct template_query *q, const char *name, bool *ret_new);

/* A text that error sentences must not show. */
struct tpl_secret {
	const char *text;
	STAILQ_ENTRY(tpl_secret) entry;
};

#endif
