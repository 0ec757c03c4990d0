// SPDX-License-Identifier: Apache-2.0
/* env_expand.c: the variables of a task, and ${…} replaced by them. Runs in: supervisor. */
#include "supervisor/driver/env_expand.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/node.h"
#include "proto/exe_setup.h"
#include "proto/task_spec.h"

#define EXPRESSION_SIZE 256
#define VALUE_MAX       (128 * 1024) /* more in one string no program is given by the kernel */
#define GROWTH_MAX      (4 * SPEC_BYTES_MAX) /* a value may stand in many strings of a job */
#define INDEX_FIRST     256                  /* a job may have tens of thousands of variables */

/* Where the name stands in the index, or would. */
static uint32_t *
index_at(const struct task_env *env, const char *name)
{
	uint64_t h = 0xcbf29ce484222325ull;
	size_t at;

	for (const char *c = name; *c; c++)
		h = (h ^ (unsigned char)*c) * 0x100000001b3ull;
	for (at = h ^ h >> 32;; at++) {
		uint32_t *slot = &env->index[at & (env->index_size - 1)];

		if (*slot == 0 || strcmp(env->vars.v[*slot - 1].key, name) == 0)
			return slot;
	}
}

/* Twice as large as what is in it, at least. */
static int
index_vars(struct task_env *env)
{
	size_t size = env->index_size ? env->index_size : INDEX_FIRST;

	while (size < 2 * env->vars.n + 2)
		size *= 2;
	if (size != env->index_size) {
		free(env->index);
		env->index = calloc(size, sizeof *env->index);
		env->index_size = env->index ? size : 0;
		env->n_indexed = 0;
	}
	for (; env->index && env->n_indexed < env->vars.n; env->n_indexed++)
		*index_at(env, env->vars.v[env->n_indexed].key) = (uint32_t)env->n_indexed + 1;
	return env->index ? 0 : -ENOMEM;
}

/* NULL: it is not there. */
static struct string_pair *
find_var(const struct task_env *env, const char *name)
{
	uint32_t *slot = env->index ? index_at(env, name) : NULL;

	if (slot && *slot)
		return &env->vars.v[*slot - 1];
	for (size_t i = env->n_indexed; i < env->vars.n; i++)
		if (strcmp(env->vars.v[i].key, name) == 0)
			return &env->vars.v[i];
	return NULL;
}

int
task_env_put(struct task_env *env, const char *name, const char *value)
{
	struct string_pair *known = find_var(env, name);

	if (known)
		return str_set(&known->value, value);
	return string_map_append(&env->vars, name, value) < 0 ? -ENOMEM : index_vars(env);
}

int
task_env_putf(struct task_env *env, const char *name, const char *fmt, ...)
{
	char value[4096];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(value, sizeof value, fmt, ap);
	va_end(ap);
	return task_env_put(env, name, value);
}

void
task_env_make_name(char *name)
{
	for (char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '.' && *c != '_')
			*c = '_';
}

void
task_env_done(struct task_env *env)
{
	for (size_t i = 0; i < env->vars.n; i++) {
		free(env->vars.v[i].key);
		free(env->vars.v[i].value);
	}
	free(env->vars.v);
	free(env->index);
	*env = (struct task_env){ 0 };
}

static const char *
node_value(const struct node *node, const char *name)
{
	const struct {
		const char *name, *value;
	} known[] = {
		{ "node.unique.id", node->id },
		{ "node.unique.name", node->name },
		{ "node.datacenter", node->datacenter },
		{ "node.class", str(node->node_class) },
		{ "node.pool", str(node->node_pool) },
	};

	if (strncmp(name, "attr.", 5) == 0)
		return string_map_get(&node->attributes, name + 5);
	if (strncmp(name, "meta.", 5) == 0)
		return string_map_get(&node->meta, name + 5);
	for (size_t i = 0; i < ELEMENTSOF(known); i++)
		if (strcmp(known[i].name, name) == 0)
			return known[i].value;
	return NULL;
}

static const char *
get(const struct task_env *env, const char *name)
{
	const struct string_pair *found = find_var(env, name);

	return found ? str(found->value) : NULL;
}

/* PATH comes with the user, later, and is the same for all. A label or a key of meta may stand as
 * it is in the job. */
static const char *
variable(const struct task_env *env, const char *name)
{
	const char *value = get(env, name);
	char valid[EXPRESSION_SIZE];

	if (value || strncmp(name, "NOMAD_", 6) != 0)
		return value || !str_eq(name, "PATH") ? value : EXE_BASE_PATH;
	(void)snprintf(valid, sizeof valid, "%s", name);
	task_env_make_name(valid);
	return get(env, valid);
}

/* In a driver's configuration a variable may be env["NAME"] too, with blanks around it all. */
static const char *
value_of(const struct task_env *env, const char *expression, bool strict)
{
	char name[EXPRESSION_SIZE];
	const char *value;
	int end = 0;

	if (strict && sscanf(expression, " env[\"%255[^\"]\"] %n", name, &end) == 1 && end > 0)
		return expression[end] ? NULL : variable(env, name);
	if (strict && sscanf(expression, " %255s %n", name, &end) == 1)
		expression = expression[end] ? expression : name;
	if (str_eq(expression, "node.region"))
		return variable(env, "NOMAD_REGION");
	value = variable(env, expression);
	return value || !env->node ? value : node_value(env->node, expression);
}

/* One ${…} at *at. 1 replaced, 0 left as it is, -EINVAL. */
static int
expand_one(
    const struct task_env *env, const char **at, bool strict, struct text *out, struct err *e)
{
	const char *end = memchr(*at, '}', strnlen(*at, EXPRESSION_SIZE + 2)), *value;
	char expression[EXPRESSION_SIZE];

	if (!end)
		return strict ? err_say(e, -EINVAL,
				    "\"%.60s\": ${ is not closed; write $${ for the characters "
				    "themselves",
				    *at)
			      : 0;
	(void)snprintf(expression, sizeof expression, "%.*s", (int)(end - *at - 2), *at + 2);
	value = value_of(env, expression, strict);
	if (!value)
		return strict
			   ? err_say(e, -EINVAL,
				 "${%s} is not known; write $${%s} for the characters themselves",
				 expression, expression)
			   : 0;
	text_append(out, value, strlen(value));
	*at = end + 1;
	return 1;
}

int
task_env_expand(struct task_env *env, const char *text, bool strict, char **ret, struct err *e)
{
	size_t before = strlen(text), grown = env->grown;
	struct text out = { 0 };
	int r;

	text_append(&out, "", 0);
	while (*text && out.len < VALUE_MAX) {
		if (strict && (strncmp(text, "$${", 3) == 0 || strncmp(text, "%%{", 3) == 0)) {
			text_append(&out, text + 1, 2);
			text += 3;
			continue;
		}
		if (strict && strncmp(text, "%{", 2) == 0) {
			text_done(&out);
			return err_say(e, -EINVAL,
			    "\"%.60s\": %%{ directives are not known; write %%%%{ for the "
			    "characters",
			    text);
		}
		if (strncmp(text, "${", 2) == 0) {
			r = expand_one(env, &text, strict, &out, e);
			if (r < 0) {
				text_done(&out);
				return r;
			}
			if (r > 0)
				continue;
		}
		text_append(&out, text++, 1);
	}
	if (out.len > before)
		grown += out.len - before;
	if (out.failed || out.len >= VALUE_MAX || grown > GROWTH_MAX) {
		r = out.failed ? -ENOMEM : -E2BIG;
		text_done(&out);
		return err_set(e, r, "replace what ${…} stands for");
	}
	env->grown = grown;
	*ret = out.text ? out.text : strdup("");
	return *ret ? 0 : -ENOMEM;
}
