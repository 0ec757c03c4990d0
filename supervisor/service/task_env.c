// SPDX-License-Identifier: Apache-2.0
/* task_env.c: the environment variables of a task. Runs in: supervisor. */
#include "supervisor/service/task_env.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/env_name.h"
#include "model/node.h"
#include "proto/exe_setup.h"
#include "proto/task_spec.h"
#include "supervisor/driver/container.h"
#include "supervisor/node/cores.h"
#include "supervisor/node/node_state.h"
#include "supervisor/service/service_place.h"

static void
put_dirs(struct sup *sup, struct task_env *env, const struct sup_alloc *sa, const struct task *task,
    bool isolated)
{
	const char *data = sup->args.data_dir;

	if (task && isolated) {
		task_env_put(env, "NOMAD_ALLOC_DIR", "/alloc");
		task_env_put(env, "NOMAD_TASK_DIR", "/local");
		task_env_put(env, "NOMAD_SECRETS_DIR", "/secrets");
		return;
	}
	task_env_putf(env, "NOMAD_ALLOC_DIR", "%s/alloc/%s/alloc", data, sa->a.id);
	if (!task)
		return;
	task_env_putf(env, "NOMAD_TASK_DIR", "%s/alloc/%s/%s/local", data, sa->a.id, task->name);
	task_env_putf(
	    env, "NOMAD_SECRETS_DIR", "%s/alloc/%s/%s/secrets", data, sa->a.id, task->name);
}

/* A task with reserved cores requests no MHz; the source computes their MHz. */
static void
put_cpu(struct task_env *env, const struct sup_alloc *sa, const struct task *task)
{
	const struct alloc_cpu *own = alloc_task_cpu(&sa->a, task->name);
	bool cores = own && own->reserved_cores.n > 0;
	char list[CORES_TEXT_SIZE];

	task_env_putf(env, "NOMAD_CPU_LIMIT", "%lld",
	    (long long)(cores ? own->cpu_shares : task->resources->cpu));
	if (!cores)
		return;
	core_list_format(&own->reserved_cores, list);
	task_env_put(env, "NOMAD_CPU_CORES", list);
}

static void
put_limits(struct task_env *env, const struct sup_alloc *sa, const struct task *task)
{
	const struct alloc_memory memory = alloc_task_memory(&sa->a, task);

	put_cpu(env, sa, task);
	task_env_putf(env, "NOMAD_MEMORY_LIMIT", "%lld", (long long)memory.memory_mb);
	if (memory.memory_max_mb != 0)
		task_env_putf(
		    env, "NOMAD_MEMORY_MAX_LIMIT", "%lld", (long long)memory.memory_max_mb);
}

static void
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

	for (size_t i = 0; i < ELEMENTSOF(pairs); i++)
		if (pairs[i].value || task)
			task_env_put(env, pairs[i].name, str(pairs[i].value));
	if (job->parent_id)
		task_env_put(env, "NOMAD_JOB_PARENT_ID", job->parent_id);
	if (env->node && str_eq(string_map_get(&env->node->attributes, "os.cgroups.version"), "2"))
		task_env_put(env, "NOMAD_PARENT_CGROUP", str(env->node->cgroup_parent));
	task_env_putf(env, "NOMAD_SHORT_ALLOC_ID", "%.8s", sa->a.id);
	task_env_putf(
	    env, "NOMAD_ALLOC_INDEX", "%lld", (long long)alloc_name_index(str(sa->a.name)));
	if (task)
		put_limits(env, sa, task);
}

/* Sets a variable to a value in which the variables so far are replaced. */
static int
put_expanded(struct task_env *env, const char *name, const char *value)
{
	cleanup_free char *made = NULL;
	int r = task_env_expand(env, value, false, &made, NULL);

	if (r == 0)
		task_env_put(env, name, made);
	return r;
}

/* Sets NOMAD_META_key and NOMAD_META_KEY for each key. */
static int
put_meta(struct task_env *env, const struct string_map *meta)
{
	char name[300], upper[300];
	int r;

	for (size_t i = 0; i < meta->n; i++) {
		int n = snprintf(name, sizeof name, "NOMAD_META_%.256s", meta->v[i].key);

		env_name_clean(name);
		(void)strcpy(upper, name);
		for (int k = sizeof "NOMAD_META_" - 1; k < n; k++)
			upper[k] = (char)toupper((unsigned char)upper[k]);
		if ((r = put_expanded(env, name, str(meta->v[i].value))) < 0 ||
		    (r = put_expanded(env, upper, str(meta->v[i].value))) < 0)
			return r;
	}
	return 0;
}

/* The optional keys of a parameterized job are set too, to "", if a dispatch leaves them out. */
static int
put_optional_meta(struct task_env *env, const struct job *job)
{
	struct string_map empty = { 0 };
	int r;

	for (size_t i = 0;
	     job->dispatched && job->parameterized && i < job->parameterized->meta_optional.n; i++)
		string_map_append(&empty, str(job->parameterized->meta_optional.v[i]), "");
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
	const struct task *map; /* a container, whose port_map may say what is inside; or NULL */
	const struct alloc_network_status *network; /* of the alloc's own; NULL: it has none */
};

static void
put_port_var(struct port_vars *v, const char *name, const char *label, bool clean, const char *ip,
    int64_t port)
{
	char key[300], value[80];

	(void)snprintf(key, sizeof key, "%s%.200s", name, label);
	if (clean)
		env_name_clean(key);
	if (port == 0)
		(void)snprintf(value, sizeof value, "%.60s", ip);
	else if (!ip)
		(void)snprintf(value, sizeof value, "%lld", (long long)port);
	else
		(void)snprintf(value, sizeof value, strchr(ip, ':') ? "[%.60s]:%lld" : "%.60s:%lld",
		    ip, (long long)port);
	task_env_put(v->env, key, value);
}

/* For a port of the task's own network. Its `to` is not used, but a container's port_map is. */
static void
put_port_of_own(struct port_vars *v, const char *label, const struct port_at *at)
{
	int64_t inside = v->map ? container_port_inside(v->map, label) : 0;

	put_port_var(v, "NOMAD_IP_", label, true, at->ip, 0);
	put_port_var(v, "NOMAD_ADDR_", label, true, at->ip, at->value);
	put_port_var(v, "NOMAD_PORT_", label, true, NULL, inside > 0 ? inside : at->value);
	put_port_var(v, "NOMAD_HOST_PORT_", label, true, NULL, at->value);
}

/* Some names keep invalid characters of the label, as in the original client. */
static void
put_port_of_group(struct port_vars *v, const char *label, const struct port_at *at)
{
	int64_t mapped = v->map ? container_port_inside(v->map, label) : 0;
	int64_t inside = port_inside(NULL, label, at);

	put_port_of_own(v, label, at);
	if (mapped <= 0)
		put_port_var(v, "NOMAD_PORT_", label, true, NULL, inside);
	put_port_var(v, "NOMAD_HOST_IP_", label, false, at->ip, 0);
	put_port_var(v, "NOMAD_HOST_ADDR_", label, false, at->ip, at->value);
	put_port_var(v, "NOMAD_ALLOC_PORT_", label, false, NULL, inside);
	if (!v->network || !v->network->address)
		return;
	put_port_var(v, "NOMAD_ALLOC_INTERFACE_", label, false, str(v->network->interface_name), 0);
	put_port_var(v, "NOMAD_ALLOC_IP_", label, false, v->network->address, 0);
	put_port_var(v, "NOMAD_ALLOC_ADDR_", label, false, v->network->address, inside);
}

/* For a port of another task's own network, which only old jobs have. */
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

static void
put_ports(struct task_env *env, const struct alloc *a, const struct task *task)
{
	struct port_vars v = { .env = env,
		.task = task ? task->name : NULL,
		.network = a->network_status,
		.map = task && driver_config_get(task, "port_map") ? task : NULL };

	port_each(a, put_port, &v);
}

_Static_assert(sizeof((struct sup *)0)->task_env_vars / sizeof(task_env_vars *) == TASK_ENV_LAYERS,
    "every layer has its function");

void
task_env_provide(struct sup *sup, enum task_env_layer layer, task_env_vars *vars)
{
	sup->task_env_vars[layer] = vars;
}

int
task_env_make(struct sup *sup, const struct sup_alloc *sa, const struct task *task, bool isolated,
    struct task_env *ret)
{
	struct task_env env = { .node = node_get(sup) };
	int r;

	put_dirs(sup, &env, sa, task, isolated);
	put_names(sup, &env, sa, task);
	/* A key of the task overrides one of the group, which overrides one of the job. */
	if ((r = put_optional_meta(&env, &sa->job->job)) < 0 ||
	    (r = put_meta(&env, &sa->job->job.meta)) < 0 ||
	    (r = put_meta(&env, &sa->group->meta)) < 0 ||
	    (task && (r = put_meta(&env, &task->meta)) < 0))
		goto fail;
	put_ports(&env, &sa->a, task);
	for (size_t i = 0; task && i < task->env.n; i++)
		if ((r = put_expanded(&env, task->env.v[i].key, str(task->env.v[i].value))) < 0)
			goto fail;
	for (size_t i = 0; task && i < TASK_ENV_LAYERS; i++)
		if (sup->task_env_vars[i])
			sup->task_env_vars[i](sa, task, &env.vars);
	*ret = env;
	return 0;

fail:
	task_env_done(&env);
	return r;
}
