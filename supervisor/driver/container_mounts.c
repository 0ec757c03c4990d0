// SPDX-License-Identifier: Apache-2.0
/* container_mounts.c: mounts of the config block of a container: of the task's own directories, of
 * the machine's that are in host volumes, and new ones in memory. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/driver/container.h"

/* Where the mounts of a task go: each mount is checked; a mount from the task's directories is
 * added to the spec, and one from a host volume to the request. */
struct binds {
	const struct agent_config *config; /* NULL: host volumes are not looked at */
	const struct task *task;
	struct spec_writer *spec;        /* NULL: nothing is added to it */
	struct exec_task_start_req *req; /* likewise */
	container_permits *permits;      /* NULL: all is permitted */
	void *arg;
	bool evaluated;
};

struct bind {
	const char *key, *source, *dest; /* key: of the config block, for sentences */
	bool read_only;
};

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

/* Returns whether path is base or below it. *ret_rest: what follows. */
static bool
is_in(const char *path, const char *base, size_t len, const char **ret_rest)
{
	while (len > 0 && base[len - 1] == '/')
		len--;
	if (strncmp(path, base, len) != 0 || (path[len] && path[len] != '/'))
		return false;
	*ret_rest = path + len + strspn(path + len, "/");
	return true;
}

/* Where the executor writes the file of a template that is in none of the task's directories. */
static bool
has_template_in(const struct task *task, const char *source)
{
	for (size_t i = 0; i < task->templates.n; i++) {
		const char *dest = str(task->templates.v[i].dest_path), *rest;

		dest += strncmp(dest, "./", 2) == 0 ? 2 : strspn(dest, "/");
		if (is_in(dest, source, strlen(source), &rest))
			return true;
	}
	return false;
}

/* A source is relative to the task's directory. Returns its path in the container, which the caller
 * frees, or NULL if it is not there. What is in none of the task's three directories is made in the
 * first, so that it is kept when the task restarts. */
static char *
source_path(const struct task *task, const char *source)
{
	static const char *const dirs[] = { "local", "secrets", "alloc" };
	const char *at = source, *rest;

	if (strncmp(at, "./", 2) == 0)
		at += 2;
	if (strncmp(at, "../alloc", 8) == 0)
		at += 3;
	if (leads_up(at))
		return NULL;
	at += *at == '/'; /* as ${NOMAD_TASK_DIR} is in the container */
	for (size_t i = 0; i < ELEMENTSOF(dirs); i++)
		if (is_in(at, dirs[i], strlen(dirs[i]), &rest))
			return mem_printf("/%s", at);
	if (*source == '/' || !*at || strcmp(at, ".") == 0)
		return NULL;
	return mem_printf("%s/%s", has_template_in(task, at) ? "" : "/local", at);
}

/* --- of the machine --- */

/* Returns the innermost host volume that has the path, or NULL. */
static const struct config_host_volume *
find_volume(const struct agent_config *config, const char *path, const char **ret_rest)
{
	const struct config_host_volume *found = NULL;
	const char *rest;

	for (uint32_t i = 0; i < config->n_host_volumes; i++)
		if (is_in(path, config->host_volumes[i].path, strlen(config->host_volumes[i].path),
			&rest) &&
		    (!found || rest >= *ret_rest)) {
			found = &config->host_volumes[i];
			*ret_rest = rest;
		}
	return found;
}

static const struct config_host_volume *
find_named(const struct agent_config *config, const char *name)
{
	for (uint32_t i = 0; i < config->n_host_volumes; i++)
		if (strcmp(config->host_volumes[i].name, name) == 0)
			return &config->host_volumes[i];
	return NULL;
}

/* Says what the agent's configuration needs, with a name that path suggests. */
static int
say_missing(const struct binds *b, const struct bind *m, const char *path, bool enabled,
    const struct config_host_volume *v, struct err *e)
{
	const struct driver_ops *driver = driver_find(str(b->task->driver));
	cleanup_free char *name = mem_strdup(m->source + strspn(m->source, "/")), *block = NULL;
	cleanup_free char *plugin =
	    mem_printf("plugin \"%s\" { config { volumes { enabled = true } } }", driver->name);

	for (char *c = name; *c; c++)
		if (*c == '/')
			*c = '-';
	block = mem_printf("client { host_volume \"%.40s\" { path = \"%.100s\"%s } }",
	    *name ? name : "root", path, m->read_only ? " read_only = true" : "");
	return err_say(e, -EINVAL,
	    "task %s: config.%s: \"%.100s\" is of the machine: the agent's configuration must have "
	    "%s%s%s",
	    b->task->name, m->key, m->source, enabled ? "" : plugin, enabled || v ? "" : " and ",
	    v ? "" : block);
}

/* Inner destinations come after outer ones, which would cover them. */
static void
put_mount(struct exec_task_start_req *req, const struct exec_mount *m)
{
	uint32_t at = 0, n = req->n_mounts++;
	const char *rest;

	while (at < n && !is_in(req->mounts[at].dest, m->dest, strlen(m->dest), &rest))
		at++;
	memmove(&req->mounts[at + 1], &req->mounts[at], (n - at) * sizeof req->mounts[0]);
	req->mounts[at] = *m;
}

/* path: below the host volume. */
static int
add_mount_of(const struct binds *b, const struct bind *m, const struct config_host_volume *v,
    const char *path, struct err *e)
{
	struct exec_mount mount = { .kind = EXEC_MOUNT_HOST_VOLUME, .read_only = m->read_only };

	if (v->read_only && !m->read_only)
		return err_say(e, -EINVAL,
		    "task %s: config.%s: \"%.100s\" is in host_volume \"%s\", which is read_only: "
		    "mount it read-only",
		    b->task->name, m->key, m->source, v->name);
	if (m->dest[strspn(m->dest, "/")] == '\0' || leads_up(m->dest) ||
	    !IPC_TEXT_SET(mount.dest, m->dest) || !IPC_TEXT_SET(mount.path, path) ||
	    !IPC_TEXT_SET(mount.name, v->name))
		return err_say(e, -EINVAL,
		    "task %s: config.%s: \"%.100s\" cannot be mounted at \"%.100s\"", b->task->name,
		    m->key, m->source, m->dest);
	if (b->permits && !b->permits(b->arg, v->name, !m->read_only))
		return err_say(e, -EPERM,
		    "Permission denied: task %s: the token does not permit host volume \"%s\"",
		    b->task->name, v->name);
	if (!b->req)
		return 0;
	if (b->req->n_mounts == EXEC_MOUNTS_MAX)
		return err_say(e, -EINVAL,
		    "task %s: config.%s: more than %d directories of the machine and volumes",
		    b->task->name, m->key, EXEC_MOUNTS_MAX);
	put_mount(b->req, &mount);
	return 0;
}

static bool
permits_paths(const struct binds *b)
{
	return b->config->host_paths & 1u << driver_find(str(b->task->driver))->id;
}

/* A directory or a file of the machine, by its path. */
static int
add_host(const struct binds *b, const struct bind *m, struct err *e)
{
	const struct config_host_volume *v;
	const char *rest;

	if (!b->config)
		return 0;
	if (leads_up(m->source))
		return err_say(e, -EINVAL, "task %s: config.%s: \"%.100s\" has a component \"..\"",
		    b->task->name, m->key, m->source);
	if (strcmp(m->source, "/var/run/docker.sock") == 0 ||
	    strcmp(m->source, "/run/docker.sock") == 0)
		return err_say(e, -EINVAL,
		    "task %s: config.%s: \"%s\" is Docker's socket: drover's containers have no "
		    "daemon that could answer there",
		    b->task->name, m->key, m->source);
	if (strncmp(m->source, "/dev/", 5) == 0 && strcmp(m->source, m->dest) == 0 &&
	    container_flag(b->task, "privileged"))
		return 0; /* it has the machine's /dev */
	if (strncmp(m->source, "/dev/", 5) == 0)
		return err_say(e, -EINVAL,
		    "task %s: config.%s: \"%.100s\" is in the machine's /dev: use config.devices",
		    b->task->name, m->key, m->source);
	v = find_volume(b->config, m->source, &rest);
	return v && permits_paths(b) ? add_mount_of(b, m, v, rest, e)
				     : say_missing(b, m, m->source, permits_paths(b), v, e);
}

/* A named volume of Docker's is the host volume with this name. */
static int
add_named(const struct binds *b, const struct bind *m, struct err *e)
{
	const struct config_host_volume *v = b->config ? find_named(b->config, m->source) : NULL;

	if (!b->config)
		return 0;
	if (!*m->source)
		return err_say(e, -EINVAL,
		    "task %s: config.%s: a volume without a source is not supported: what a "
		    "container writes is kept until the task ends",
		    b->task->name, m->key);
	return v && permits_paths(b) ? add_mount_of(b, m, v, "", e)
				     : say_missing(b, m, "/srv/…", permits_paths(b), v, e);
}

/* --- all --- */

static int
add_bind(const struct binds *b, const struct bind *m, struct err *e)
{
	cleanup_free char *from = source_path(b->task, m->source);

	if (m->dest[0] != '/' || strchr(m->source, ':'))
		return err_say(e, -EINVAL, "task %s: config.%s: \"%.100s\" is not an absolute path",
		    b->task->name, m->key, m->dest);
	if (!from && m->source[0] == '/')
		return add_host(b, m, e);
	if (!from)
		return err_say(e, -EINVAL,
		    "task %s: config.%s: \"%.100s\" is not in the task's directories local, "
		    "secrets or alloc",
		    b->task->name, m->key, m->source);
	if (b->spec)
		container_option(
		    b->spec, "bind", "%s:%s:%s", m->read_only ? "ro" : "rw", from, m->dest);
	return 0;
}

/* Mounts that a container without privileges gets never change, so it makes no difference which
 * changes would be shared. */
static bool
is_propagation(const struct task *task, const char *word)
{
	static const char *const shared[] = { "shared", "rshared", "slave", "rslave" };

	for (size_t i = 0; i < ELEMENTSOF(shared); i++)
		if (strcmp(word, shared[i]) == 0)
			return !container_flag(task, "privileged");
	return strcmp(word, "rprivate") == 0 || strcmp(word, "private") == 0;
}

static bool
is_without_effect(const char *word)
{
	static const char *const words[] = { "rw", "z", "Z", "cached", "delegated", "consistent" };

	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return false;
}

/* "SOURCE:DESTINATION[:OPTIONS]" */
static int
add_volume(const struct binds *b, const char *text, struct err *e)
{
	cleanup_free char *copy = mem_strdup(text);
	char *rest = copy;
	struct bind m = { .key = "volumes", .source = strsep(&rest, ":") };

	m.dest = strsep(&rest, ":");
	if (!m.dest)
		return err_say(e, -EINVAL,
		    "task %s: config.volumes: \"%.100s\" has no source: what a container writes is "
		    "kept until the task ends; use SOURCE:DESTINATION",
		    b->task->name, text);
	for (const char *word; (word = strsep(&rest, ","));)
		if (strcmp(word, "ro") == 0)
			m.read_only = true;
		else if (!is_without_effect(word) && !is_propagation(b->task, word))
			return err_say(e, -EINVAL,
			    "task %s: config.volumes: option \"%.40s\" of \"%.100s\" is not "
			    "supported",
			    b->task->name, word, text);
	return add_bind(b, &m, e);
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

/* A block in a block is an object, or a list of one. */
static const json_t *
inner(const json_t *block, const char *key)
{
	json_t *value = json_object_get(block, key);

	return json_is_array(value) ? json_array_get(value, 0) : value;
}

/* A value that is still to be evaluated may become any host volume. Returns 0 if it is not, 1 if it
 * is, or -EPERM with *e. */
static int
check_open(const struct binds *b, const json_t *value, struct err *e)
{
	if (!driver_value_is_open(value, b->evaluated))
		return 0;
	for (uint32_t i = 0; b->permits && i < b->config->n_host_volumes && permits_paths(b); i++)
		if (!b->permits(b->arg, b->config->host_volumes[i].name, true))
			return err_say(e, -EPERM,
			    "Permission denied: task %s: a source of a mount that has a variable "
			    "needs "
			    "a token that permits all host volumes, and \"%s\" is not permitted",
			    b->task->name, b->config->host_volumes[i].name);
	return 1;
}

static int
add_mount(const struct binds *b, const json_t *block, struct err *e)
{
	static const char *const used[] = { "type", "source", "target" };
	const char *type = member(block, "type"), *read_only = member(block, "readonly");
	const char *propagation = member(inner(block, "bind_options"), "propagation");
	struct bind m = { .key = "mount",
		.source = member(block, "source"),
		.dest = member(block, "target"),
		.read_only = json_is_true(json_object_get(block, "readonly")) ||
			     strcmp(read_only, "true") == 0 };
	int r;

	for (size_t i = 0; i < ELEMENTSOF(used); i++)
		if ((r = check_open(b, json_object_get(block, used[i]), e)) != 0)
			return r < 0 ? r : 0;
	if (m.dest[0] != '/')
		return err_say(e, -EINVAL,
		    "task %s: config.mount: target \"%.100s\" is not an absolute path",
		    b->task->name, m.dest);
	if (*propagation && !is_propagation(b->task, propagation))
		return err_say(e, -EINVAL,
		    "task %s: config.mount: propagation \"%.40s\" is not supported", b->task->name,
		    propagation);
	if (strcmp(type, "tmpfs") == 0 && m.read_only)
		return err_say(e, -EINVAL,
		    "task %s: config.mount: a tmpfs that is readonly would always be empty: remove "
		    "readonly, or mount a directory of the task",
		    b->task->name);
	if (strcmp(type, "tmpfs") == 0)
		return add_tmpfs(b->task, block, b->spec, e);
	if (strcmp(type, "bind") == 0)
		return add_bind(b, &m, e);
	if ((*type && strcmp(type, "volume") != 0) ||
	    inner(inner(block, "volume_options"), "driver_config"))
		return err_say(e, -EINVAL,
		    "task %s: config.mount: type \"%.40s\"%s is not supported: use \"bind\", "
		    "\"tmpfs\", or a volume block of the group",
		    b->task->name, *type ? type : "volume",
		    strcmp(type, "volume") == 0 ? " with a driver_config" : "");
	return add_named(b, &m, e);
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

static int
add_all(const struct binds *b, struct err *e)
{
	static const char *const blocks[] = { "mount", "mounts" };
	const struct task *task = b->task;
	json_t *item, *value;
	size_t i;
	int r = 0;

	json_array_foreach (driver_config_get(task, "volumes"), i, item)
		if (r >= 0 && (r = check_open(b, item, e)) == 0)
			r = add_volume(b, str(json_string_value(item)), e);
	json_array_foreach (driver_config_get(task, "tmpfs"), i, item)
		if (r >= 0 && !driver_value_is_open(item, b->evaluated))
			r = add_podman_tmpfs(task, str(json_string_value(item)), b->spec, e);
	for (size_t k = 0; k < ELEMENTSOF(blocks); k++) {
		value = driver_config_get(task, blocks[k]);
		if (r >= 0 && json_is_object(value))
			r = add_mount(b, value, e);
		json_array_foreach (value, i, item)
			if (r >= 0)
				r = add_mount(b, item, e);
	}
	return r < 0 ? r : 0;
}

int
container_mounts(const struct agent_config *config, const struct task *task, bool evaluated,
    struct spec_writer *spec, struct err *e)
{
	return add_all(
	    &(struct binds){ .config = config, .task = task, .spec = spec, .evaluated = evaluated },
	    e);
}

int
container_check_permitted(const struct agent_config *config, const struct task *task,
    container_permits *permits, void *arg, struct err *e)
{
	const struct driver_ops *driver = driver_find(str(task->driver));

	return driver && driver->containers
		   ? add_all(
			 &(struct binds){
			     .config = config, .task = task, .permits = permits, .arg = arg },
			 e)
		   : 0;
}

int
container_host_mounts(const struct agent_config *config, const struct task *task,
    struct exec_task_start_req *req, struct err *e)
{
	return add_all(
	    &(struct binds){ .config = config, .task = task, .req = req, .evaluated = true }, e);
}
