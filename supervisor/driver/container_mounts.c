// SPDX-License-Identifier: Apache-2.0
/* container_mounts.c: mounts of the config block of a container: of the task's own directories, and
 * new ones in memory. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/driver/container.h"

static bool
leads_up(const char *path)
{
	for (const char *at = path; *at; at += strspn(at, "/")) {
		size_t len = strcspn(at, "/");

		if (len == 2 && memcmp(at, "..", 2) == 0)
			return true;
		at += len;
	}
	return false;
}

/* A source is relative to the task's directory. Returns its path in the container, which the caller
 * frees, or NULL. */
static char *
source_path(const char *source)
{
	static const char *const dirs[] = { "local", "secrets", "alloc" };
	const char *at = source;

	if (strncmp(at, "./", 2) == 0)
		at += 2;
	if (strncmp(at, "../alloc", 8) == 0)
		at += 3;
	if (leads_up(at))
		return NULL;
	at += *at == '/'; /* as ${NOMAD_TASK_DIR} is in the container */
	for (size_t i = 0; i < ELEMENTSOF(dirs); i++) {
		size_t len = strlen(dirs[i]);

		if (strncmp(at, dirs[i], len) == 0 && (at[len] == '/' || at[len] == '\0'))
			return mem_printf("/%s", at);
	}
	return NULL;
}

static int
add_bind(const struct task *task, const char *key, const char *source, const char *dest,
    bool read_only, struct spec_writer *spec, struct err *e)
{
	cleanup_free char *from = source_path(source);

	if (!from)
		return err_say(e, -EINVAL,
		    "task %s: config.%s: \"%.100s\" is not in the task's directories local, "
		    "secrets "
		    "or alloc; use a volume block of the group for other directories",
		    task->name, key, source);
	if (dest[0] != '/' || strchr(from, ':'))
		return err_say(e, -EINVAL, "task %s: config.%s: \"%.100s\" is not an absolute path",
		    task->name, key, dest);
	if (spec)
		container_option(spec, "bind", "%s:%s:%s", read_only ? "ro" : "rw", from, dest);
	return 0;
}

/* "SOURCE:DESTINATION[:OPTIONS]" */
static int
add_volume(const struct task *task, const char *text, struct spec_writer *spec, struct err *e)
{
	cleanup_free char *copy = mem_strdup(text);
	char *rest = copy, *source = strsep(&rest, ":"), *dest = strsep(&rest, ":");
	bool read_only = false;

	if (!dest)
		return err_say(e, -EINVAL,
		    "task %s: config.volumes: \"%.100s\" has no source: what a container writes is "
		    "kept until the task ends; use SOURCE:DESTINATION",
		    task->name, text);
	for (const char *word; (word = strsep(&rest, ","));)
		if (strcmp(word, "ro") == 0)
			read_only = true;
		else if (strcmp(word, "rw") != 0 && strcasecmp(word, "z") != 0 &&
			 strcmp(word, "rprivate") != 0 && strcmp(word, "private") != 0)
			return err_say(e, -EINVAL,
			    "task %s: config.volumes: option \"%.40s\" of \"%.100s\" is not "
			    "supported",
			    task->name, word, text);
	return add_bind(task, "volumes", source, dest, read_only, spec, e);
}

static const char *
member(const json_t *block, const char *key)
{
	return str(json_string_value(json_object_get(block, key)));
}

static int64_t
number_of(const json_t *block, const char *key)
{
	json_t *value = json_object_get(block, key);

	return json_is_integer(value) ? json_integer_value(value)
				      : strtoll(str(json_string_value(value)), NULL, 10);
}

static int
add_tmpfs(const struct task *task, const json_t *block, struct spec_writer *spec, struct err *e)
{
	json_t *options = json_object_get(block, "tmpfs_options");
	int64_t size, mode;

	options = json_is_array(options) ? json_array_get(options, 0) : options;
	size = number_of(options, "size");
	mode = number_of(options, "mode");
	if (size < 0 || mode < 0)
		return err_say(e, -EINVAL,
		    "task %s: config.mount: size and mode of a tmpfs cannot be negative",
		    task->name);
	if (spec)
		container_option(spec, "tmpfs", "%lld:%o:%s", (long long)size,
		    mode ? (unsigned)mode & 07777 : 01777, member(block, "target"));
	return 0;
}

static int
add_mount(const struct task *task, const json_t *block, bool evaluated, struct spec_writer *spec,
    struct err *e)
{
	static const char *const used[] = { "type", "source", "target" };
	const char *type = member(block, "type"), *target = member(block, "target");
	const char *read_only = member(block, "readonly");
	json_t *flag = json_object_get(block, "readonly");

	for (size_t i = 0; i < ELEMENTSOF(used); i++)
		if (driver_value_is_open(json_object_get(block, used[i]), evaluated))
			return 0;
	if (target[0] != '/')
		return err_say(e, -EINVAL,
		    "task %s: config.mount: target \"%.100s\" is not an absolute path", task->name,
		    target);
	if (strcmp(type, "tmpfs") == 0)
		return add_tmpfs(task, block, spec, e);
	if (strcmp(type, "bind") == 0)
		return add_bind(task, "mount", member(block, "source"), target,
		    json_is_true(flag) || strcmp(read_only, "true") == 0, spec, e);
	return err_say(e, -EINVAL,
	    "task %s: config.mount: type \"%.40s\" is not supported: use \"bind\" or \"tmpfs\", or "
	    "a "
	    "volume block of the group",
	    task->name, *type ? type : "volume");
}

/* "DESTINATION[:OPTIONS]" */
static int
add_podman_tmpfs(const struct task *task, const char *text, struct spec_writer *spec, struct err *e)
{
	if (text[0] != '/' || strchr(text, ':'))
		return err_say(e, -EINVAL,
		    "task %s: config.tmpfs: \"%.100s\" is not an absolute path without options",
		    task->name, text);
	if (spec)
		container_option(spec, "tmpfs", "0:1777:%s", text);
	return 0;
}

int
container_mounts(const struct task *task, bool evaluated, struct spec_writer *spec, struct err *e)
{
	static const char *const blocks[] = { "mount", "mounts" };
	json_t *item, *value;
	size_t i;
	int r = 0;

	json_array_foreach (driver_config_get(task, "volumes"), i, item)
		if (r == 0 && !driver_value_is_open(item, evaluated))
			r = add_volume(task, str(json_string_value(item)), spec, e);
	json_array_foreach (driver_config_get(task, "tmpfs"), i, item)
		if (r == 0 && !driver_value_is_open(item, evaluated))
			r = add_podman_tmpfs(task, str(json_string_value(item)), spec, e);
	for (size_t k = 0; k < ELEMENTSOF(blocks); k++) {
		value = driver_config_get(task, blocks[k]);
		if (r == 0 && json_is_object(value))
			r = add_mount(task, value, evaluated, spec, e);
		json_array_foreach (value, i, item)
			if (r == 0)
				r = add_mount(task, item, evaluated, spec, e);
	}
	return r;
}
