// SPDX-License-Identifier: Apache-2.0
/* job_names.c: variables and their values from everywhere. Runs in: cli, job-parser. */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/list.h"
#include "common/similar.h"
#include "hcl/hcl_functions.h"
#include "jobspec/job_block.h"

#define ENV_PREFIX "NOMAD_VAR_"

struct rule {
	const struct hcl_expr *condition;
	const char *message;
	struct hcl_range at;
	STAILQ_ENTRY(rule) entry;
};

struct variable {
	const char *name;
	struct hcl_range at;
	const struct hcl_type *type; /* NULL: that of the default, or any */
	struct hcl_value *value;     /* NULL: none yet */
	struct hcl_range value_at;
	const char *given; /* by -var or the environment; NULL: not */
	STAILQ_HEAD(, rule) rules;
	STAILQ_ENTRY(variable) entry;
};

struct reader {
	struct hcl *h;
	const struct job_input *in;
	const struct hcl_scope *scope;
	STAILQ_HEAD(, variable) variables;
	size_t n_variables;
};

static struct variable *
find_variable(const struct reader *r, const char *name, size_t len)
{
	struct variable *v;

	STAILQ_FOREACH (v, &r->variables, entry)
		if (strlen(v->name) == len && memcmp(v->name, name, len) == 0)
			return v;
	return NULL;
}

static struct variable *
add_variable(struct reader *r, const char *name, struct hcl_range at)
{
	struct variable *v = find_variable(r, name, strlen(name));

	if (v)
		hcl_fail(r->h, at, "variable \"%s\" is declared twice; the first time in line %u",
		    name, hcl_position(v->at.source, v->at.from).line);
	if (!hcl_is_identifier(name))
		hcl_fail(r->h, at,
		    "a name starts with a letter or \"_\", and has letters, digits, \"_\" and "
		    "\"-\"");
	v = hcl_new_object(r->h, struct variable);
	v->name = name;
	v->at = at;
	STAILQ_INIT(&v->rules);
	STAILQ_INSERT_TAIL(&r->variables, v, entry);
	r->n_variables++;
	return v;
}

static struct hcl_value *
convert_value(
    struct reader *r, const struct variable *v, struct hcl_value *value, struct hcl_range at)
{
	const char *why = "";

	if (v->type)
		value = hcl_convert(r->h, value, v->type, &why);
	if (!value)
		hcl_fail(r->h, at, "this value does not fit the type %s of variable \"%s\": %s",
		    hcl_type_name(r->h, v->type), v->name, why);
	return value;
}

static void
set_value(struct reader *r, struct variable *v, struct hcl_value *value, struct hcl_range at)
{
	v->value = convert_value(r, v, value, at);
	v->value_at = at;
}

static const char *
read_text(struct reader *r, const struct hcl_attr *a)
{
	struct hcl_value *v = hcl_eval(r->h, a->expr, NULL);

	if (hcl_is_null(v) || !(v = hcl_convert(r->h, v, &hcl_type_string, NULL)))
		hcl_fail(r->h, a->expr->at, "expected a text");
	return v->string;
}

struct references {
	struct reader *r;
	const struct variable *v;
	unsigned good;
};

/* A condition refers to its variable and nothing else. */
static void
check_reference(void *arg, const struct hcl_expr *path)
{
	struct references *x = arg;
	const struct hcl_expr *root = path, *first = NULL;
	const char *keyword = hcl_expr_keyword(path);

	if (keyword && (strcmp(keyword, "true") == 0 || strcmp(keyword, "false") == 0 ||
			   strcmp(keyword, "null") == 0))
		return;
	for (; root->one; root = root->one)
		first = root;
	if (strcmp(root->name, "var") != 0 || !first || first->kind != HCL_EXPR_ATTR ||
	    strcmp(first->name, x->v->name) != 0)
		hcl_fail(x->r->h, path->at,
		    "the condition of variable \"%s\" can only refer to var.%s", x->v->name,
		    x->v->name);
	x->good++;
}

static void
read_rule(struct reader *r, struct variable *v, const struct hcl_block *b)
{
	struct rule *rule = hcl_new_object(r->h, struct rule);
	struct references refs = { r, v, 0 };

	rule->at = b->type_at;
	for (const struct hcl_attr *a = b->body->attrs; a; a = a->next) {
		if (strcmp(a->name, "condition") == 0)
			rule->condition = a->expr;
		else if (strcmp(a->name, "error_message") == 0)
			rule->message = read_text(r, a);
		else
			hcl_fail(r->h, a->name_at,
			    "a validation block has the attributes condition and error_message, "
			    "not \"%s\"",
			    a->name);
	}
	if (b->body->blocks)
		hcl_fail(r->h, b->body->blocks->type_at, "a validation block has no blocks inside");
	if (!rule->condition || !rule->message)
		hcl_fail(r->h, b->type_at,
		    "a validation block needs the attributes condition and error_message");
	if (strspn(rule->message, " \t\n") == strlen(rule->message))
		hcl_fail(r->h, b->type_at, "error_message must not be empty");
	hcl_expr_paths(rule->condition, check_reference, &refs);
	if (refs.good == 0)
		hcl_fail(r->h, rule->condition->at, "the condition must refer to var.%s", v->name);
	STAILQ_INSERT_TAIL(&v->rules, rule, entry);
}

static void
read_variable(struct reader *r, const struct hcl_block *b)
{
	static const char *const names[] = { "default", "description", "type" };
	const struct hcl_attr *a;
	struct variable *v;

	if (b->n_labels != 1)
		hcl_fail(
		    r->h, b->type_at, "a variable block needs one name: variable \"name\" { … }");
	v = add_variable(r, b->labels[0].text, b->labels[0].at);
	for (a = b->body->attrs; a; a = a->next)
		if (strcmp(a->name, "default") != 0 && strcmp(a->name, "description") != 0 &&
		    strcmp(a->name, "type") != 0) {
			const char *similar = similar_name(a->name, names, 3);

			hcl_fail(r->h, a->name_at,
			    "unknown attribute \"%s\" in a variable block%s%s%s", a->name,
			    similar ? ": did you mean \"" : "", similar ? similar : "",
			    similar ? "\"?" : "");
		}
	if ((a = hcl_body_attr(b->body, "description")))
		(void)read_text(r, a);
	if ((a = hcl_body_attr(b->body, "type")))
		v->type = hcl_read_type(r->h, a->expr, false);
	if ((a = hcl_body_attr(b->body, "default"))) {
		set_value(r, v, hcl_eval(r->h, a->expr, NULL), a->expr->at);
		if (!v->type)
			v->type = hcl_type_of(r->h, v->value);
	}
	for (const struct hcl_block *x = b->body->blocks; x; x = x->next) {
		if (strcmp(x->type, "validation") != 0)
			hcl_fail(r->h, x->type_at,
			    "unknown block \"%s\" in a variable block: did you mean "
			    "\"validation\"?",
			    x->type);
		read_rule(r, v, x);
	}
}

/* variables { name = default }: the old form. */
static void
read_variables(struct reader *r, const struct hcl_block *b)
{
	if (b->body->blocks)
		hcl_fail(r->h, b->body->blocks->type_at,
		    "a variables block has no blocks inside: did you mean a block \"variable\" "
		    "outside?");
	for (const struct hcl_attr *a = b->body->attrs; a; a = a->next) {
		struct variable *v = add_variable(r, a->name, a->name_at);

		set_value(r, v, hcl_eval(r->h, a->expr, NULL), a->expr->at);
		v->type = hcl_type_of(r->h, v->value);
	}
}

/* The value of -var and of the environment: a text for a string or a number, an expression for
 * any other type. */
static void
set_from_text(struct reader *r, struct variable *v, const char *from, const char *text)
{
	struct hcl_source *source = hcl_new_object(r->h, struct hcl_source);
	const struct hcl_expr *e;
	struct hcl_value *value;
	struct hcl_range at = { .source = source, .from = 0, .to = (uint32_t)strlen(text) };

	*source =
	    (struct hcl_source){ hcl_printf(r->h, "%s %s", from, v->name), text, strlen(text) };
	if (!v->type || v->type->kind == HCL_STRING || v->type->kind == HCL_NUMBER) {
		value = hcl_text(r->h, text);
	} else {
		e = hcl_parse_expr(r->h, source);
		if (!e)
			hcl_leave(r->h);
		value = hcl_eval(r->h, e, NULL);
	}
	set_value(r, v, value, at);
	v->given = text;
}

static void
read_environment(struct reader *r)
{
	const size_t prefix = strlen(ENV_PREFIX);

	for (const char *const *e = r->in->env; e && *e; e++) {
		const char *name = *e + prefix, *value;
		struct variable *v;

		if (strncmp(*e, ENV_PREFIX, prefix) != 0 || !(value = strchr(name, '=')))
			continue;
		v = find_variable(r, name, (size_t)(value - name));
		if (v)
			set_from_text(r, v, "environment variable " ENV_PREFIX, value + 1);
	}
}

static void
refuse_undeclared(struct reader *r, struct hcl_range at, const char *name)
{
	const char *names[64] = { NULL }, *similar, *hint;
	const struct variable *v;
	size_t n = 0;

	STAILQ_FOREACH (v, &r->variables, entry)
		if (n < ELEMENTSOF(names))
			names[n++] = v->name;
	similar = similar_name(name, names, n);
	hint = similar ? hcl_printf(r->h, ": did you mean \"%s\"?", similar) : "";
	if (r->in->strict)
		hcl_error(r->h, at, "the job file declares no variable \"%s\"%s", name, hint);
	else
		hcl_warn(r->h, at, "the job file declares no variable \"%s\"%s", name, hint);
}

static void
give_value(struct reader *r, const char *name, struct hcl_range name_at, struct hcl_value *value,
    struct hcl_range at)
{
	struct variable *v = find_variable(r, name, strlen(name));

	if (!v) {
		refuse_undeclared(r, name_at, name);
		return;
	}
	set_value(r, v, value, at);
	v->given = NULL;
}

static bool
begins_with_brace(const struct hcl_source *source)
{
	size_t i = 0;

	while (i < source->len && source->text[i] == ' ')
		i++;
	return i < source->len && source->text[i] == '{';
}

/* A file in JSON. Its texts are no templates; a member "//" is a comment. */
static void
read_json_values(struct reader *r, const struct hcl_source *source)
{
	const struct hcl_value *object = hcl_read_json(r->h, source);
	const struct hcl_range at = { source, 0, 1 };

	for (size_t i = 0; i < object->len; i++)
		if (strcmp(object->members[i].key, "//") != 0)
			give_value(r, object->members[i].key, at, object->members[i].value, at);
}

static void
read_var_file(struct reader *r, const struct hcl_source *source)
{
	const struct hcl_body *body;

	if (begins_with_brace(source)) {
		read_json_values(r, source);
		return;
	}
	body = hcl_parse_body(r->h, source);
	if (!body)
		hcl_leave(r->h);
	for (const struct hcl_block *b = body->blocks; b; b = b->next)
		hcl_error(r->h, b->type_at,
		    strcmp(b->type, "variable") == 0
			? "variables are declared in the job file; a file of values has lines of "
			  "the form name = value"
			: "a file of values has no blocks");
	for (const struct hcl_attr *a = body->attrs; a && !body->blocks; a = a->next)
		give_value(r, a->name, a->name_at, hcl_eval(r->h, a->expr, NULL), a->expr->at);
}

static void
read_argument(struct reader *r, const char *argument)
{
	const char *equals = strchr(argument, '=');
	struct hcl_range nowhere = { 0 };
	struct variable *v;

	if (!equals)
		hcl_fail(r->h, nowhere, "-var \"%s\": expected name=value", argument);
	v = find_variable(r, argument, (size_t)(equals - argument));
	if (v)
		set_from_text(r, v, "-var", equals + 1);
	else
		refuse_undeclared(
		    r, nowhere, hcl_strndup(r->h, argument, (size_t)(equals - argument)));
}

static void
check_rule(struct reader *r, const struct variable *v, const struct rule *rule)
{
	struct hcl_member *member = hcl_new_object(r->h, struct hcl_member);
	struct hcl_variable var = { .name = "var" };
	struct hcl_files files = { 0 };
	struct hcl_scope scope = {
		.variables = &var, .n = 1, .functions = &hcl_job_functions, .arg = &files
	};
	struct hcl_value *result;

	*member = (struct hcl_member){ v->name, strlen(v->name), v->value };
	var.value = hcl_object(r->h, member, 1);
	result = hcl_eval(r->h, rule->condition, &scope);
	if (result->state == HCL_UNKNOWN)
		return;
	if (hcl_is_null(result) || !(result = hcl_convert(r->h, result, &hcl_type_bool, NULL)))
		hcl_fail(r->h, rule->condition->at,
		    "the condition of variable \"%s\" must be true or false", v->name);
	if (!result->boolean)
		hcl_error(r->h, v->value_at, "wrong value for variable \"%s\": %s", v->name,
		    rule->message);
}

static struct hcl_value *
variables_value(struct reader *r)
{
	struct hcl_member *members = hcl_alloc(r->h, r->n_variables * sizeof *members);
	const struct variable *v;
	const struct rule *rule;
	size_t n = 0;

	STAILQ_FOREACH (v, &r->variables, entry) {
		if (!v->value)
			hcl_error(r->h, v->at,
			    "variable \"%s\" has no value: set it with -var %s=…, or give it a "
			    "default",
			    v->name, v->name);
		else
			members[n++] = (struct hcl_member){ v->name, strlen(v->name), v->value };
		STAILQ_FOREACH (rule, &v->rules, entry)
			if (v->value)
				check_rule(r, v, rule);
	}
	return hcl_object(r->h, members, n);
}

static const struct job_given *
list_given(struct reader *r)
{
	struct job_given *first = NULL, **tail = &first;
	const struct variable *v;

	STAILQ_FOREACH (v, &r->variables, entry) {
		struct job_given *given;

		if (!v->given)
			continue;
		given = hcl_new_object(r->h, struct job_given);
		given->name = v->name;
		given->text = v->given;
		given->is_expression = v->type && v->type->kind != HCL_STRING &&
				       v->type->kind != HCL_NUMBER && v->type->kind != HCL_BOOL;
		*tail = given;
		tail = &given->next;
	}
	return first;
}

void
job_read_names(struct hcl *h, const struct job_input *in, const struct hcl_body *body,
    const struct hcl_scope *scope, struct job_names *ret)
{
	struct reader r = { .h = h, .in = in, .scope = scope };
	struct job_locals locals = { STAILQ_HEAD_INITIALIZER(locals.list), 0 };

	STAILQ_INIT(&r.variables);
	for (const struct hcl_block *b = body->blocks; b; b = b->next) {
		if (strcmp(b->type, "variable") == 0)
			read_variable(&r, b);
		else if (strcmp(b->type, "variables") == 0)
			read_variables(&r, b);
		else if (strcmp(b->type, "locals") == 0)
			job_locals_add(h, &locals, b);
	}
	read_environment(&r);
	for (size_t i = 0; i < in->n_var_files; i++)
		read_var_file(&r, &in->var_files[i]);
	for (size_t i = 0; i < in->n_vars; i++)
		read_argument(&r, in->vars[i]);
	if (hcl_error_count(h) > 0)
		hcl_leave(h);
	ret->var = variables_value(&r);
	if (hcl_error_count(h) > 0)
		hcl_leave(h);
	ret->local = job_locals_evaluate(h, &locals, scope, ret->var);
	ret->given = list_given(&r);
}
