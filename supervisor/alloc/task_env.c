// SPDX-License-Identifier: Apache-2.0
/* task_env.c: a task's environment and ${…}. Runs in: supervisor. */
#include "supervisor/alloc/task_env.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "model/node.h"
#include "proto/exe_setup.h"
#include "proto/task_spec.h"
#include "supervisor/alloc/alloc_identity.h"
#include "supervisor/node/cores.h"
#include "supervisor/node/node_state.h"
#include "supervisor/service/ports.h"

#define EXPRESSION_SIZE 256
#define VALUE_MAX       (128 * 1024) /* more in one string no program is given by the kernel */
#define GROWTH_MAX      (4 * SPEC_BYTES_MAX) /* a value may stand in many strings of a job */

/* --- variables by name: a job may have tens of thousands --- */

#define INDEX_FIRST 256

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

static int
put(struct task_env *env, const char *name, const char *value)
{
	struct string_pair *known = find_var(env, name);

	if (known)
		return str_set(&known->value, value);
	return string_map_append(&env->vars, name, value) < 0 ? -ENOMEM : index_vars(env);
}

static int __attribute__((format(printf, 3, 4)))
putf(struct task_env *env, const char *name, const char *fmt, ...)
{
	char value[4096];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(value, sizeof value, fmt, ap);
	va_end(ap);
	return put(env, name, value);
}

/* The characters that a variable's name has here. */
static void
make_valid(char *name)
{
	for (char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '.' && *c != '_')
			*c = '_';
}

static int
put_dirs(struct sup *sup, struct task_env *env, const struct sup_alloc *sa, const struct task *task,
    bool isolated)
{
	const char *data = sup->args.data_dir;
	int r;

	if (!task)
		return putf(env, "NOMAD_ALLOC_DIR", "%s/alloc/%s/alloc", data, sa->a.id);
	if (isolated)
		return (r = put(env, "NOMAD_ALLOC_DIR", "/alloc")) < 0 ? r
		       : (r = put(env, "NOMAD_TASK_DIR", "/local")) < 0
			   ? r
			   : put(env, "NOMAD_SECRETS_DIR", "/secrets");
	if ((r = putf(env, "NOMAD_ALLOC_DIR", "%s/alloc/%s/alloc", data, sa->a.id)) < 0 ||
	    (r = putf(env, "NOMAD_TASK_DIR", "%s/alloc/%s/%s/local", data, sa->a.id, task->name)) <
		0)
		return r;
	return putf(env, "NOMAD_SECRETS_DIR", "%s/alloc/%s/%s/secrets", data, sa->a.id, task->name);
}

/* Who has reserved cores asked for no MHz: what those make is the source's to say. */
static int
put_cpu(struct task_env *env, const struct sup_alloc *sa, const struct task *task)
{
	const struct alloc_cpu *own = alloc_task_cpu(&sa->a, task->name);
	bool cores = own && own->reserved_cores.n > 0;
	char list[CORES_TEXT_SIZE];
	int r = putf(env, "NOMAD_CPU_LIMIT", "%lld",
	    (long long)(cores ? own->cpu_shares : task->resources->cpu));

	if (r < 0 || !cores)
		return r;
	core_list_format(&own->reserved_cores, list);
	return put(env, "NOMAD_CPU_CORES", list);
}

static int
put_limits(struct task_env *env, const struct sup_alloc *sa, const struct task *task)
{
	const struct alloc_memory memory = alloc_task_memory(&sa->a, task);
	int r = put_cpu(env, sa, task);

	if (r == 0)
		r = putf(env, "NOMAD_MEMORY_LIMIT", "%lld", (long long)memory.memory_mb);
	if (r == 0 && memory.memory_max_mb > 0)
		r = putf(env, "NOMAD_MEMORY_MAX_LIMIT", "%lld", (long long)memory.memory_max_mb);
	return r;
}

static int
put_names(
    struct sup *sup, struct task_env *env, const struct sup_alloc *sa, const struct task *task)
{
	const struct job *job = &sa->job->job;
	const struct {
		const char *name, *value;
	} pairs[] = {
		{ "NOMAD_ALLOC_ID", sa->a.id },
		{ "NOMAD_ALLOC_NAME", sa->a.name },
		{ "NOMAD_TASK_NAME", task ? task->name : NULL },
		{ "NOMAD_GROUP_NAME", sa->a.task_group },
		{ "NOMAD_JOB_ID", job->id },
		{ "NOMAD_JOB_NAME", job->name },
		{ "NOMAD_NAMESPACE", job->namespace },
		{ "NOMAD_DC", sup->config->datacenter },
		{ "NOMAD_REGION", sup->config->region },
	};
	int r;

	for (size_t i = 0; i < ELEMENTSOF(pairs); i++)
		if ((pairs[i].value || task) &&
		    (r = put(env, pairs[i].name, str(pairs[i].value))) < 0)
			return r;
	if (job->parent_id && (r = put(env, "NOMAD_JOB_PARENT_ID", job->parent_id)) < 0)
		return r;
	if (env->node &&
	    str_eq(string_map_get(&env->node->attributes, "os.cgroups.version"), "2") &&
	    (r = put(env, "NOMAD_PARENT_CGROUP", str(env->node->cgroup_parent))) < 0)
		return r;
	if ((r = putf(env, "NOMAD_SHORT_ALLOC_ID", "%.8s", sa->a.id)) < 0 ||
	    (r = putf(env, "NOMAD_ALLOC_INDEX", "%lld",
		 (long long)alloc_name_index(str(sa->a.name)))) < 0)
		return r;
	return task ? put_limits(env, sa, task) : 0;
}

/* Replaced in it: what is known so far. */
static int
put_expanded(struct task_env *env, const char *name, const char *value)
{
	cleanup_free char *made = NULL;
	int r = task_env_expand(env, value, false, &made, NULL);

	return r < 0 ? r : put(env, name, made);
}

/* NOMAD_META_key and NOMAD_META_KEY, job under group under task. */
static int
put_meta(struct task_env *env, const struct string_map *meta)
{
	char name[300], upper[300];
	int r;

	for (size_t i = 0; i < meta->n; i++) {
		int n = snprintf(name, sizeof name, "NOMAD_META_%.256s", meta->v[i].key);

		make_valid(name);
		(void)strcpy(upper, name);
		for (int k = sizeof "NOMAD_META_" - 1; k < n; k++)
			upper[k] = (char)toupper((unsigned char)upper[k]);
		if ((r = put_expanded(env, name, str(meta->v[i].value))) < 0 ||
		    (r = put_expanded(env, upper, str(meta->v[i].value))) < 0)
			return r;
	}
	return 0;
}

/* Keys that a dispatch may leave out are there nonetheless. */
static int
put_optional_meta(struct task_env *env, const struct job *job)
{
	struct string_map empty = { 0 };
	int r = 0;

	for (size_t i = 0; job->dispatched && job->parameterized && r == 0 &&
			   i < job->parameterized->meta_optional.n;
	     i++)
		r = string_map_append(&empty, str(job->parameterized->meta_optional.v[i]), "");
	if (r == 0)
		r = put_meta(env, &empty);
	for (size_t i = 0; i < empty.n; i++) {
		free(empty.v[i].key);
		free(empty.v[i].value);
	}
	free(empty.v);
	return r;
}

struct port_vars {
	struct task_env *env;
	const char *task;
	int r;
};

static void
put_port_var(struct port_vars *v, const char *name, const char *label, bool clean, const char *ip,
    int64_t port)
{
	char key[300], value[80];

	(void)snprintf(key, sizeof key, "%s%.200s", name, label);
	if (clean)
		make_valid(key);
	if (port == 0)
		(void)snprintf(value, sizeof value, "%.60s", ip);
	else if (!ip)
		(void)snprintf(value, sizeof value, "%lld", (long long)port);
	else
		(void)snprintf(value, sizeof value, strchr(ip, ':') ? "[%.60s]:%lld" : "%.60s:%lld",
		    ip, (long long)port);
	if (v->r == 0)
		v->r = put(v->env, key, value);
}

/* Of the task's own network: no driver here maps its ports, so `to` says nothing. */
static void
put_port_of_own(struct port_vars *v, const char *label, const struct port_at *at)
{
	put_port_var(v, "NOMAD_IP_", label, true, at->ip, 0);
	put_port_var(v, "NOMAD_ADDR_", label, true, at->ip, at->value);
	put_port_var(v, "NOMAD_PORT_", label, true, NULL, at->value);
	put_port_var(v, "NOMAD_HOST_PORT_", label, true, NULL, at->value);
}

/* Not all of the names are made valid: that is how tasks know them. */
static void
put_port_of_group(struct port_vars *v, const char *label, const struct port_at *at)
{
	int64_t inside = at->to > 0 ? at->to : at->value;

	put_port_of_own(v, label, at);
	put_port_var(v, "NOMAD_PORT_", label, true, NULL, inside);
	put_port_var(v, "NOMAD_HOST_IP_", label, false, at->ip, 0);
	put_port_var(v, "NOMAD_HOST_ADDR_", label, false, at->ip, at->value);
	put_port_var(v, "NOMAD_ALLOC_PORT_", label, false, NULL, inside);
}

/* Of another task's own network, as old jobs have them. */
static void
put_port_of_task(struct port_vars *v, const char *task, const char *label, const struct port_at *at)
{
	char name[300];

	(void)snprintf(name, sizeof name, "%.140s_%.150s", task, label);
	put_port_var(v, "NOMAD_IP_", name, true, at->ip, 0);
	put_port_var(v, "NOMAD_ADDR_", name, true, at->ip, at->value);
	put_port_var(v, "NOMAD_PORT_", name, true, NULL, at->value);
}

static void
put_port(void *arg, const char *task, const char *label, const struct port_at *at)
{
	struct port_vars *v = arg;

	if (!task)
		put_port_of_group(v, label, at);
	else if (str_eq(task, v->task))
		put_port_of_own(v, label, at);
	else
		put_port_of_task(v, task, label, at);
}

static int
put_ports(struct task_env *env, const struct alloc *a, const struct task *task)
{
	struct port_vars v = { .env = env, .task = task ? task->name : NULL };

	port_each(a, put_port, &v);
	return v.r;
}

int
task_env_make(struct sup *sup, const struct sup_alloc *sa, const struct task *task, bool isolated,
    struct task_env *ret)
{
	struct task_env env = { .node = node_get(sup) };
	int r;

	if ((r = put_dirs(sup, &env, sa, task, isolated)) < 0 ||
	    (r = put_names(sup, &env, sa, task)) < 0 ||
	    (r = put_optional_meta(&env, &sa->job->job)) < 0 ||
	    (r = put_meta(&env, &sa->job->job.meta)) < 0 ||
	    (r = put_meta(&env, &sa->group->meta)) < 0 ||
	    (task && (r = put_meta(&env, &task->meta)) < 0) ||
	    (r = put_ports(&env, &sa->a, task)) < 0)
		goto fail;
	for (size_t i = 0; task && i < task->env.n; i++)
		if ((r = put_expanded(&env, task->env.v[i].key, str(task->env.v[i].value))) < 0)
			goto fail;
	if (task && (r = alloc_identities_put_env(sa, task, &env.vars)) < 0)
		goto fail;
	*ret = env;
	return 0;

fail:
	task_env_done(&env);
	return r;
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
	make_valid(valid);
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
