// SPDX-License-Identifier: Apache-2.0
/* network_args.c: the arguments of CNI plugins, as the CNI specification has them: NAME=VALUE with
 * ';' between them. Runs in: supervisor. */
#include "supervisor/alloc/network_args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/service/task_env.h"

/* The args of one network. An argument that the text could not have is an error. */
static int
add_args(json_t *args, const struct network_resource *net, struct task_env *env, struct err *e)
{
	int r = 0;

	for (size_t i = 0; net->cni && i < net->cni->args.n && r == 0; i++) {
		const char *key = net->cni->args.v[i].key;
		cleanup_free char *text = NULL;

		r = task_env_expand(env, str(net->cni->args.v[i].value), false, &text, e);
		if (r == 0)
			r = network_check_cni_arg(key, text, e);
		if (r == 0)
			(void)json_object_set_new(args, key, json_string(text));
	}
	return r;
}

/* As the original client, leaves out those whose value would be taken for another argument: names
 * of jobs and groups may have any characters. They come last, so that no job can set them. */
static void
add_names(json_t *args, const struct task_env *env)
{
	static const char *const names[] = { "NOMAD_REGION", "NOMAD_NAMESPACE", "NOMAD_JOB_ID",
		"NOMAD_GROUP_NAME", "NOMAD_ALLOC_ID" };
	struct err unused = { 0 };

	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		const char *value = string_map_get(&env->vars, names[i]);

		(void)json_object_del(args, names[i]);
		if (value && network_check_cni_arg(names[i], value, &unused) == 0)
			(void)json_object_set_new(args, names[i], json_string(value));
	}
}

static int
write_args(const json_t *args, char ret[NET_ARGS_SIZE], struct err *e)
{
	size_t n = 0;
	const char *key;
	json_t *value;

	*ret = '\0';
	json_object_foreach ((json_t *)(uintptr_t)args, key, value) {
		int more = snprintf(ret + n, NET_ARGS_SIZE - n, "%s%s=%s", n > 0 ? ";" : "", key,
		    json_string_value(value));

		if (more < 0 || (size_t)more >= NET_ARGS_SIZE - n)
			return err_say(e, -E2BIG,
			    "the cni args of the group's networks are longer than %d bytes",
			    NET_ARGS_SIZE - 1);
		n += (size_t)more;
	}
	return 0;
}

int
network_args_make(
    struct sup *sup, const struct sup_alloc *sa, char ret[NET_ARGS_SIZE], struct err *e)
{
	cleanup_json json_t *args = json_pack("{s:s}", "IgnoreUnknown", "true");
	const struct task_group *group = sa->group;
	struct task_env env;
	int r = task_env_make(sup, sa, NULL, false, &env);

	if (r < 0)
		return err_set(e, r, "make the variables of the group");
	for (size_t i = 0; i < group->networks.n && r == 0; i++)
		r = add_args(args, &group->networks.v[i], &env, e);
	add_names(args, &env);
	task_env_done(&env);
	return r < 0 ? r : write_args(args, ret, e);
}
