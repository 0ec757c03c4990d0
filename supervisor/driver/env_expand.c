// SPDX-License-Identifier: Apache-2.0
/* env_expand.c: the variables of a task, and the expressions ${…} that are replaced by their
 * values. Runs in: supervisor. */
#include "supervisor/driver/env_expand.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/env_name.h"
#include "common/glob.h"
#include "common/hash.h"
#include "common/mem.h"
#include "model/node.h"
#include "proto/exe_setup.h"
#include "proto/task_spec.h"

#define EXPRESSION_SIZE 256
#define VALUE_MAX       (128 * 1024) /* execve() takes no longer string */
#define GROWTH_MAX      (4 << 20)    /* a value may be used in many strings of a job */
#define INDEX_FIRST     256          /* a job may have tens of thousands of variables */

/* Returns the slot of the name in the index, or the free slot for it. */
static uint32_t *
index_at(const struct task_env *env, const char *name)
{
	uint64_t h = hash_string(name);

	for (size_t at = h ^ h >> 32;; at++) {
		uint32_t *slot = &env->index[at & (env->index_size - 1)];

		if (*slot == 0 || strcmp(env->vars.v[*slot - 1].key, name) == 0)
			return slot;
	}
}

/* Adds the variables that are not in the index yet. It stays at most half full. */
static void
index_vars(struct task_env *env)
{
	size_t size = env->index_size ? env->index_size : INDEX_FIRST;

	while (size < 2 * env->vars.n + 2)
		size *= 2;
	if (size != env->index_size) {
		free(env->index);
		env->index = mem_zeroed(size, sizeof *env->index);
		env->index_size = size;
		env->n_indexed = 0;
	}
	for (; env->n_indexed < env->vars.n; env->n_indexed++)
		*index_at(env, env->vars.v[env->n_indexed].key) = (uint32_t)env->n_indexed + 1;
}

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

void
task_env_put(struct task_env *env, const char *name, const char *value)
{
	struct string_pair *known = find_var(env, name);

	if (known) {
		str_set(&known->value, value);
		return;
	}
	string_map_append(&env->vars, name, value);
	index_vars(env);
}

bool
task_env_has(const struct task_env *env, const char *name)
{
	return find_var(env, name) != NULL;
}

void
task_env_putf(struct task_env *env, const char *name, const char *fmt, ...)
{
	char value[4096];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(value, sizeof value, fmt, ap);
	va_end(ap);
	task_env_put(env, name, value);
}

static bool
is_denied(const char *name, const json_t *patterns)
{
	json_t *pattern;
	size_t i;

	json_array_foreach (patterns, i, pattern)
		if (glob_fits(str(json_string_value(pattern)), name))
			return true;
	return false;
}

void
task_env_deny(struct task_env *env, const json_t *patterns)
{
	size_t kept = 0;

	for (size_t i = 0; i < env->vars.n; i++) {
		struct string_pair *pair = &env->vars.v[i];

		if (!is_denied(pair->key, patterns)) {
			env->vars.v[kept++] = *pair;
			continue;
		}
		free(pair->key);
		free(pair->value);
	}
	if (kept == env->vars.n)
		return;
	env->vars.n = kept;
	free(env->index);
	env->index = NULL;
	env->index_size = env->n_indexed = 0;
	index_vars(env);
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

/* Values of the node with names of their own. */
struct node_value {
	const char *name, *value;
};
#define NODE_VALUES 5

static void
list_node_values(const struct node *node, struct node_value ret[NODE_VALUES])
{
	const struct node_value known[NODE_VALUES] = {
		{ "node.unique.id", node->id },
		{ "node.unique.name", node->name },
		{ "node.datacenter", node->datacenter },
		{ "node.class", str(node->node_class) },
		{ "node.pool", str(node->node_pool) },
	};

	memcpy(ret, known, sizeof known);
}

/* The attributes and the metadata are also in `node`. */
static const char *
node_value(const struct node *node, const char *name)
{
	struct node_value known[NODE_VALUES];

	if (strncmp(name, "node.attr.", 10) == 0 || strncmp(name, "node.meta.", 10) == 0)
		name += strlen("node.");
	if (strncmp(name, "attr.", 5) == 0)
		return string_map_get(&node->attributes, name + 5);
	if (strncmp(name, "meta.", 5) == 0)
		return string_map_get(&node->meta, name + 5);
	list_node_values(node, known);
	for (size_t i = 0; i < NODE_VALUES; i++)
		if (strcmp(known[i].name, name) == 0)
			return known[i].value;
	return NULL;
}

static const char *
get_var(const struct task_env *env, const char *name)
{
	const struct string_pair *found = find_var(env, name);

	return found ? str(found->value) : NULL;
}

/* PATH, which exec-helper sets later, has the same value for all tasks. A NOMAD_ name with a label
 * or a key of meta may be written as in the job, with characters that no variable's name has. */
static const char *
variable(const struct task_env *env, const char *name)
{
	const char *value = get_var(env, name);
	char valid[EXPRESSION_SIZE];

	if (value || strncmp(name, "NOMAD_", 6) != 0)
		return value || !str_eq(name, "PATH") ? value : EXE_BASE_PATH;
	(void)snprintf(valid, sizeof valid, "%s", name);
	env_name_clean(valid);
	return get_var(env, valid);
}

/* In a driver's configuration an expression may also be env["NAME"] or env.NAME, and have blanks
 * around it. */
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
	if (strict && strncmp(expression, "env.", 4) == 0 && variable(env, expression + 4))
		return variable(env, expression + 4);
	if (str_eq(expression, "node.region"))
		return variable(env, "NOMAD_REGION");
	value = variable(env, expression);
	return value || !env->node ? value : node_value(env->node, expression);
}

/* Replaces one ${…} at *at. Returns 1, 0 if it is left as it is, or -EINVAL. */
static int
expand_one(
    const struct task_env *env, const char **at, bool strict, struct text *out, struct err *e)
{
	const char *end = memchr(*at, '}', strnlen(*at, EXPRESSION_SIZE + 2)), *value;
	char expression[EXPRESSION_SIZE];

	if (!end)
		return strict ? err_say(e, -EINVAL,
				    "\"%.60s\": ${ is not closed; write $${ for a literal ${", *at)
			      : 0;
	(void)snprintf(expression, sizeof expression, "%.*s", (int)(end - *at - 2), *at + 2);
	value = value_of(env, expression, strict);
	if (!value)
		return strict ? err_say(e, -EINVAL,
				    "${%s} is not known; write $${%s} for a literal ${%s}",
				    expression, expression, expression)
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
			    "\"%.60s\": %%{ directives are not supported; write %%%%{ for a "
			    "literal %%{",
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
	if (out.len >= VALUE_MAX || grown > GROWTH_MAX) {
		r = out.len >= VALUE_MAX
			? err_say(e, -E2BIG, "a value would have %d KiB or more", VALUE_MAX >> 10)
			: err_say(e, -E2BIG,
			      "the values of the task's ${…} would add more than %d MiB",
			      GROWTH_MAX >> 20);
		text_done(&out);
		return r;
	}
	env->grown = grown;
	*ret = out.text;
	return 0;
}

static size_t
blanks(const char *s)
{
	return strspn(s, " \t\n\r");
}

/* Returns the length of NAME, attr.x, env["NAME"] and so on with the blanks around it; 0: it is
 * something else. */
static size_t
reference_length(const char *s)
{
	static const char *const words[] = { "true", "false", "null" };
	static const char index[] = "env[\"";
	size_t at = blanks(s), len;

	if (strncmp(s + at, index, sizeof index - 1) == 0) {
		at += sizeof index - 1;
		at += strcspn(s + at, "\"\\$%");
		return strncmp(s + at, "\"]", 2) == 0 ? at + 2 + blanks(s + at + 2) : 0;
	}
	for (len = 0; isalnum((unsigned char)s[at + len]) || strchr("_.-", s[at + len]); len++)
		if (!s[at + len])
			break;
	if (len == 0 || !(isalpha((unsigned char)s[at]) || s[at] == '_'))
		return 0;
	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		if (strlen(words[i]) == len && strncmp(s + at, words[i], len) == 0)
			return 0;
	return at + len + blanks(s + at + len);
}

bool
task_env_can_expand(const char *text)
{
	for (size_t len; *text; text += len) {
		len = 1;
		if (strncmp(text, "$${", 3) == 0 || strncmp(text, "%%{", 3) == 0)
			len = 3;
		else if (strncmp(text, "%{", 2) == 0)
			return false;
		if (strncmp(text, "${", 2) != 0)
			continue;
		len = reference_length(text + 2);
		if (len == 0 || len >= EXPRESSION_SIZE || text[2 + len] != '}')
			return false;
		len += 3;
	}
	return true;
}

static void
add_all(json_t *into, const char *prefix, const struct string_map *map)
{
	for (size_t i = 0; i < map->n; i++) {
		cleanup_free char *name = mem_printf("%s%s", prefix, map->v[i].key);

		(void)json_object_set_new(into, name, json_string(str(map->v[i].value)));
	}
}

json_t *
task_env_values(const struct task_env *env)
{
	json_t *vars = mem_need(json_object()), *node = mem_need(json_object());

	(void)json_object_set_new(vars, "PATH", json_string(EXE_BASE_PATH));
	add_all(vars, "", &env->vars);
	if (env->node) {
		struct node_value known[NODE_VALUES];

		list_node_values(env->node, known);
		add_all(node, "attr.", &env->node->attributes);
		add_all(node, "meta.", &env->node->meta);
		for (size_t i = 0; i < NODE_VALUES; i++)
			(void)json_object_set_new(
			    node, known[i].name, json_string(str(known[i].value)));
	}
	(void)json_object_set_new(
	    node, "node.region", json_string(str(variable(env, "NOMAD_REGION"))));
	return mem_need(json_pack("{s:o, s:o}", "env", vars, "node", node));
}
