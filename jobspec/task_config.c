// SPDX-License-Identifier: Apache-2.0
/* task_config.c: evaluates the configuration of a task's driver when the task starts. Runs in:
 * job-parser. */
#include "jobspec/task_config.h"

#include <stdio.h>
#include <string.h>

#include "common/env_name.h"
#include "common/similar.h"
#include "hcl/hcl_functions.h"
#include "hcl/hcl_number.h"
#include "jobspec/task_names.h"

#define NAMES_COMPARED 256 /* for "did you mean" */
#define LINE_SHOWN     80  /* bytes of a line in a sentence */

const struct hcl_limits task_config_limits = {
	.source_bytes = 1024 * 1024,
	.memory_bytes = (size_t)32 * 1024 * 1024,
	.steps = 1000 * 1000,
	.depth = 200,
};

struct evaluation {
	const json_t *config, *values;
	struct hcl_scope scope;
	const char *json;
	size_t json_len;
};

/* A NOMAD_ name with a label, such as NOMAD_PORT_my-port, may be written as in the job. */
static struct hcl_value *
find_clean_name(struct hcl *h, const struct hcl_scope *scope, const char *name)
{
	char *clean = hcl_strndup(h, name, strlen(name));

	env_name_clean(clean);
	for (size_t i = 0; strncmp(name, "NOMAD_", 6) == 0 && i < scope->n; i++)
		if (strcmp(scope->variables[i].name, clean) == 0)
			return scope->variables[i].value;
	return NULL;
}

/* For paths whose root is unknown. */
static struct hcl_value *
find_missing(struct hcl *h, void *arg, const struct hcl_expr *path)
{
	const struct hcl_scope *scope = &((struct evaluation *)arg)->scope;
	const char *names[NAMES_COMPARED] = { NULL }, *similar;
	const struct hcl_expr *root = path;
	struct hcl_value *v;
	size_t n = 0;

	while (root->one)
		root = root->one;
	v = root == path ? find_clean_name(h, scope, root->name) : NULL;
	if (v)
		return v;
	while (n < scope->n && n < NAMES_COMPARED) {
		names[n] = scope->variables[n].name;
		n++;
	}
	similar = similar_name(root->name, names, n);
	hcl_fail(h, root->at, "unknown variable \"%s\"%s%s%s; write $${ for a literal ${",
	    root->name, similar ? ": did you mean \"" : "", similar ? similar : "",
	    similar ? "\"?" : "");
}

/* The value as the result has it: texts, nulls, lists and objects. */
static struct hcl_value *
settle(struct hcl *h, struct hcl_value *v, struct hcl_range at)
{
	struct hcl_value *made = hcl_new_object(h, struct hcl_value);

	hcl_step(h, 1);
	if (hcl_is_null(v))
		return v;
	if (!hcl_is_sequence(v) && !hcl_is_mapping(v)) {
		v = hcl_convert(h, v, &hcl_type_string, NULL);
		if (memchr(v->string, '\0', v->len))
			hcl_fail(h, at, "a task cannot get a text with a NUL character");
		return v;
	}
	*made = *v;
	if (hcl_is_sequence(v)) {
		made->items = hcl_alloc(h, v->len * sizeof(struct hcl_value *));
		for (size_t i = 0; i < v->len; i++)
			made->items[i] = settle(h, v->items[i], at);
		return hcl_tuple(h, made->items, v->len);
	}
	made->members = hcl_alloc(h, v->len * sizeof *made->members);
	for (size_t i = 0; i < v->len; i++) {
		made->members[i] = v->members[i];
		made->members[i].value = settle(h, v->members[i].value, at);
	}
	return hcl_object(h, made->members, v->len);
}

/* where: the name of the text in sentences, such as "config.args[0]". */
static struct hcl_value *
evaluate_text(struct hcl *h, struct evaluation *x, const char *text, const char *where)
{
	struct hcl_source *source = hcl_new_object(h, struct hcl_source);
	const struct hcl_expr *e;

	*source = (struct hcl_source){ where, text, strlen(text) };
	e = hcl_parse_template(h, source);
	if (!e)
		hcl_leave(h);
	return settle(h, hcl_eval(h, e, &x->scope), e->at);
}

/* The shortest decimal number that a double stands for, as JSON has it. */
static struct hcl_value *
evaluate_real(struct hcl *h, double d)
{
	char text[40];
	int digits = 15;

	do
		(void)snprintf(text, sizeof text, "%.*g", digits, d);
	while (strtod(text, NULL) != d && ++digits <= 17);
	return hcl_text(h, hcl_number_text(h, hcl_parse_number(h, text, strlen(text))->number));
}

static struct hcl_value *evaluate(
    struct hcl *h, struct evaluation *x, const json_t *from, const char *where, bool keys);

static struct hcl_value *
evaluate_list(struct hcl *h, struct evaluation *x, const json_t *from, const char *where)
{
	size_t n = json_array_size(from);
	struct hcl_value **items = hcl_alloc(h, n * sizeof(struct hcl_value *));

	for (size_t i = 0; i < n; i++)
		items[i] = evaluate(
		    h, x, json_array_get(from, i), hcl_printf(h, "%s[%zu]", where, i), true);
	return hcl_tuple(h, items, n);
}

static const char *
evaluate_key(struct hcl *h, struct evaluation *x, const char *key, const char *where)
{
	const struct hcl_value *v = evaluate_text(h, x, hcl_strndup(h, key, strlen(key)), where);

	if (hcl_is_null(v) || v->kind != HCL_STRING)
		hcl_fail(h, (struct hcl_range){ 0 }, "%s: a key must be a text", where);
	return v->string;
}

static struct hcl_value *
evaluate_object(
    struct hcl *h, struct evaluation *x, const json_t *from, const char *where, bool keys)
{
	struct hcl_member *members = hcl_alloc(h, json_object_size(from) * sizeof *members);
	const char *name;
	json_t *value;
	size_t n = 0;

	json_object_foreach ((json_t *)(uintptr_t)from, name, value) {
		const char *inner = hcl_printf(h, "%s.%s", where, name);
		const char *key =
		    keys ? evaluate_key(h, x, name, inner) : hcl_strndup(h, name, strlen(name));

		members[n++] =
		    (struct hcl_member){ key, strlen(key), evaluate(h, x, value, inner, true) };
	}
	return hcl_object(h, members, n);
}

/* keys: the keys of an object are texts to evaluate; those of the configuration itself are not. */
static struct hcl_value *
evaluate(struct hcl *h, struct evaluation *x, const json_t *from, const char *where, bool keys)
{
	switch (json_typeof(from)) {
	case JSON_OBJECT:
		return evaluate_object(h, x, from, where, keys);
	case JSON_ARRAY:
		return evaluate_list(h, x, from, where);
	case JSON_STRING:
		return evaluate_text(h, x, json_string_value(from), where);
	case JSON_INTEGER:
		return hcl_text(
		    h, hcl_printf(h, "%" JSON_INTEGER_FORMAT, json_integer_value(from)));
	case JSON_REAL:
		return evaluate_real(h, json_real_value(from));
	case JSON_NULL:
		return hcl_null(h, &hcl_type_any);
	default:
		return hcl_text(h, json_is_true(from) ? "true" : "false");
	}
}

static void
evaluate_all(struct hcl *h, void *arg)
{
	struct evaluation *x = arg;

	task_names_add(h, x->values, &x->scope);
	x->json = hcl_to_json(h, evaluate(h, x, x->config, "config", false), &x->json_len);
}

const char *
task_config_evaluate(struct hcl *h, const json_t *config, const json_t *values, size_t *ret_len)
{
	struct evaluation x = { .config = config, .values = values };

	x.scope = (struct hcl_scope){
		.functions = &hcl_config_functions, .missing = find_missing, .arg = &x
	};
	if (!hcl_try(h, evaluate_all, &x))
		return NULL;
	*ret_len = x.json_len;
	return x.json;
}

const char *
task_config_problem(struct hcl *h)
{
	const struct hcl_problem *p = hcl_problems(h);
	const struct hcl_source *s = p->at.source;
	size_t from, len = 0;

	if (!s)
		return p->text;
	from = p->at.from < s->len ? p->at.from : s->len;
	while (from > 0 && s->text[from - 1] != '\n')
		from--;
	while (from + len < s->len && s->text[from + len] != '\n' && len < LINE_SHOWN)
		len++;
	return hcl_printf(h, "%s: \"%.*s%s\": %s", s->name, (int)len, s->text + from,
	    len == LINE_SHOWN ? "…" : "", p->text);
}
