// SPDX-License-Identifier: Apache-2.0
/* driver.c: the table of drivers, and the common part of their config blocks. Runs in: supervisor.
 */
#include "supervisor/driver/driver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "supervisor/driver/container.h"
#include "supervisor/driver/env_expand.h"
#include "supervisor/node/node_network.h"
#include "supervisor/node/node_state.h"

const struct driver_ops *const drivers[] = { &driver_raw_exec, &driver_exec, &driver_docker,
	&driver_podman, NULL };

const struct driver_ops *
driver_find(const char *name)
{
	for (size_t i = 0; drivers[i]; i++)
		if (strcmp(drivers[i]->name, name) == 0)
			return drivers[i];
	return NULL;
}

int
driver_usable(const struct agent_config *config, const struct driver_ops *driver, struct err *e)
{
	if (config->drivers & 1u << driver->id)
		return 0;
	return err_say(e, -EPERM,
	    "driver %s is disabled on this node: plugin \"%s\" { config { enabled = true } } "
	    "enables it",
	    driver->name, driver->name);
}

/* Jobs ask for these in constraints, and some use the bridge's address, at which containers reach
 * the machine. There is no version: that of Docker would be a lie. */
static void
put_container_attrs(struct sup *sup, const struct driver_ops *driver)
{
	uint64_t pids = container_config(sup->config, driver)->pids_limit;
	char text[32];

	node_put_driver_attr(sup, driver->name, "os_type", "linux");
	if (sup->config->allow_privileged & 1u << driver->id)
		node_put_driver_attr(sup, driver->name, "privileged.enabled", "true");
	if (sup->config->allow_host_userns & 1u << driver->id)
		node_put_driver_attr(sup, driver->name, "host_userns.enabled", "true");
	if (sup->config->host_paths & 1u << driver->id)
		node_put_driver_attr(sup, driver->name, "volumes.enabled", "true");
	if (node_network_check_bridge(sup->config, NULL) == 0 &&
	    node_network_bridge_ip(sup->config, text))
		node_put_driver_attr(sup, driver->name, "bridge_ip", text);
	if (pids > 0) {
		(void)snprintf(text, sizeof text, "%llu", (unsigned long long)pids);
		node_put_driver_attr(sup, driver->name, "pids.limit", text);
	}
}

/* Containers in other networks work all the same. */
static void
describe_network(struct sup *sup, const struct driver_ops *driver)
{
	cleanup_free char *text = NULL;
	struct err why = { 0 };

	if (node_network_check_bridge(sup->config, &why) == 0)
		return;
	text = mem_printf("Healthy, but containers in a bridge network, which is their default, "
			  "cannot start: %s; then reload the agent",
	    why.msg);
	node_describe_driver(sup, driver->name, text);
}

void
driver_fingerprint(struct sup *sup, const struct driver_ops *driver)
{
	bool usable = driver_usable(sup->config, driver, NULL) == 0;

	node_put_driver(sup, driver->name, usable);
	if (!usable || !driver->containers)
		return;
	put_container_attrs(sup, driver);
	describe_network(sup, driver);
}

void
drivers_fingerprint(struct sup *sup)
{
	for (size_t i = 0; drivers[i]; i++)
		driver_fingerprint(sup, drivers[i]);
}

json_t *
driver_config_get(const struct task *task, const char *key)
{
	json_t *value = json_object_get(task->config, key);

	return json_is_null(value) ? NULL : value;
}

bool
driver_value_is_open(const json_t *value, bool evaluated)
{
	const char *text = json_string_value(value);

	return !evaluated && text && (strstr(text, "${") || strstr(text, "%{"));
}

/* A number or true becomes a text when the configuration is evaluated; after that there are only
 * texts, or job-parser lies. */
static bool
is_text(const json_t *value, bool evaluated)
{
	return json_is_string(value) ||
	       (!evaluated && (json_is_number(value) || json_is_boolean(value)));
}

int
driver_check_strings(const struct task *task, const char *key, bool evaluated, struct err *e)
{
	json_t *list = driver_config_get(task, key), *item;
	size_t i;

	if (!list || driver_value_is_open(list, evaluated))
		return 0;
	if (!json_is_array(list))
		return err_say(
		    e, -EINVAL, "task %s: config.%s must be a list of strings", task->name, key);
	json_array_foreach (list, i, item)
		if (!is_text(item, evaluated) && !json_is_null(item))
			return err_say(e, -EINVAL, "task %s: config.%s[%zu] must be a string",
			    task->name, key, i);
	return 0;
}

/* Options of other agents that drover does not implement, with the reason. */
static const struct {
	const char *key, *why;
} refused[] = {
	{ "cgroup_v1_override", "drover keeps each task's limits in a cgroup of its own" },
	{ "cgroup_v2_override", "drover keeps each task's limits in a cgroup of its own" },
	{ "denied_envvars", "only raw_exec has it" },
	{ "oom_score_adj", "only raw_exec has it" },
};

static int
refuse_key(const struct task *task, const char *key, struct err *e)
{
	for (size_t i = 0; i < ELEMENTSOF(refused); i++)
		if (strcmp(refused[i].key, key) == 0)
			return err_say(e, -EINVAL,
			    "task %s: config.%s is not supported: %s; remove it", task->name, key,
			    refused[i].why);
	return err_say(e, -EINVAL, "task %s: driver %s does not know config.%s", task->name,
	    task->driver, key);
}

static int
check_work_dir(const struct task *task, bool evaluated, struct err *e)
{
	json_t *value = driver_config_get(task, "work_dir");
	const char *dir = json_string_value(value);

	if (value && !is_text(value, evaluated))
		return err_say(e, -EINVAL, "task %s: config.work_dir must be a string", task->name);
	if (dir && *dir && *dir != '/' && !driver_value_is_open(value, evaluated))
		return err_say(e, -EINVAL,
		    "task %s: config.work_dir must be an absolute path, not \"%.100s\"", task->name,
		    dir);
	return 0;
}

int
driver_check_command(
    const struct task *task, const char *const *known_keys, bool evaluated, struct err *e)
{
	json_t *value = driver_config_get(task, "command");
	const char *key, *command = json_string_value(value);
	bool has_command = value && !(command && *command == '\0');
	int r;

	if (value && !is_text(value, evaluated))
		return err_say(e, -EINVAL, "task %s: config.command must be a string", task->name);
	json_object_foreach (task->config, key, value) {
		size_t i = 0;

		while (known_keys[i] && strcmp(known_keys[i], key) != 0)
			i++;
		if (!known_keys[i])
			return refuse_key(task, key, e);
	}
	if (!has_command)
		return err_say(e, -EINVAL, "task %s: config.command is missing", task->name);
	r = driver_check_strings(task, "args", evaluated, e);
	return r < 0 ? r : check_work_dir(task, evaluated, e);
}

void
driver_fill_command(const struct task *task, struct spec_writer *spec)
{
	json_t *args = driver_config_get(task, "args"), *item;
	const char *dir = json_string_value(driver_config_get(task, "work_dir"));
	size_t i;

	if (dir && *dir)
		spec_add_str(spec, SPEC_CWD, dir);
	spec_add_str(
	    spec, SPEC_COMMAND, json_string_value(json_object_get(task->config, "command")));
	json_array_foreach (args, i, item)
		spec_add_str(spec, SPEC_ARG, str(json_string_value(item)));
}

static int
evaluate_string(const json_t *from, struct task_env *env, json_t **ret, struct err *e)
{
	cleanup_free char *made = NULL;
	int r = task_env_expand(env, json_string_value(from), true, &made, e);

	if (r < 0)
		return r;
	if (!utf8_is_text(made, strlen(made)))
		return err_say(e, -EINVAL, "config: \"%.60s\" is not UTF-8 once it is replaced",
		    json_string_value(from));
	*ret = json_string(made);
	return 0;
}

/* The recursion is as deep as the job's JSON, whose depth is limited. */
static int
evaluate_members(const json_t *from, struct task_env *env, json_t *into, struct err *e)
{
	const char *key;
	json_t *item, *made;
	size_t i;
	int r;

	json_object_foreach ((json_t *)(uintptr_t)from, key, item) {
		r = driver_config_evaluate(item, env, &made, e);
		if (r < 0)
			return r;
		(void)json_object_set_new(into, key, made);
	}
	json_array_foreach (from, i, item) {
		r = driver_config_evaluate(item, env, &made, e);
		if (r < 0)
			return r;
		(void)json_array_append_new(into, made);
	}
	return 0;
}

bool
driver_config_is_plain(const json_t *config)
{
	const char *key;
	json_t *item;
	size_t i;

	if (json_is_string(config))
		return task_env_can_expand(json_string_value(config));
	json_object_foreach ((json_t *)(uintptr_t)config, key, item)
		if (!driver_config_is_plain(item))
			return false;
	json_array_foreach (config, i, item)
		if (!driver_config_is_plain(item))
			return false;
	return !json_is_real(config);
}

int
driver_config_evaluate(const json_t *config, struct task_env *env, json_t **ret, struct err *e)
{
	json_t *made;
	int r;

	if (json_is_string(config))
		return evaluate_string(config, env, ret, e);
	if (!json_is_object(config) && !json_is_array(config)) {
		*ret = json_is_integer(config)
			   ? json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(config))
		       : json_is_boolean(config)
			   ? json_string(json_is_true(config) ? "true" : "false")
			   : json_incref((json_t *)(uintptr_t)config);
		return 0;
	}
	made = json_is_object(config) ? json_object() : json_array();
	r = evaluate_members(config, env, made, e);
	if (r < 0) {
		json_decref(made);
		return r;
	}
	*ret = made;
	return 0;
}
