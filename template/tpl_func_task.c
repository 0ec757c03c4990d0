/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_func_task.c: environment, files, time, templates; and what is refused. Runs in:
 * template-renderer. */
#include <string.h>

#include "template/go_strings.h"
#include "template/go_text.h"
#include "template/go_time.h"
#include "template/tpl_functions.h"
#include "template/tpl_run.h"

static const char *
find_env(struct go_call *c)
{
	const struct template_data *d = c->run->data;
	const char *name = arena_strndup(c->arena, c->args[0].s, c->args[0].len), *value;

	value = d->env && strlen(name) == c->args[0].len ? d->env(d->arg, name) : NULL;
	c->run->sees_secrets |= value && *value;
	return value ? arena_strndup(c->arena, value, strlen(value)) : NULL;
}

struct go_value
tpl_fn_env(struct go_call *c)
{
	const char *value = find_env(c);

	return go_text(value ? value : "");
}

struct go_value
tpl_fn_must_env(struct go_call *c)
{
	const char *value = find_env(c);

	if (!value || !*value)
		go_call_fail(c, "required environment variable " TPL_VALUE("%.*s") " is empty",
		    (int)c->args[0].len, c->args[0].s);
	return go_text(value);
}

struct go_value
tpl_fn_env_or_default(struct go_call *c)
{
	const char *value = find_env(c);

	return value ? go_text(value) : c->args[1];
}

struct go_value
tpl_fn_file(struct go_call *c)
{
	const struct template_data *d = c->run->data;
	struct template_query q = { .kind = TEMPLATE_NEED_FILE };
	struct go_value path = go_trim_space(c->args[0]);
	enum template_answer answer = TEMPLATE_UNKNOWN;
	const char *bytes = NULL, *problem = "it cannot be read";
	struct tpl_need *need;
	size_t len = 0;
	bool first;

	if (c->args[0].len == 0)
		return go_text("");
	q.name = arena_strndup(c->arena, path.s, path.len);
	need = tpl_need(c->run, &q, arena_printf(c->arena, "file(%s)", q.name), &first);
	if (!first)
		return need->value;
	if (d->file && strlen(q.name) == path.len)
		answer = d->file(d->arg, &need->need.query, &bytes, &len, &problem);
	if (answer == TEMPLATE_ABSENT)
		go_call_fail(c, TPL_VALUE("%s") ": %s", q.name, problem);
	need->need.missing = answer == TEMPLATE_UNKNOWN;
	c->run->sees_secrets |= answer != TEMPLATE_UNKNOWN;
	need->value = answer == TEMPLATE_UNKNOWN
			  ? go_text("")
			  : go_string(arena_strndup(c->arena, bytes, len), len);
	return need->value;
}

struct go_value
tpl_fn_timestamp(struct go_call *c)
{
	int64_t now = c->run->data->now_ns;
	struct text t = { .arena = c->arena };

	if (c->n > 1)
		go_call_fail(
		    c, "timestamp: wrong number of arguments, expected 0 or 1, but got %zu", c->n);
	if (c->n == 0)
		go_format_time(&t, now, GO_RFC3339, strlen(GO_RFC3339));
	else if (go_text_is(c->args[0], "unix"))
		return go_text(arena_printf(c->arena, "%lld", (long long)(now / 1000000000)));
	else
		go_format_time(&t, now, c->args[0].s, c->args[0].len);
	return go_text_value(&t);
}

/* The output of a template as a text. */
struct go_value
tpl_fn_execute_template(struct go_call *c)
{
	struct tpl_run *run = c->run;
	struct tpl_nested nested = { run->tree, c->node, c->name, run->nested };
	struct text out = { .arena = c->arena }, *before = run->out, quoted = out;
	const struct tpl_tree *tree = tpl_find_tree(run->text, c->args[0].s, c->args[0].len);

	if (c->n > 2)
		go_call_fail(c,
		    "executeTemplate: wrong number of arguments, expected 1 or 2, but got %zu",
		    c->n);
	if (!tree) {
		go_quote(&quoted, c->args[0].s, c->args[0].len, false);
		go_call_fail(
		    c, "template: no template %s associated with template \"\"", quoted.text);
	}
	run->out = &out;
	run->nested = &nested;
	tpl_execute(run, tree, c->n == 2 ? c->args[1] : go_nothing);
	run->out = before;
	run->nested = nested.outer;
	return go_text_value(&out);
}

/* plugin and writeToFile, and what the agent's configuration denies. */
struct go_value
tpl_fn_denied(struct go_call *c)
{
	go_call_fail(c, "function is disabled");
}

struct go_value
tpl_fn_unsupported(struct go_call *c)
{
	go_call_fail(c, "%s is not supported", c->name);
}
