// SPDX-License-Identifier: Apache-2.0
/*
 * config_drivers.c: reads which drivers are enabled and what they may do: client { options } and
 * plugin { … }. Runs in: the launcher's configuration child.
 */
#include <string.h>
#include <strings.h>

#include "common/cap_name.h"
#include "common/cleanup.h"
#include "common/privs.h"
#include "config/config_reader.h"
#include "proto/ipc_records.h"

/* --- options --- */

/* Returns the bits of the drivers in list, names separated by commas; unknown drivers are
 * ignored. */
static uint32_t
drivers_named(const char *list)
{
	uint32_t bits = 0;

	for (const char *at = list; *at; at += strspn(at, ", ")) {
		size_t len = strcspn(at, ", ");

		if (len == 8 && memcmp(at, "raw_exec", len) == 0)
			bits |= DRIVER_BIT(DRIVER_RAW_EXEC);
		if (len == 4 && memcmp(at, "exec", len) == 0)
			bits |= DRIVER_BIT(DRIVER_EXEC);
		if (len == 6 && memcmp(at, "docker", len) == 0)
			bits |= DRIVER_BIT(DRIVER_DOCKER);
		if (len == 6 && memcmp(at, "podman", len) == 0)
			bits |= DRIVER_BIT(DRIVER_PODMAN);
		at += len;
	}
	return bits;
}

static int
read_driver_list(struct config_reader *c, const struct hcl_node *node)
{
	bool allow = strcmp(node->key, "driver.allowlist") == 0;

	if (node->kind != HCL_NODE_STRING)
		return config_wrong(c, node, node->key, "a string with names of drivers");
	if (node->text[strspn(node->text, ", ")] == '\0')
		return 0;
	c->policy->drivers_denied |= allow ? ~drivers_named(node->text) : drivers_named(node->text);
	return 0;
}

static int
warn_option(struct config_reader *c, const struct hcl_node *node)
{
	config_warn(c, node->key_at, node->key,
	    "has no effect: the options are driver.allowlist, driver.denylist, "
	    "user.denylist, user.checked_drivers and logs.destination");
	return 0;
}

static int
read_user_denylist(struct config_reader *c, const struct hcl_node *node)
{
	uint32_t *n = &c->policy->n_denied_users;

	if (node->kind != HCL_NODE_STRING)
		return config_wrong(c, node, node->key, "a string with names of users");
	*n = 0;
	for (const char *at = node->text + strspn(node->text, ", "); *at; at += strspn(at, ", ")) {
		size_t len = strcspn(at, ", ");

		if (*n == CONFIG_RANGES_MAX || len >= CONFIG_NAME_SIZE)
			return config_fail(c, node->at,
			    "%s: expected at most 32 names of at most 127 bytes", node->key);
		memset(c->policy->denied_users[*n], 0, CONFIG_NAME_SIZE);
		memcpy(c->policy->denied_users[(*n)++], at, len);
		at += len;
	}
	return 0;
}

static int
read_checked_drivers(struct config_reader *c, const struct hcl_node *node)
{
	if (node->kind != HCL_NODE_STRING)
		return config_wrong(c, node, node->key, "a string with names of drivers");
	c->policy->checked_drivers = drivers_named(node->text);
	return 0;
}

static int
read_logs_destination(struct config_reader *c, const struct hcl_node *node)
{
	static const char *const names[] = {
		[LOG_STORE_FILES] = "files",
		[LOG_STORE_JOURNALD] = "journald",
		[LOG_STORE_BOTH] = "both",
	};

	for (uint32_t i = 0; i < ELEMENTSOF(names); i++)
		if (node->kind == HCL_NODE_STRING && strcmp(node->text, names[i]) == 0) {
			c->config->log_store = i;
			return 0;
		}
	return config_wrong(c, node, node->key, "\"files\", \"journald\" or \"both\"");
}

const struct config_attr config_options_attrs[] = {
	CALL("user.denylist", read_user_denylist),
	CALL("user.checked_drivers", read_checked_drivers),
	CALL("driver.allowlist", read_driver_list),
	CALL("driver.denylist", read_driver_list),
	CALL("logs.destination", read_logs_destination),
	{ .fn = warn_option },
};

/* --- plugins --- */

/* Parses Nomad's form "10,20-30". */
static int
read_ranges(struct config_reader *c, const struct hcl_node *node, uint32_t *n,
    struct config_range ranges[CONFIG_RANGES_MAX])
{
	const char *at = node->text;

	if (node->kind != HCL_NODE_STRING)
		return config_wrong(c, node, node->key, "a string such as \"0,1000-1999\"");
	for (at += strspn(at, ", "); *at; at += strspn(at, ", ")) {
		uint64_t low = 0, high = 0;
		bool good = config_take_number(&at, UINT32_MAX - 1, &low);

		high = low;
		if (good && *at == '-') {
			at++;
			good = config_take_number(&at, UINT32_MAX - 1, &high) && high >= low;
		}
		if (!good || (*at && *at != ',' && *at != ' '))
			return config_fail(c, node->at,
			    "%s: expected numbers and ranges as in \"0,1000-1999\", found "
			    "\"%.64s\"",
			    node->key, node->text);
		if (*n == CONFIG_RANGES_MAX)
			return config_fail(
			    c, node->at, "%s: expected at most 32 ranges in all", node->key);
		ranges[(*n)++] = (struct config_range){ (uint32_t)low, (uint32_t)high, c->driver };
	}
	return 0;
}

/* A later file replaces this driver's ids of an earlier one. */
static void
forget_ranges(
    const struct config_reader *c, uint32_t *n, struct config_range ranges[CONFIG_RANGES_MAX])
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < *n; i++)
		if (ranges[i].drivers != c->driver)
			ranges[kept++] = ranges[i];
	memset(&ranges[kept], 0, (*n - kept) * sizeof ranges[0]);
	*n = kept;
}

static int
read_denied_uids(struct config_reader *c, const struct hcl_node *node)
{
	forget_ranges(c, &c->policy->n_denied_uids, c->policy->denied_uids);
	return read_ranges(c, node, &c->policy->n_denied_uids, c->policy->denied_uids);
}

static int
read_denied_gids(struct config_reader *c, const struct hcl_node *node)
{
	forget_ranges(c, &c->policy->n_denied_gids, c->policy->denied_gids);
	return read_ranges(c, node, &c->policy->n_denied_gids, c->policy->denied_gids);
}

static int
read_driver_enabled(struct config_reader *c, const struct hcl_node *node)
{
	bool on = false;
	int r = config_get_bool(c, node, node->key, &on);

	if (r < 0)
		return r;
	c->policy->drivers = on ? c->policy->drivers | c->driver : c->policy->drivers & ~c->driver;
	return 0;
}

static struct config_container *
container_of(struct config_reader *c)
{
	return &c->config->containers[c->driver == DRIVER_BIT(DRIVER_PODMAN)];
}

static uint64_t *
allowed_caps(struct config_reader *c)
{
	return c->driver == DRIVER_BIT(DRIVER_EXEC) ? &c->policy->allow_caps
						    : &container_of(c)->allow_caps;
}

static int
add_cap(struct config_reader *c, const struct hcl_node *node)
{
	int cap = strcasecmp(node->text, "all") == 0 ? 0 : cap_number(node->text);

	if (cap < 0)
		return config_fail(c, node->at,
		    "allow_caps: expected the name of a capability, found \"%.64s\"", node->text);
	*allowed_caps(c) |= strcasecmp(node->text, "all") == 0 ? privs_all_caps() : 1ull << cap;
	return 0;
}

static int
read_allow_caps(struct config_reader *c, const struct hcl_node *node)
{
	*allowed_caps(c) = 0;
	return config_each_string(c, node, node->key, add_cap);
}

static int
read_ns_mode(struct config_reader *c, const struct hcl_node *node)
{
	bool *host = strcmp(node->key, "default_pid_mode") == 0 ? &c->config->default_pid_host
								: &c->config->default_ipc_host;

	if (node->kind != HCL_NODE_STRING)
		return config_wrong(c, node, node->key, "\"private\" or \"host\"");
	*host = strcmp(node->text, "host") == 0;
	if (!*host && strcmp(node->text, "private") != 0)
		return config_fail(c, node->at,
		    "%s: expected \"private\" or \"host\", found \"%.64s\"", node->key, node->text);
	return 0;
}

static int
read_allow_host(struct config_reader *c, const struct hcl_node *node)
{
	return config_get_bool(c, node, node->key,
	    strcmp(node->key, "allow_host_pid") == 0 ? &c->policy->allow_host_pid
						     : &c->policy->allow_host_ipc);
}

/* Reads a bool that each driver has: its bit in *bits. */
static int
read_driver_bit(struct config_reader *c, const struct hcl_node *node, uint32_t *bits)
{
	bool on = false;
	int r = config_get_bool(c, node, node->key, &on);

	*bits &= ~c->driver;
	*bits |= on ? c->driver : 0;
	return r;
}

static int
read_allow_privileged(struct config_reader *c, const struct hcl_node *node)
{
	return read_driver_bit(c, node, &c->policy->allow_privileged);
}

static int
read_allow_host_userns(struct config_reader *c, const struct hcl_node *node)
{
	return read_driver_bit(c, node, &c->policy->allow_host_userns);
}

static struct config_devices *
devices_of(struct config_reader *c)
{
	return &c->policy->allow_devices[c->driver == DRIVER_BIT(DRIVER_PODMAN)];
}

/* No component may begin with a dot, so that no pattern matches "..". */
static int
add_device(struct config_reader *c, const struct hcl_node *node)
{
	struct config_devices *d = devices_of(c);
	const char *path = node->text;
	int r = config_check_path(c, node->at, "allow_devices", path);

	if (r < 0)
		return r;
	if (strncmp(path, "/dev/", 5) != 0 || strstr(path, "/.") ||
	    strlen(path + 5) >= sizeof d->patterns[0] || d->n == CONFIG_NODES_MAX)
		return config_fail(c, node->at,
		    "allow_devices: expected at most 32 paths or patterns as in \"/dev/dri/*\", of "
		    "at most 127 bytes after \"/dev/\" and without names that begin with a dot, "
		    "found \"%.64s\"",
		    path);
	(void)strcpy(d->patterns[d->n++], path + 5);
	return 0;
}

static int
read_allow_devices(struct config_reader *c, const struct hcl_node *node)
{
	memset(devices_of(c), 0, sizeof *devices_of(c));
	return config_each_string(c, node, node->key, add_device);
}

/* volumes { enabled } */
static int
read_host_paths(struct config_reader *c, const struct hcl_node *node)
{
	return read_driver_bit(c, node, &c->config->host_paths);
}

static int
read_no_pivot_root(struct config_reader *c, const struct hcl_node *node)
{
	bool on = false;
	int r = config_get_bool(c, node, node->key, &on);

	if (on)
		config_warn(
		    c, node->key_at, node->key, "has no effect: drover always uses pivot_root");
	return r;
}

static int
read_pids_limit(struct config_reader *c, const struct hcl_node *node)
{
	return config_get_number(c, node, node->key, UINT32_MAX, &container_of(c)->pids_limit);
}

static int
read_pull_timeout(struct config_reader *c, const struct hcl_node *node)
{
	int r = config_get_duration(c, node, 1000, &container_of(c)->pull_ms);

	if (r == 0 && container_of(c)->pull_ms > INT32_MAX)
		return config_fail(c, node->at, "%s: expected at most 24 days", node->key);
	return r;
}

static const struct config_attr raw_exec_config_attrs[] = {
	CALL("enabled", read_driver_enabled),
	CALL("denied_host_uids", read_denied_uids),
	CALL("denied_host_gids", read_denied_gids),
	UNUSED_AS("no_cgroups", "has no effect: every task has a cgroup"),
	UNUSED_AS("denied_envvars", "has no effect: tasks do not inherit the agent's environment"),
	{ 0 },
};

static const struct config_attr exec_config_attrs[] = {
	CALL("enabled", read_driver_enabled),
	CALL("allow_caps", read_allow_caps),
	CALL("allow_host_pid", read_allow_host),
	CALL("allow_host_ipc", read_allow_host),
	CALL("default_pid_mode", read_ns_mode),
	CALL("default_ipc_mode", read_ns_mode),
	CALL("no_pivot_root", read_no_pivot_root),
	CALL("denied_host_uids", read_denied_uids),
	CALL("denied_host_gids", read_denied_gids),
	{ 0 },
};

#define NO_DAEMON(key_) UNUSED_AS(key_, "has no effect: there is no daemon")

static const struct config_attr container_volumes_attrs[] = {
	CALL("enabled", read_host_paths),
	UNUSED_AS("selinuxlabel", "has no effect: drover does not set SELinux labels"),
	{ 0 },
};

static const struct config_attr container_config_attrs[] = {
	CALL("enabled", read_driver_enabled),
	CALL("allow_privileged", read_allow_privileged),
	CALL("allow_host_userns", read_allow_host_userns),
	CALL("allow_devices", read_allow_devices),
	BLOCK("volumes", container_volumes_attrs),
	BLOCK("auth", config_image_auth_attrs),
	BLOCK("gc", config_image_gc_attrs),
	CALL("pull_activity_timeout", config_read_pull_idle),
	CALL("allow_caps", read_allow_caps),
	CALL("pids_limit", read_pids_limit),
	CALL("image_pull_timeout", read_pull_timeout),
	NO_DAEMON("endpoint"),
	NO_DAEMON("tls"),
	NO_DAEMON("socket_path"),
	NO_DAEMON("socket"),
	NO_DAEMON("client_http_timeout"),
	UNUSED_AS("recover_stopped",
	    "has no effect: a task that has ended starts again as its restart policy says"),
	UNUSED_AS("infra_image", "has no effect: a group's network needs no container"),
	UNUSED_AS(
	    "infra_image_pull_timeout", "has no effect: a group's network needs no container"),
	UNUSED_AS("container_exists_attempts",
	    "has no effect: containers have no names that could exist"),
	UNUSED_AS("extra_labels", "has no effect: there is no daemon to ask for labels"),
	UNUSED_AS("logging",
	    "has no effect: output goes to the task's logs (logs.destination, docs/logs.md)"),
	UNUSED_AS("disable_log_collection",
	    "has no effect: `logs { disabled = true }` of a task does it"),
	UNUSED_AS("oom_score_adj", "has no effect: oom_score_adj of a task's config does it"),
	UNUSED_AS("allowed_modes",
	    "has no effect: containers cannot have namespaces of the machine, only its network"),
	UNUSED_AS("allow_runtimes", "has no effect: there is only drover's own runtime"),
	UNUSED_AS("nvidia_runtime", "has no effect: there is only drover's own runtime"),
	UNUSED_AS("windows_allow_insecure_container_admin", "has no effect: this is not Windows"),
	{ 0 },
};

static const struct config_attr container_attrs[] = { BLOCK("config", container_config_attrs),
	UNUSED_AS("args", "has no effect: the drivers are built in"), { 0 } };
static const struct config_attr raw_exec_attrs[] = { BLOCK("config", raw_exec_config_attrs),
	UNUSED_AS("args", "has no effect: the drivers are built in"), { 0 } };
static const struct config_attr exec_attrs[] = { BLOCK("config", exec_config_attrs),
	UNUSED_AS("args", "has no effect: the drivers are built in"), { 0 } };

static int
read_raw_exec(struct config_reader *c, const struct hcl_node *node)
{
	c->driver = DRIVER_BIT(DRIVER_RAW_EXEC);
	return config_read_blocks(c, node, raw_exec_attrs);
}

static int
read_exec(struct config_reader *c, const struct hcl_node *node)
{
	c->driver = DRIVER_BIT(DRIVER_EXEC);
	return config_read_blocks(c, node, exec_attrs);
}

static int
read_containers(struct config_reader *c, const struct hcl_node *node)
{
	c->driver = DRIVER_BIT(strcmp(node->key, "docker") == 0 ? DRIVER_DOCKER : DRIVER_PODMAN);
	return config_read_blocks(c, node, container_attrs);
}

static int
warn_plugin(struct config_reader *c, const struct hcl_node *node)
{
	config_warn(c, node->key_at, node->key,
	    "has no effect: the drivers are exec, raw_exec, docker and podman, jobs with others "
	    "are "
	    "refused");
	return 0;
}

const struct config_attr config_plugin_attrs[] = {
	CALL("raw_exec", read_raw_exec),
	CALL("exec", read_exec),
	CALL("docker", read_containers),
	CALL("podman", read_containers),
	CALL("nomad-driver-podman", read_containers), /* its name in Nomad's configurations */
	{ .fn = warn_plugin },
};
