/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_call.c: calls functions: finds them, and checks and converts their arguments. Runs in: cli,
 * job-parser.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/similar.h"
#include "common/utf8.h"
#include "hcl/hcl_doc.h"
#include "hcl/hcl_eval.h"

static int
compare_name(const void *name, const void *function)
{
	return strcmp(name, ((const struct hcl_function *)function)->name);
}

static bool
may_call(const struct hcl_functions *list, const struct hcl_function *f)
{
	return f->use == list->use || f->use == HCL_IN_BOTH;
}

static const struct hcl_function *
find_function(struct hcl *h, const struct hcl_expr *e, const struct hcl_functions *list)
{
	const struct hcl_function *f =
	    list ? bsearch(e->name, list->v, list->n, sizeof *f, compare_name) : NULL;
	const char **names, *similar;
	size_t n = 0;

	if (f && may_call(list, f))
		return f;
	if (!list)
		hcl_fail(h, e->at, "functions cannot be called here");
	names = hcl_alloc(h, list->n * sizeof *names);
	for (size_t i = 0; i < list->n; i++)
		if (may_call(list, &list->v[i]))
			names[n++] = list->v[i].name;
	similar = similar_name(e->name, names, n);
	hcl_fail(h, e->at, "unknown function \"%s\"%s%s%s", e->name,
	    similar ? ": did you mean \"" : "", similar ? similar : "", similar ? "\"?" : "");
}

void
hcl_call_enter(void *call)
{
	struct hcl_call *c = call;

	hcl_enter(c->h, c->at);
}

void
hcl_call_leave(void *call)
{
	struct hcl_call *c = call;

	hcl_exit(c->h);
}

void
hcl_refuse_argument(struct hcl_call *c, size_t i, const char *fmt, ...)
{
	struct hcl_range at = i < c->n && c->args_at ? c->args_at[i] : c->at;
	char text[400], shown[400];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	(void)utf8_sanitize(shown, sizeof shown, text, strlen(text));
	hcl_fail(c->h, at, "%s(): %s", c->function->name, shown);
}

/* The parameter letter of argument i. */
static char
param_of(const struct hcl_function *f, size_t i)
{
	size_t n = strcspn(f->params, "*?");

	return i < n ? f->params[i] : n > 0 ? f->params[n - 1] : 'a';
}

static void
check_count(struct hcl_call *c)
{
	const char *params = c->function->params;
	size_t most = strcspn(params, "*?"), least = params[most] ? most - 1 : most;
	bool any = params[most] == '*';

	if (c->n >= least && (any || c->n <= most))
		return;
	hcl_fail(c->h, c->at, "%s() takes %s%zu argument%s, found %zu", c->function->name,
	    any                            ? "at least "
	    : most > least && c->n < least ? "at least "
	    : most > least                 ? "at most "
					   : "",
	    c->n < least ? least : most, (c->n < least ? least : most) == 1 ? "" : "s", c->n);
}

static struct hcl_value *
check_argument(struct hcl_call *c, size_t i, bool *ret_unknown)
{
	char param = param_of(c->function, i);
	struct hcl_value *v = c->args[i];
	const char *why = "";
	const struct hcl_type *type = tolower(param) == 's'   ? &hcl_type_string
				      : tolower(param) == 'n' ? &hcl_type_number
				      : tolower(param) == 'b' ? &hcl_type_bool
							      : &hcl_type_any;

	if (hcl_is_null(v) && islower((unsigned char)param))
		hcl_refuse_argument(c, i, "argument %zu must not be null", i + 1);
	v = hcl_convert(c->h, v, type, &why);
	if (!v)
		hcl_refuse_argument(c, i, "argument %zu: %s", i + 1, why);
	if (v->state == HCL_UNKNOWN)
		*ret_unknown = true;
	return v;
}

/* The elements of the last argument become arguments of their own. */
static void
expand_last(struct hcl_call *c)
{
	struct hcl_value *list = c->args[c->n - 1], **args;
	struct hcl_range *at;

	if (list->state != HCL_KNOWN || !hcl_is_sequence(list))
		hcl_refuse_argument(c, c->n - 1, "only a list can be expanded by \"...\"");
	args = hcl_alloc(c->h, (c->n - 1 + list->len) * sizeof(struct hcl_value *));
	at = hcl_alloc(c->h, (c->n - 1 + list->len) * sizeof *at);
	memcpy(args, c->args, (c->n - 1) * sizeof(struct hcl_value *));
	memcpy(at, c->args_at, (c->n - 1) * sizeof *at);
	for (size_t i = 0; i < list->len; i++) {
		args[c->n - 1 + i] = list->items[i];
		at[c->n - 1 + i] = c->args_at[c->n - 1];
	}
	c->n += list->len - 1;
	c->args = args;
	c->args_at = at;
}

static struct hcl_value *
call_with_values(struct hcl_call *c, const struct hcl_expr *e)
{
	struct hcl_range *at = hcl_alloc(c->h, e->n * sizeof *at);
	bool unknown = false;

	c->args = hcl_alloc(c->h, e->n * sizeof(struct hcl_value *));
	c->args_at = at;
	for (size_t i = 0; i < e->n; i++) {
		at[i] = e->items[i].value->at;
		c->args[i] = hcl_eval(c->h, e->items[i].value, c->scope);
	}
	if (e->expand)
		expand_last(c);
	check_count(c);
	for (size_t i = 0; i < c->n; i++)
		c->args[i] = check_argument(c, i, &unknown);
	if (unknown && !c->function->unknown)
		return hcl_unknown(c->h, &hcl_type_any);
	return c->function->fn(c);
}

struct hcl_value *
hcl_call_function(struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope)
{
	const struct hcl_scope *outer = scope;
	struct hcl_call c = { .h = h, .scope = scope, .at = e->at, .n = e->n, .exprs = e->items };

	while (outer && outer->up)
		outer = outer->up;
	c.arg = outer ? outer->arg : NULL;
	c.function = find_function(h, e, outer ? outer->functions : NULL);
	if (!c.function->expressions)
		return call_with_values(&c, e);
	check_count(&c);
	return c.function->fn(&c);
}
