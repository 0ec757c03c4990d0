/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_conditional.c: conditions, and expressions whose errors may not count. Runs in: cli,
 * job-parser. */
#include "hcl/hcl_doc.h"
#include "hcl/hcl_eval.h"

bool
hcl_eval_condition(
    struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope, bool *ret_unknown)
{
	struct hcl_value *v = hcl_eval(h, e, scope);
	const char *why = "";

	*ret_unknown = v->state == HCL_UNKNOWN;
	if (*ret_unknown)
		return false;
	if (hcl_is_null(v))
		hcl_fail(h, e->at, "a condition must be true or false, not null");
	v = hcl_convert(h, v, &hcl_type_bool, &why);
	if (!v)
		hcl_fail(h, e->at, "a condition must be true or false: %s", why);
	return v->boolean;
}

struct attempt {
	const struct hcl_expr *expr;
	const struct hcl_scope *scope;
	struct hcl_value *value;
};

static void
evaluate_attempt(struct hcl *h, void *arg)
{
	struct attempt *a = arg;

	a->value = hcl_eval(h, a->expr, a->scope);
}

struct hcl_value *
hcl_eval_or_problem(struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope,
    const struct hcl_problem **ret_problem)
{
	struct attempt a = { .expr = e, .scope = scope };
	unsigned before = hcl_problem_count(h);
	const struct hcl_problem *p;

	if (hcl_try(h, evaluate_attempt, &a))
		return a.value;
	if (h->arena.exhausted)
		hcl_leave(h);
	p = hcl_problems(h);
	for (unsigned n = 0; n < before && p; n++)
		p = p->next;
	*ret_problem = p;
	hcl_forget_problems(h, before);
	return NULL;
}

/* The results' common type; a null without a type has that of the other. */
static const struct hcl_type *
common_type(
    struct hcl *h, const struct hcl_expr *e, const struct hcl_value *a, const struct hcl_value *b)
{
	const struct hcl_type *types[2] = { hcl_type_of(h, a), hcl_type_of(h, b) }, *common;

	if (types[0]->kind == HCL_ANY && a->state == HCL_NULL)
		return types[1];
	if (types[1]->kind == HCL_ANY && b->state == HCL_NULL)
		return types[0];
	common = hcl_unify(h, types, 2);
	if (!common)
		hcl_fail(h, e->at,
		    "the two results of a condition must have a common type: the first is %s, the "
		    "second %s",
		    hcl_value_type_name(h, a), hcl_value_type_name(h, b));
	return common;
}

/* An error in the value that is not chosen does not count: `length(a) > 0 ? a[0] : ""` is a usual
 * way to write this. */
struct hcl_value *
hcl_eval_conditional(struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope)
{
	const struct hcl_expr *exprs[2] = { e->two, e->three };
	const struct hcl_problem *problems[2] = { NULL, NULL };
	const struct hcl_type *common = &hcl_type_any;
	struct hcl_value *values[2], *v;
	const char *why = "";
	bool unknown;
	size_t i;

	for (i = 0; i < 2; i++)
		values[i] = hcl_eval_or_problem(h, exprs[i], scope, &problems[i]);
	if (values[0] && values[1])
		common = common_type(h, e, values[0], values[1]);
	i = hcl_eval_condition(h, e->one, scope, &unknown) ? 0 : 1;
	if (unknown)
		return hcl_unknown(h, common);
	if (!values[i])
		hcl_fail(h, problems[i] ? problems[i]->at : exprs[i]->at, "%s",
		    problems[i] ? problems[i]->text : "this has no value");
	v = hcl_convert(h, values[i], common, &why);
	if (!v)
		hcl_fail(h, exprs[i]->at,
		    "the two results of a condition must have a common type: %s", why);
	return v;
}
