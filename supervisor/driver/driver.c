// SPDX-License-Identifier: Apache-2.0
/* driver.c: the drivers, and what their config blocks have in common. Runs in: supervisor. */
#include "supervisor/driver/driver.h"

#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "supervisor/alloc/task_env.h"

const struct driver_ops *const drivers[] = { &driver_raw_exec, &driver_exec, NULL };

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

static int
check_strings(const struct task *task, const char *key, struct err *e)
{
	json_t *list = json_object_get(task->config, key), *item;
	size_t i;

	if (!list)
		return 0;
	if (!json_is_array(list))
		return err_say(
		    e, -EINVAL, "task %s: config.%s must be a list of strings", task->name, key);
	json_array_foreach (list, i, item)
		if (!json_is_string(item))
			return err_say(e, -EINVAL, "task %s: config.%s[%zu] must be a string",
			    task->name, key, i);
	return 0;
}

int
driver_check_command(const struct task *task, const char *const *known_keys, struct err *e)
{
	const char *key, *command = json_string_value(json_object_get(task->config, "command"));
	json_t *value;

	if (!command || *command == '\0')
		return err_say(e, -EINVAL, "task %s: config.command is missing", task->name);
	json_object_foreach (task->config, key, value) {
		size_t i = 0;

		while (known_keys[i] && strcmp(known_keys[i], key) != 0)
			i++;
		if (!known_keys[i])
			return err_say(e, -EINVAL, "task %s: driver %s does not know config.%s",
			    task->name, task->driver, key);
	}
	return check_strings(task, "args", e);
}

int
driver_fill_command(
    const struct task *task, const struct task_env *env, struct spec_writer *spec, struct err *e)
{
	json_t *args = json_object_get(task->config, "args"), *item;
	cleanup_free char *command = NULL;
	size_t i;
	int r;

	r = task_env_expand(
	    env, json_string_value(json_object_get(task->config, "command")), true, &command, e);
	if (r < 0)
		return r;
	spec_add_str(spec, SPEC_COMMAND, command);
	json_array_foreach (args, i, item) {
		cleanup_free char *arg = NULL;

		r = task_env_expand(env, json_string_value(item), true, &arg, e);
		if (r < 0)
			return r;
		spec_add_str(spec, SPEC_ARG, arg);
	}
	return 0;
}
