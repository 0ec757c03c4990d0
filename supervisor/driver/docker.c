// SPDX-License-Identifier: Apache-2.0
/* docker.c: the drivers docker and podman: tasks in container images, without a daemon. Runs in:
 * supervisor. */
#include <ctype.h>
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

#include "common/cap_name.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/privs.h"
#include "supervisor/driver/container.h"
#include "supervisor/driver/run_text.h"

#define MIB           (1024 * 1024)
#define CFS_PERIOD_US 100000

void
container_option(struct spec_writer *spec, const char *name, const char *format, ...)
{
	cleanup_free char *value = NULL, *text = NULL;
	va_list args;

	va_start(args, format);
	value = mem_vprintf(format, args);
	va_end(args);
	text = mem_printf("%s=%s", name, value);
	spec_add_str(spec, SPEC_OPTION, text);
}

/* --- capabilities --- */

static int
read_caps(const struct task *task, const char *key, bool evaluated, uint64_t all, uint64_t *ret,
    struct err *e)
{
	json_t *item;
	size_t i;

	json_array_foreach (driver_config_get(task, key), i, item) {
		const char *name = str(json_string_value(item));
		int cap = cap_number(name);

		if (driver_value_is_open(item, evaluated))
			continue;
		if (strcasecmp(name, "all") == 0)
			*ret |= all;
		else if (cap < 0)
			return err_say(e, -EINVAL,
			    "task %s: config.%s[%zu]: there is no capability \"%.60s\"", task->name,
			    key, i, name);
		else
			*ret |= 1ull << cap;
	}
	return 0;
}

static const struct config_container *
config_of(const struct agent_config *config, const struct task *task)
{
	return container_config(config, driver_find(str(task->driver)));
}

/* Finds the container's capabilities: the default ones, changed by the keys cap_add and cap_drop.
 */
static int
find_caps(const struct agent_config *config, const struct task *task, bool evaluated, uint64_t *ret,
    struct err *e)
{
	uint64_t allowed = config_of(config, task)->allow_caps & CONTAINER_MOST_CAPS;
	uint64_t add = 0, drop = 0;
	char names[256];
	int r;

	if ((r = read_caps(task, "cap_add", evaluated, allowed, &add, e)) < 0 ||
	    (r = read_caps(task, "cap_drop", evaluated, privs_all_caps(), &drop, e)) < 0)
		return r;
	*ret = (CONTAINER_DEFAULT_CAPS & allowed & ~drop) | add;
	if (container_flag(task, "privileged")) { /* as with Docker, whatever the keys say */
		*ret = privs_all_caps();
		return 0;
	}
	if ((add & ~allowed) == 0)
		return 0;
	if (add & ~CONTAINER_MOST_CAPS) {
		cap_names(add & ~CONTAINER_MOST_CAPS, names, sizeof names);
		return err_say(e, -EINVAL,
		    "task %s: config.cap_add: a container cannot have these capabilities: %s",
		    task->name, names);
	}
	cap_names(add & ~allowed, names, sizeof names);
	return err_say(e, -EINVAL,
	    "driver does not allow the following capabilities: %s (task %s); allow_caps in plugin "
	    "\"%s\" { config { } } of the agent's configuration lists those that a job may add",
	    names, task->name, str(task->driver));
}

/* --- options --- */

/* "NAME:VALUE", or with "=". */
static bool
is_option(const char *text, const char *name, const char *value)
{
	size_t len = strlen(name);

	return strncmp(text, name, len) == 0 && (text[len] == ':' || text[len] == '=') &&
	       strcmp(text + len + 1, value) == 0;
}

static int
check_security(const struct task *task, bool evaluated, bool *ret_no_new_privs, struct err *e)
{
	json_t *item;
	size_t i;

	json_array_foreach (driver_config_get(task, "security_opt"), i, item) {
		const char *text = str(json_string_value(item));
		bool on = is_option(text, "no-new-privileges", "true") ||
			  strcmp(text, "no-new-privileges") == 0;

		*ret_no_new_privs |= on;
		if (!on && !is_option(text, "no-new-privileges", "false") &&
		    !is_option(text, "apparmor", "unconfined") &&
		    !is_option(text, "label", "disable") && !driver_value_is_open(item, evaluated))
			return err_say(e, -EINVAL,
			    "task %s: config.security_opt: \"%.60s\" is not supported: drover sets "
			    "no "
			    "labels or AppArmor profiles, and the filter of system calls is always "
			    "on; "
			    "\"no-new-privileges\" works",
			    task->name, text);
	}
	return 0;
}

static const struct {
	const char *name;
	int resource;
} limits[] = { { "core", RLIMIT_CORE }, { "cpu", RLIMIT_CPU }, { "data", RLIMIT_DATA },
	{ "fsize", RLIMIT_FSIZE }, { "locks", RLIMIT_LOCKS }, { "memlock", RLIMIT_MEMLOCK },
	{ "msgqueue", RLIMIT_MSGQUEUE }, { "nice", RLIMIT_NICE }, { "nofile", RLIMIT_NOFILE },
	{ "nproc", RLIMIT_NPROC }, { "rss", RLIMIT_RSS }, { "rtprio", RLIMIT_RTPRIO },
	{ "rttime", RLIMIT_RTTIME }, { "sigpending", RLIMIT_SIGPENDING },
	{ "stack", RLIMIT_STACK } };

const char *
container_limit_name(int resource)
{
	for (size_t i = 0; i < ELEMENTSOF(limits); i++)
		if (limits[i].resource == resource)
			return limits[i].name;
	return NULL;
}

/* "SOFT:HARD" or one number for both; -1: unlimited. */
static int
add_limit(const struct task *task, const char *name, const char *value, void *arg, struct err *e)
{
	struct spec_writer *spec = arg;
	size_t i = 0;
	long long soft, hard;
	char *end;

	if (!value)
		return 0;
	soft = strtoll(value, &end, 10);
	hard = *end == ':' ? strtoll(end + 1, &end, 10) : soft;
	while (i < ELEMENTSOF(limits) && strcmp(limits[i].name, name) != 0)
		i++;
	if (i == ELEMENTSOF(limits) || !*value || *end || soft < -1 || hard < -1)
		return err_say(e, -EINVAL,
		    "task %s: config.ulimit: \"%.40s\" = \"%.40s\" is not a limit as in nofile = "
		    "\"1024:2048\"",
		    task->name, name, value);
	if (spec)
		container_option(spec, "limit", "%d:%llu:%llu", limits[i].resource,
		    (unsigned long long)soft, (unsigned long long)hard);
	return 0;
}

/* The size of /dev/shm in bytes; podman's may have a unit, as in "512m". */
static int
add_shm(const struct task *task, bool evaluated, struct spec_writer *spec, struct err *e)
{
	static const char units[] = "bkmgt";
	json_t *value = driver_config_get(task, "shm_size");
	int64_t size = container_number(task, "shm_size", 0);
	const char *text = str(json_string_value(value)), *unit;
	const char *end = text + strspn(text, "0123456789");
	int shift = 0;

	if (driver_value_is_open(value, evaluated))
		return 0;
	if (*end) {
		unit = end == text ? NULL : strchr(units, tolower((unsigned char)*end));
		if (!unit || (end[1] && strcasecmp(end + 1, "b") != 0))
			return err_say(e, -EINVAL,
			    "task %s: config.shm_size: \"%.40s\" is not a size as in \"512m\"",
			    task->name, text);
		shift = 10 * (int)(unit - units);
	}
	if (size < 0 || size > INT64_MAX >> shift)
		return err_say(e, -EINVAL, "task %s: config.shm_size is out of range", task->name);
	if (spec && size > 0)
		container_option(spec, "shm", "%lld", (long long)size << shift);
	return 0;
}

/* Checks everything that fill_options() uses, and with a spec adds it there. */
static int
add_options(const struct agent_config *config, const struct task *task, bool evaluated,
    struct spec_writer *spec, struct err *e)
{
	bool no_new_privs = false;
	int r;

	if ((r = container_check_keys(task, evaluated, e)) < 0 ||
	    (r = check_security(task, evaluated, &no_new_privs, e)) < 0 ||
	    (r = container_check_hosts(task, evaluated, e)) < 0 ||
	    (r = container_sysctls(task, evaluated, spec, e)) < 0 ||
	    (r = container_each(task, "ulimit", evaluated, add_limit, NULL, e)) < 0 ||
	    (r = add_shm(task, evaluated, spec, e)) < 0 ||
	    (r = container_mounts(config, task, evaluated, spec, e)) < 0 || !spec)
		return r;
	if (container_flag(task, "readonly_rootfs"))
		container_option(spec, "flag", "read_only");
	if (container_flag(task, "init"))
		container_option(spec, "flag", "init");
	if (container_flag(task, "interactive"))
		container_option(spec, "stdin", "open");
	return 0;
}

static int
check_numbers(const struct agent_config *config, const struct task *task, struct err *e)
{
	uint64_t most = config_of(config, task)->pids_limit;
	int64_t score = container_number(task, "oom_score_adj", 0);
	int64_t pids = container_number(task, "pids_limit", 0);
	int64_t hard = container_number(task, "memory_hard_limit", 0);

	if (container_number(task, "cpu_cfs_period", CFS_PERIOD_US) != CFS_PERIOD_US)
		return err_say(e, -EINVAL,
		    "task %s: config.cpu_cfs_period must be %d: the limit of cpu_hard_limit holds "
		    "in "
		    "each 100 ms",
		    task->name, CFS_PERIOD_US);
	if (score < 0 || score > 1000)
		return err_say(e, -EINVAL,
		    "task %s: config.oom_score_adj must be a whole number from 0 to 1000",
		    task->name);
	if (most > 0 && pids > 0 && (uint64_t)pids > most)
		return err_say(e, -EINVAL,
		    "task %s: config.pids_limit must be at most %llu, the pids_limit of plugin "
		    "\"%s\" in the agent's configuration",
		    task->name, (unsigned long long)most, str(task->driver));
	if (hard > 0 && hard < task->resources->memory_mb && task->resources->memory_max_mb == 0)
		return err_say(e, -EINVAL,
		    "task %s: config.memory_hard_limit must be at least %lld, the memory of the "
		    "task's resources",
		    task->name, (long long)task->resources->memory_mb);
	return 0;
}

/* exec-helper checks the same. */
static int
check_privileged(
    const struct agent_config *config, const struct task *task, bool evaluated, struct err *e)
{
	bool open = driver_value_is_open(driver_config_get(task, "privileged"), evaluated);
	const struct driver_ops *driver = driver_find(str(task->driver));

	if (container_flag(task, "privileged") && !(config->allow_privileged & 1u << driver->id))
		return err_say(e, -EINVAL,
		    "task %s: config.privileged is not allowed on this node: plugin \"%s\" { "
		    "config "
		    "{ allow_privileged = true } } in the agent's configuration allows it, and "
		    "gives "
		    "root to anyone who may submit a job",
		    task->name, driver->name);
	if (task->csi_plugin && task->csi_plugin->type != CSI_PLUGIN_CONTROLLER && !open &&
	    !container_flag(task, "privileged"))
		return err_say(e, -EINVAL,
		    "task %s: a csi_plugin task of type node or monolith has to mount: in a "
		    "container it needs privileged = true in its config, which plugin \"%s\" { "
		    "config { allow_privileged = true } } in the agent's configuration allows; or "
		    "use exec or raw_exec",
		    task->name, driver->name);
	return 0;
}

/* exec-helper checks the same. */
static int
check_host_ids(const struct agent_config *config, const struct task *task, struct err *e)
{
	const struct driver_ops *driver = driver_find(str(task->driver));
	const char *key = driver->id == DRIVER_DOCKER ? "userns_mode" : "userns";

	if (!container_has_host_ids(task))
		return 0;
	if (!(config->allow_host_userns & 1u << driver->id))
		return err_say(e, -EINVAL,
		    "task %s: config.%s = \"host\" is not allowed on this node: plugin \"%s\" { "
		    "config { allow_host_userns = true } } in the agent's configuration allows it, "
		    "and makes anyone who may submit a job root on the volumes of this node",
		    task->name, key, driver->name);
	if (strcmp(str(container_text(task, "network_mode")), "host") == 0)
		return err_say(e, -EINVAL,
		    "task %s: config.%s = \"host\" is not possible with network_mode = \"host\": "
		    "there the servers of the machine would take the container for root; use "
		    "network_mode = \"bridge\"",
		    task->name, key);
	return 0;
}

static int
check_names(const struct task *task, bool evaluated, struct err *e)
{
	static const char *const dirs[] = { "work_dir", "working_dir" };
	const char *name = container_text(task, "hostname");

	for (size_t i = 0; i < ELEMENTSOF(dirs); i++) {
		const char *dir = container_text(task, dirs[i]);

		if (dir && *dir && *dir != '/' &&
		    !driver_value_is_open(driver_config_get(task, dirs[i]), evaluated))
			return err_say(e, -EINVAL,
			    "task %s: config.%s: \"%.80s\" is not an absolute path", task->name,
			    dirs[i], dir);
	}
	if (name && !task_net_is_name(name) &&
	    !driver_value_is_open(driver_config_get(task, "hostname"), evaluated))
		return err_say(e, -EINVAL,
		    "task %s: config.hostname: \"%.80s\" is not a name: it may have at most 63 "
		    "letters, digits, '-', '_' and '.'",
		    task->name, name);
	return 0;
}

static int
check_config(
    const struct agent_config *config, const struct task *task, bool evaluated, struct err *e)
{
	int r = add_options(config, task, evaluated, NULL, e);
	uint64_t caps;

	if (r < 0 || (r = find_caps(config, task, evaluated, &caps, e)) < 0 ||
	    (r = check_numbers(config, task, e)) < 0 || (r = check_names(task, evaluated, e)) < 0)
		return r;
	if ((r = check_privileged(config, task, evaluated, e)) < 0 ||
	    (r = check_host_ids(config, task, e)) < 0)
		return r;
	/* A start checks devices when it adds them; a session has none. */
	return evaluated ? 0 : container_check_devices(config, task, e);
}

/* --- the start --- */

static json_t *
image_get(const json_t *image, const char *key)
{
	json_t *value = json_object_get(image, key);

	return json_is_null(value) ? NULL : value;
}

/* The words of the command that have been added to the spec; the first word is the program. */
struct words {
	struct spec_writer *spec;
	size_t n;
	bool empty; /* the first one is "" */
};

static void
add_word(struct words *w, const char *text)
{
	w->empty |= w->n == 0 && !*text;
	spec_add_str(w->spec, w->n++ == 0 ? SPEC_COMMAND : SPEC_ARG, text);
}

static void
add_words(struct words *w, const json_t *list)
{
	json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		add_word(w, str(json_string_value(item)));
}

/* Adds the entrypoint of the job, or else the image's. Returns whether the image's Cmd comes after
 * it. As with Docker, [] and [""] both mean that there is no entrypoint, but only [] keeps the Cmd.
 */
static bool
add_entrypoint(const json_t *own, const json_t *image, struct words *w)
{
	const char *only =
	    json_string_value(json_array_size(own) == 1 ? json_array_get(own, 0) : own);

	if (only && *only)
		add_word(w, only);
	else if (!only)
		add_words(w, own ? own : image_get(image, "Entrypoint"));
	return !own || (!only && json_array_size(own) == 0);
}

/* As Docker: an entrypoint of the job replaces the image's, and its Cmd with it; a command or
 * arguments of the job replace its Cmd. */
static int
add_command(const struct task *task, const json_t *image, struct spec_writer *spec, struct err *e)
{
	struct words w = { .spec = spec };
	const char *command = container_text(task, "command");
	json_t *args = driver_config_get(task, "args");
	bool cmd = add_entrypoint(driver_config_get(task, "entrypoint"), image, &w);

	if (command)
		add_word(&w, command);
	if (command || json_array_size(args) > 0)
		add_words(&w, args);
	else if (cmd)
		add_words(&w, image_get(image, "Cmd"));
	if (w.n > 0 && !w.empty)
		return 0;
	return err_say(e, -EINVAL,
	    w.empty ? "task %s: the program to run is \"\": it is the first word of "
		      "config.entrypoint, config.command or config.args; write a path there"
		    : "task %s: neither config.command nor the image says which program to run: "
		      "set config.command",
	    task->name);
}

static void
add_env(const json_t *image, struct spec_writer *spec)
{
	json_t *item;
	size_t i;

	json_array_foreach (image_get(image, "Env"), i, item) {
		const char *text = str(json_string_value(item));

		if (text[0] != '=' && strchr(text, '='))
			spec_add_str(spec, SPEC_ENV, text);
	}
}

static void
fill_limits(const struct agent_config *config, const struct task *task, struct exec_start *req)
{
	int64_t hard = container_number(task, "memory_hard_limit", 0);
	int64_t most = (int64_t)config_of(config, task)->pids_limit;
	int64_t pids = container_number(task, "pids_limit", 0);

	if (hard > 0 && (uint64_t)hard < UINT64_MAX / MIB &&
	    (uint64_t)hard * MIB > req->memory_bytes && req->memory_bytes > 0) {
		req->memory_soft_bytes = req->memory_soft_bytes ?: req->memory_bytes;
		req->memory_bytes = (uint64_t)hard * MIB;
	}
	if (pids <= 0) /* -1 is Docker's word for no limit */
		pids = most;
	req->pids_max = pids > 0 && pids < UINT32_MAX ? (uint32_t)pids : 0;
	req->oom_score_adj = (uint32_t)container_number(task, "oom_score_adj", 0);
}

/* The configuration has been checked. */
static void
fill_process(const struct agent_config *config, const struct task *task, const json_t *image,
    const struct task_net *net, const struct exec_start *req, struct spec_writer *spec)
{
	const char *dir = container_text(task, "work_dir") ?: container_text(task, "working_dir");
	const char *user = task->user && *task->user
			       ? task->user
			       : str(json_string_value(image_get(image, "User")));
	bool no_new_privs = false;
	uint64_t caps = 0;
	struct err none;
	json_t *item;
	size_t i;

	(void)find_caps(config, task, true, &caps, &none);
	(void)check_security(task, true, &no_new_privs, &none);
	(void)container_each(task, "ulimit", true, add_limit, spec, &none);
	container_option(spec, "caps", "%llx", (unsigned long long)caps);
	if (no_new_privs)
		container_option(spec, "flag", "no_new_privs");
	json_array_foreach (driver_config_get(task, "group_add"), i, item)
		container_option(spec, "group", "%s", str(json_string_value(item)));
	container_name(task, net, req, spec);
	add_env(image, spec);
	if (!dir)
		dir = str(json_string_value(image_get(image, "WorkingDir")));
	if (dir[0] == '/')
		spec_add_str(spec, SPEC_CWD, dir);
	spec_add_str(spec, SPEC_USER, user);
}

static int
fill_start(const struct agent_config *config, const struct task *task, const json_t *image,
    const struct task_net *net, struct exec_start *req, struct spec_writer *spec, struct err *e)
{
	const char *mode = container_text(task, "network_mode");
	int r = add_command(task, image, spec, e);

	if (r < 0 || (r = add_options(NULL, task, true, spec, e)) < 0)
		return r;
	fill_limits(config, task, req);
	req->net_mode = mode && strcmp(mode, "none") == 0 ? EXEC_NS_PRIVATE : EXEC_NS_HOST;
	req->privileged = container_flag(task, "privileged");
	req->host_ids = container_has_host_ids(task);
	req->tty = container_flag(task, "tty");
	if (mode && (strcmp(mode, "host") == 0 || strcmp(mode, "none") == 0))
		req->network = (struct id){ 0 }; /* as with Docker, before the group's network */
	if (driver_config_get(task, "port_map") &&
	    (id_is_zero(&req->network) || id_equal(&req->network, &req->alloc)))
		return err_say(e, -EINVAL,
		    "task %s: config.port_map needs a network of the task's own; use ports of the "
		    "group's network, with `to`",
		    task->name);
	(void)memset(req->user, 0, sizeof req->user);
	if (req->tty)
		spec_add_str(
		    spec, SPEC_ENV, "TERM=xterm"); /* as Docker; the image's comes after it */
	fill_process(config, task, image, net, req, spec);
	return container_files(task, net, req, spec, e);
}

const struct driver_ops driver_docker = {
	.name = "docker",
	.id = DRIVER_DOCKER,
	.isolates_files = true,
	.mounts = true,
	.containers = true,
	.check = check_config,
	.fill = fill_start,
	.fill_process = fill_process,
};

const struct driver_ops driver_podman = {
	.name = "podman",
	.id = DRIVER_PODMAN,
	.isolates_files = true,
	.mounts = true,
	.containers = true,
	.check = check_config,
	.fill = fill_start,
	.fill_process = fill_process,
};
