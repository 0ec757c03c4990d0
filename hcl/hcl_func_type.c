/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_type.c: functions that convert a value, or evaluate an expression that may fail. Runs
 * in: cli, job-parser. */
#include "hcl/hcl_func.h"

/* Returns the value of argument i, or NULL if it has an error: then *ret_why is its first
 * sentence. */
static struct hcl_value *
try_argument(struct hcl_call *c, size_t i, const char **ret_why)
{
	const struct hcl_problem *p = NULL;
	struct hcl_value *v = hcl_eval_or_problem(c->h, c->exprs[i].value, c->scope, &p);

	if (!v)
		*ret_why = p ? p->text : "";
	return v;
}

struct hcl_value *
hcl_fn_can(struct hcl_call *c)
{
	const char *why;
	struct hcl_value *v = try_argument(c, 0, &why);

	if (v && !hcl_is_wholly_known(v))
		return hcl_unknown(c->h, &hcl_type_bool);
	return hcl_bool(c->h, v != NULL);
}

struct hcl_value *
hcl_fn_try(struct hcl_call *c)
{
	const char *why = "", *first = NULL;

	if (c->n == 0)
		hcl_refuse_argument(c, 0, "at least one argument is required");
	for (size_t i = 0; i < c->n; i++) {
		struct hcl_value *v = try_argument(c, i, &why);

		if (v)
			return hcl_is_wholly_known(v) ? v : hcl_unknown(c->h, &hcl_type_any);
		first = first ? first : why;
	}
	hcl_refuse_argument(c, c->n, "no argument has a value: the first fails with: %s", first);
}

struct hcl_value *
hcl_fn_convert(struct hcl_call *c)
{
	struct hcl_value *v = hcl_eval(c->h, c->exprs[0].value, c->scope);
	const struct hcl_type *type = hcl_read_type(c->h, c->exprs[1].value, true);
	const char *why = "";

	v = hcl_convert(c->h, v, type, &why);
	if (!v)
		hcl_fail(c->h, c->exprs[0].value->at, "convert(): %s", why);
	return v;
}
