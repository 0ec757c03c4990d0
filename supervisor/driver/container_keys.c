// SPDX-License-Identifier: Apache-2.0
/* container_keys.c: the keys of the config block of the drivers docker and podman.
 * docs/containers.md has the same table with what Docker does. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/driver/container.h"

enum key_type { KEY_TEXT, KEY_NUMBER, KEY_BOOL, KEY_TEXTS, KEY_MAP, KEY_BLOCKS };

#define DOCKER (1u << DRIVER_DOCKER)
#define PODMAN (1u << DRIVER_PODMAN)
#define BOTH   (DOCKER | PODMAN)

/* refused: why the key is not supported; NULL: it works, or has its value checked elsewhere. A key
 * that is set to false is not refused. */
static const struct key {
	const char *name;
	enum key_type type;
	uint32_t drivers;
	const char *refused;
} keys[] = {
	{ "image", KEY_TEXT, BOTH, NULL },
	{ "load", KEY_TEXT, DOCKER, NULL },
	{ "command", KEY_TEXT, BOTH, NULL },
	{ "args", KEY_TEXTS, BOTH, NULL },
	{ "entrypoint", KEY_TEXTS, BOTH, NULL }, /* podman: also a text */
	{ "work_dir", KEY_TEXT, DOCKER, NULL },
	{ "working_dir", KEY_TEXT, PODMAN, NULL },
	{ "hostname", KEY_TEXT, BOTH, NULL },
	{ "extra_hosts", KEY_TEXTS, BOTH, NULL },
	{ "dns_servers", KEY_TEXTS, DOCKER, NULL },
	{ "dns_search_domains", KEY_TEXTS, DOCKER, NULL },
	{ "dns_options", KEY_TEXTS, DOCKER, NULL },
	{ "dns", KEY_TEXTS, PODMAN, NULL },
	{ "cap_add", KEY_TEXTS, BOTH, NULL },
	{ "cap_drop", KEY_TEXTS, BOTH, NULL },
	{ "readonly_rootfs", KEY_BOOL, BOTH, NULL },
	{ "security_opt", KEY_TEXTS, BOTH, NULL },
	{ "shm_size", KEY_NUMBER, DOCKER, NULL },
	{ "shm_size", KEY_TEXT, PODMAN, NULL }, /* with a unit */
	{ "sysctl", KEY_MAP, BOTH, NULL },
	{ "ulimit", KEY_MAP, BOTH, NULL },
	{ "pids_limit", KEY_NUMBER, BOTH, NULL },
	{ "memory_hard_limit", KEY_NUMBER, DOCKER, NULL },
	{ "oom_score_adj", KEY_NUMBER, DOCKER, NULL },
	{ "cpu_hard_limit", KEY_BOOL, BOTH, NULL },
	{ "cpu_cfs_period", KEY_NUMBER, BOTH, NULL },
	{ "init", KEY_BOOL, BOTH, NULL },
	{ "privileged", KEY_BOOL, BOTH, NULL },
	{ "interactive", KEY_BOOL, DOCKER, NULL },
	{ "tty", KEY_BOOL, BOTH, NULL },
	{ "group_add", KEY_TEXTS, DOCKER, NULL },
	{ "network_mode", KEY_TEXT, BOTH, NULL },
	{ "volumes", KEY_TEXTS, BOTH, NULL },
	{ "mount", KEY_BLOCKS, DOCKER, NULL },
	{ "mounts", KEY_BLOCKS, DOCKER, NULL },
	{ "tmpfs", KEY_TEXTS, PODMAN, NULL },
	{ "devices", KEY_BLOCKS, DOCKER, NULL },
	{ "devices", KEY_TEXTS, PODMAN, NULL },
	{ "labels", KEY_MAP, BOTH, NULL },
	{ "force_pull", KEY_BOOL, BOTH, NULL },
	{ "image_pull_timeout", KEY_TEXT, BOTH, NULL },
	{ "auth", KEY_BLOCKS, BOTH, NULL },
	{ "auth_soft_fail", KEY_BOOL, BOTH, NULL },
	{ "ports", KEY_TEXTS, BOTH, NULL },
	{ "port_map", KEY_MAP, BOTH, NULL },
	{ "advertise_ipv6_address", KEY_BOOL, DOCKER, NULL },
	{ "userns_mode", KEY_TEXT, DOCKER, NULL },
	{ "userns", KEY_TEXT, PODMAN, NULL },
	{ "pid_mode", KEY_TEXT, DOCKER, NULL },
	{ "ipc_mode", KEY_TEXT, DOCKER, NULL },
	{ "uts_mode", KEY_TEXT, DOCKER, NULL },
	{ "cgroupns", KEY_TEXT, DOCKER, NULL },
	{ "runtime", KEY_TEXT, DOCKER, NULL },
	{ "isolation", KEY_TEXT, DOCKER, NULL },
	{ "logging", KEY_BLOCKS, BOTH, NULL },
	{ "healthchecks", KEY_BLOCKS, DOCKER, NULL },
	{ "container_exists_attempts", KEY_NUMBER, DOCKER, NULL },

	{ "storage_opt", KEY_MAP, DOCKER,
	    "what the container writes counts to the group's ephemeral_disk" },
	{ "volume_driver", KEY_TEXT, DOCKER, "use a volume block of the group" },
	{ "cpuset_cpus", KEY_TEXT, DOCKER, "use `cores` in the task's resources" },
	{ "network_aliases", KEY_TEXTS, DOCKER, "it belongs to a network of Docker's" },
	{ "ipv4_address", KEY_TEXT, DOCKER, "it belongs to a network of Docker's" },
	{ "ipv6_address", KEY_TEXT, DOCKER, "it belongs to a network of Docker's" },
	{ "mac_address", KEY_TEXT, DOCKER, "it belongs to a network of Docker's" },
	{ "selinux_opts", KEY_TEXTS, PODMAN, "drover does not set SELinux labels" },
	{ "apparmor_profile", KEY_TEXT, PODMAN, "drover does not set AppArmor profiles" },
	{ "socket", KEY_TEXT, PODMAN, "there is no podman that has sockets" },
	{ "memory_reservation", KEY_TEXT, PODMAN,
	    "use memory and memory_max in the task's resources" },
	{ "memory_swap", KEY_TEXT, PODMAN, "tasks do not swap" },
	{ "memory_swappiness", KEY_NUMBER, PODMAN, "tasks do not swap" },
};

/* The keys that a block may have. A block that is not in this table may have any key. */
static const struct member {
	const char *block;
	struct key key;
} members[] = {
	{ "mount", { "type", KEY_TEXT, DOCKER, NULL } },
	{ "mount", { "source", KEY_TEXT, DOCKER, NULL } },
	{ "mount", { "target", KEY_TEXT, DOCKER, NULL } },
	{ "mount", { "readonly", KEY_BOOL, DOCKER, NULL } },
	{ "mount", { "bind_options", KEY_BLOCKS, DOCKER, NULL } },
	{ "mount", { "tmpfs_options", KEY_BLOCKS, DOCKER, NULL } },
	{ "mount", { "volume_options", KEY_BLOCKS, DOCKER, NULL } },
	{ "bind_options", { "propagation", KEY_TEXT, DOCKER, NULL } },
	{ "tmpfs_options", { "size", KEY_NUMBER, DOCKER, NULL } },
	{ "tmpfs_options", { "mode", KEY_NUMBER, DOCKER, NULL } },
	{ "volume_options", { "no_copy", KEY_BOOL, DOCKER, NULL } },
	{ "volume_options", { "labels", KEY_MAP, DOCKER, NULL } },
	{ "volume_options", { "driver_config", KEY_BLOCKS, DOCKER, NULL } },
	{ "driver_config", { "name", KEY_TEXT, DOCKER, NULL } },
	{ "driver_config", { "options", KEY_MAP, DOCKER, NULL } },
	{ "devices", { "host_path", KEY_TEXT, DOCKER, NULL } },
	{ "devices", { "container_path", KEY_TEXT, DOCKER, NULL } },
	{ "devices", { "cgroup_permissions", KEY_TEXT, DOCKER, NULL } },
	{ "auth", { "username", KEY_TEXT, BOTH, NULL } },
	{ "auth", { "password", KEY_TEXT, BOTH, NULL } },
	{ "auth", { "email", KEY_TEXT, DOCKER, NULL } },
	{ "auth", { "server_address", KEY_TEXT, BOTH, NULL } },
	{ "auth", { "tls_verify", KEY_BOOL, PODMAN,
		      "a registry without TLS must have insecure = true in "
		      "/etc/containers/registries.conf of the node" } },
	{ "healthchecks", { "disable", KEY_BOOL, DOCKER, NULL } },
	{ "logging", { "type", KEY_TEXT, DOCKER, NULL } },
	{ "logging", { "driver", KEY_TEXT, BOTH, NULL } },
	{ "logging", { "config", KEY_MAP, DOCKER, NULL } },
	{ "logging", { "options", KEY_MAP, PODMAN, NULL } },
};

static bool
is_plain(const json_t *value)
{
	return json_is_string(value) || json_is_number(value) || json_is_boolean(value);
}

/* A map may be an object or a list of objects, as the API sends HCL's blocks. */
static bool
are_objects(const json_t *value)
{
	json_t *item;
	size_t i;

	json_array_foreach (value, i, item)
		if (!json_is_object(item))
			return false;
	return json_is_object(value) || json_is_array(value);
}

static bool
is_of_type(const struct key *key, const json_t *value)
{
	const char *text = json_string_value(value);
	char *end = NULL;

	switch (key->type) {
	case KEY_TEXT:
		return is_plain(value);
	case KEY_NUMBER:
		if (text)
			(void)strtoll(text, &end, 10);
		return json_is_integer(value) || (text && end != text && *end == '\0');
	case KEY_BOOL:
		return json_is_boolean(value) ||
		       (text && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0));
	case KEY_TEXTS:
		return json_is_array(value) || (strcmp(key->name, "entrypoint") == 0 && text);
	case KEY_MAP:
	case KEY_BLOCKS:
		return are_objects(value);
	}
	return false;
}

static const char *const type_names[] = {
	[KEY_TEXT] = "a string",
	[KEY_NUMBER] = "a whole number",
	[KEY_BOOL] = "true or false",
	[KEY_TEXTS] = "a list of strings",
	[KEY_MAP] = "a map",
	[KEY_BLOCKS] = "a block",
};

/* The value that is the default of Docker, by which a job asks for nothing. */
static bool
asks_for_nothing(const json_t *value)
{
	const char *text = json_string_value(value);

	return json_is_false(value) || (text && (!*text || strcmp(text, "false") == 0)) ||
	       (json_is_array(value) && json_array_size(value) == 0) ||
	       (json_is_object(value) && json_object_size(value) == 0);
}

/* Returns the key with this name of a block (NULL: of config), or NULL. *ret_known: the block has
 * keys at all. */
static const struct key *
find_key(const struct task *task, const char *block, const char *name, bool *ret_known)
{
	uint32_t driver = 1u << driver_find(str(task->driver))->id;
	const struct key *found = NULL;

	*ret_known = block == NULL;
	for (size_t i = 0; i < ELEMENTSOF(keys) && !block; i++)
		if (strcmp(keys[i].name, name) == 0 && (keys[i].drivers & driver))
			found = &keys[i];
	for (size_t i = 0; i < ELEMENTSOF(members) && block; i++) {
		if (strcmp(members[i].block, block) != 0)
			continue;
		*ret_known = true;
		if (strcmp(members[i].key.name, name) == 0 && (members[i].key.drivers & driver))
			found = &members[i].key;
	}
	return found;
}

static int check_keys(const struct task *task, const char *block, const char *path, json_t *map,
    bool evaluated, struct err *e);

static int
check_blocks(const struct task *task, const struct key *key, const char *path, json_t *value,
    bool evaluated, struct err *e)
{
	const char *block = strcmp(key->name, "mounts") == 0 ? "mount" : key->name;
	cleanup_free char *below = mem_printf("%s.", path);
	json_t *item;
	size_t i;
	int r = check_keys(task, block, below, value, evaluated, e);

	json_array_foreach (value, i, item)
		if (r == 0)
			r = check_keys(task, block, below, item, evaluated, e);
	return r;
}

static int
check_key(const struct task *task, const struct key *key, const char *path, json_t *value,
    bool evaluated, struct err *e)
{
	if (json_is_null(value) || driver_value_is_open(value, evaluated))
		return 0;
	if (!is_of_type(key, value))
		return err_say(e, -EINVAL, "task %s: config.%s must be %s", task->name, path,
		    type_names[key->type]);
	if (key->refused &&
	    !(strcmp(key->name, "tls_verify") == 0 ? json_is_true(value) : asks_for_nothing(value)))
		return err_say(e, -EINVAL, "task %s: config.%s is not supported: %s", task->name,
		    path, key->refused);
	if (key->type == KEY_BLOCKS)
		return check_blocks(task, key, path, value, evaluated, e);
	return key->type == KEY_TEXTS && json_is_array(value)
		   ? driver_check_strings(task, path, evaluated, e)
		   : 0;
}

/* Checks what is in config, or in a block whose path ends with a dot. */
static int
check_keys(const struct task *task, const char *block, const char *path, json_t *map,
    bool evaluated, struct err *e)
{
	const char *name;
	json_t *value;
	int r = 0;

	json_object_foreach (map, name, value) {
		cleanup_free char *at = mem_printf("%s%s", path, name);
		bool known;
		const struct key *key = find_key(task, block, name, &known);

		if (r == 0 && key)
			r = check_key(task, key, at, value, evaluated, e);
		else if (r == 0 && known)
			r = err_say(e, -EINVAL, "task %s: driver %s does not know config.%s",
			    task->name, task->driver, at);
	}
	return r;
}

/* Keys of which only some values are supported. The first ones cannot be references: the network is
 * made, and services are registered, with the config block as it is in the job. */
#define LITERAL 2
static const struct choice {
	const char *name, *values[4], *why;
} choices[] = {
	{ "network_mode", { "host", "none", "bridge", "default" },
	    "a container has its group's network, one of its own (bridge), the machine's (host), "
	    "or none; write it as it is, without a variable" },
	{ "advertise_ipv6_address", { "true", "false" },
	    "write true or false as it is, without a variable" },
	{ "userns_mode", { "", "host" },
	    "each container has a user namespace of its own, with ids of its own, or (host) the "
	    "machine's" },
	{ "userns", { "", "auto", "host" },
	    "each container has a user namespace of its own, with ids of its own, or (host) the "
	    "machine's" },
	{ "pid_mode", { "", "private" }, "each container has a pid namespace of its own" },
	{ "ipc_mode", { "", "private", "shareable" },
	    "each container has an ipc namespace of its own" },
	{ "uts_mode", { "" }, "each container has a host name of its own" },
	{ "cgroupns", { "", "private" }, "each container has a cgroup namespace of its own" },
	{ "runtime", { "", "runc" }, "drover is the runtime" },
	{ "isolation", { "", "default" }, "it is for Windows" },
};

static int
check_choices(const struct task *task, bool evaluated, struct err *e)
{
	for (size_t i = 0; i < ELEMENTSOF(choices); i++) {
		json_t *value = driver_config_get(task, choices[i].name);
		const char *text = json_string_value(value);
		bool found = !text || (driver_value_is_open(value, evaluated) && i >= LITERAL);

		for (size_t k = 0; k < ELEMENTSOF(choices[i].values) && !found; k++)
			found = choices[i].values[k] && strcmp(choices[i].values[k], text) == 0;
		if (!found)
			return err_say(e, -EINVAL,
			    "task %s: config.%s = \"%.60s\" is not supported: %s", task->name,
			    choices[i].name, text, choices[i].why);
	}
	return 0;
}

int
container_check_keys(const struct task *task, bool evaluated, struct err *e)
{
	const char *text = json_string_value(driver_config_get(task, "image"));
	int r = check_keys(task, NULL, "", task->config, evaluated, e);

	if (r < 0)
		return r;
	if (!text || !*text)
		return err_say(e, -EINVAL, "task %s: config.image is missing", task->name);
	return check_choices(task, evaluated, e);
}

const char *
container_text(const struct task *task, const char *key)
{
	const char *text = json_string_value(driver_config_get(task, key));

	return text && *text ? text : NULL;
}

bool
container_has_host_ids(const struct task *task)
{
	const char *mode = container_text(task, "userns_mode") ?: container_text(task, "userns");

	return mode && strcmp(mode, "host") == 0 && !container_flag(task, "privileged");
}

int64_t
container_number(const struct task *task, const char *key, int64_t none)
{
	json_t *value = driver_config_get(task, key);
	const char *text = json_string_value(value);

	return json_is_integer(value) ? json_integer_value(value)
	       : text && *text        ? strtoll(text, NULL, 10)
				      : none;
}

bool
container_flag(const struct task *task, const char *key)
{
	json_t *value = driver_config_get(task, key);
	const char *text = json_string_value(value);

	return json_is_true(value) || (text && strcmp(text, "true") == 0);
}

static int
each_member(const struct task *task, json_t *map, bool evaluated, container_member *fn, void *arg,
    struct err *e)
{
	const char *name;
	json_t *value;
	int r = 0;

	json_object_foreach (map, name, value) {
		cleanup_free char *number =
		    json_is_integer(value)
			? mem_printf("%lld", (long long)json_integer_value(value))
			: NULL;
		const char *text = number ? number : str(json_string_value(value));

		if (r == 0)
			r = fn(task, name, driver_value_is_open(value, evaluated) ? NULL : text,
			    arg, e);
	}
	return r;
}

/* A map is an object, or a list of objects. */
int
container_each(const struct task *task, const char *key, bool evaluated, container_member *fn,
    void *arg, struct err *e)
{
	json_t *map = driver_config_get(task, key), *item;
	size_t i;
	int r = each_member(task, map, evaluated, fn, arg, e);

	json_array_foreach (map, i, item)
		if (r == 0)
			r = each_member(task, item, evaluated, fn, arg, e);
	return r;
}
