// SPDX-License-Identifier: Apache-2.0
/*
 * config.c: Nomad's agent configuration into the two records, by tables of what is known. Runs in:
 * the launcher's configuration child.
 */
#include "common/config.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/hcl.h"
#include "common/id.h"
#include "common/log.h"
#include "common/privs.h"

#define DRIVER_BIT(driver) (1u << (driver))

struct reader {
	const char *name;
	struct agent_config *config;
	struct agent_policy *policy;
	void (*warn)(void *arg, const char *sentence);
	void *arg;
	uint32_t driver; /* bit of the plugin whose block is being read */
	struct err *e;
};

typedef int attr_fn(struct reader *c, const struct hcl_node *node);

/* What an attribute or block becomes. Tables of these end with an empty key; NULL there means that
 * any key is taken. */
struct attr {
	const char *key;
	enum attr_kind {
		ATTR_CALL, /* fn */
		ATTR_TEXT, /* char[size] at offset in the configuration; "" leaves what is there */
		ATTR_BOOL, /* bool at offset */
		ATTR_NUMBER, /* uint64_t at offset, up to `most` */
		ATTR_BLOCK,  /* inside */
		ATTR_UNUSED, /* Nomad's, without a meaning here: why says what to know */
	} kind;
	size_t offset, size;
	uint64_t most;
	attr_fn *fn;
	const struct attr *inside;
	const char *why;
};

#define FIELD(name)                                                                                \
	.offset = offsetof(struct agent_config, name),                                             \
	.size = sizeof(((struct agent_config *)0)->name)
#define TEXT(key_, field)                                                                          \
	{                                                                                          \
		.key = key_, .kind = ATTR_TEXT, FIELD(field)                                       \
	}
#define NUMBER(key_, field)                                                                        \
	{                                                                                          \
		.key = key_, .kind = ATTR_NUMBER, FIELD(field), .most = 1000000000                 \
	}
#define CALL(key_, fn_)                                                                            \
	{                                                                                          \
		.key = key_, .kind = ATTR_CALL, .fn = fn_                                          \
	}
#define BLOCK(key_, inside_)                                                                       \
	{                                                                                          \
		.key = key_, .kind = ATTR_BLOCK, .inside = inside_                                 \
	}
#define UNUSED(key_)                                                                               \
	{                                                                                          \
		.key = key_, .kind = ATTR_UNUSED, .why = "has no effect in drover"                 \
	}
#define UNUSED_AS(key_, why_)                                                                      \
	{                                                                                          \
		.key = key_, .kind = ATTR_UNUSED, .why = why_                                      \
	}

/* --- sentences --- */

static int __attribute__((format(printf, 3, 4)))
fail(struct reader *c, struct hcl_pos at, const char *fmt, ...)
{
	char sentence[ERR_MSG_SIZE / 2];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(sentence, sizeof sentence, fmt, ap);
	va_end(ap);
	return err_say(c->e, -EINVAL, "%s:%u:%u: %s", c->name, at.line, at.column, sentence);
}

static int
wrong(struct reader *c, const struct hcl_node *node, const char *key, const char *what)
{
	return fail(c, node->at, "%s: expected %s, found %s", key, what, hcl_kind_name(node->kind));
}

static void
warn_at(struct reader *c, struct hcl_pos at, const char *key, const char *why)
{
	char sentence[ERR_MSG_SIZE];

	if (!c->warn)
		return;
	(void)snprintf(sentence, sizeof sentence, "%s:%u:%u: '%.64s' %s", c->name, at.line,
	    at.column, key, why);
	c->warn(c->arg, sentence);
}

/* --- values --- */

static int
get_text(struct reader *c, const struct hcl_node *node, const char *key, char *ret, size_t size)
{
	size_t len;

	/* Numbers and booleans as text too, as Nomad's reader has it: meta { rack = 12 }. */
	if (node->kind != HCL_STRING && node->kind != HCL_NUMBER && node->kind != HCL_BOOL)
		return wrong(c, node, key, "a string");
	len = strlen(node->text);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)node->text[i] < 0x20 || node->text[i] == 0x7f)
			return fail(
			    c, node->at, "%s: expected a string without control characters", key);
	if (len >= size)
		return fail(c, node->at, "%s: expected at most %zu bytes", key, size - 1);
	memset(ret, 0, size);
	memcpy(ret, node->text, len);
	return 0;
}

static int
get_bool(struct reader *c, const struct hcl_node *node, const char *key, bool *ret)
{
	bool is_text = node->kind == HCL_BOOL || node->kind == HCL_STRING;

	if (is_text && (strcmp(node->text, "true") == 0 || strcmp(node->text, "1") == 0)) {
		*ret = true;
		return 0;
	}
	if (is_text && (strcmp(node->text, "false") == 0 || strcmp(node->text, "0") == 0)) {
		*ret = false;
		return 0;
	}
	if (node->kind == HCL_STRING)
		return fail(
		    c, node->at, "%s: expected true or false, found \"%.64s\"", key, node->text);
	return wrong(c, node, key, "true or false");
}

/* A whole number in text from *at on; moves *at behind it. */
static bool
read_number(const char **at, uint64_t most, uint64_t *ret)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*ret = strtoull(*at, &end, 10);
	*at = end;
	return errno == 0 && *ret <= most;
}

static int
get_number(
    struct reader *c, const struct hcl_node *node, const char *key, uint64_t most, uint64_t *ret)
{
	char what[64];
	const char *at = node->text;
	uint64_t v = 0;

	(void)snprintf(
	    what, sizeof what, "a whole number from 0 to %llu", (unsigned long long)most);
	if (node->kind != HCL_NUMBER && node->kind != HCL_STRING)
		return wrong(c, node, key, what);
	if (!read_number(&at, most, &v) || *at)
		return fail(c, node->at, "%s: expected %s, found '%.64s'", key, what, node->text);
	*ret = v;
	return 0;
}

/* An absolute path without "." and ".." and doubled or trailing slashes. */
static int
check_path(struct reader *c, struct hcl_pos at, const char *key, const char *path)
{
	const char *part = path;

	if (*path != '/')
		return fail(c, at, "%s: expected an absolute path, found \"%.64s\"", key, path);
	while (part && part[1]) {
		size_t len = strcspn(++part, "/");

		if (len == 0 || (len == 1 && part[0] == '.') ||
		    (len == 2 && part[0] == '.' && part[1] == '.'))
			return fail(c, at,
			    "%s: expected a path without '.', '..' and empty parts, found "
			    "\"%.200s\"",
			    key, path);
		part = part[len] ? part + len : NULL;
		if (part && !part[1])
			return fail(c, at,
			    "%s: expected a path that does not end with '/', found \"%.200s\"", key,
			    path);
	}
	return 0;
}

static int
get_path(struct reader *c, const struct hcl_node *node, const char *key, char ret[CONFIG_PATH_SIZE])
{
	size_t len;
	int r;

	if (node->kind != HCL_STRING)
		return wrong(c, node, key, "a path");
	r = get_text(c, node, key, ret, CONFIG_PATH_SIZE);
	if (r < 0)
		return r;
	len = strlen(ret);
	if (len > 1 && ret[len - 1] == '/')
		ret[len - 1] = '\0';
	return check_path(c, node->at, key, ret);
}

/* Calls fn for each element of a list of strings. */
static int
each_string(struct reader *c, const struct hcl_node *node, const char *key, attr_fn *fn)
{
	int r;

	if (node->kind != HCL_LIST)
		return wrong(c, node, key, "a list of strings");
	for (const struct hcl_node *n = node->first; n; n = n->next) {
		if (n->kind != HCL_STRING)
			return wrong(c, n, key, "a string");
		r = fn(c, n);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- bodies --- */

static int read_body(struct reader *c, const struct hcl_node *body, const struct attr *known);

/* A block, or in JSON also a list of them. */
static int
read_blocks(struct reader *c, const struct hcl_node *node, const struct attr *known)
{
	int r = 0;

	if (node->kind == HCL_OBJECT)
		return read_body(c, node, known);
	if (node->kind != HCL_LIST)
		return wrong(c, node, node->key, "a block");
	for (const struct hcl_node *n = node->first; n && r >= 0; n = n->next)
		r = n->kind == HCL_OBJECT ? read_body(c, n, known)
					  : wrong(c, n, node->key, "a block");
	return r;
}

static int
read_attr(struct reader *c, const struct hcl_node *node, const struct attr *a)
{
	char *at = (char *)c->config + a->offset;

	switch (a->kind) {
	case ATTR_CALL:
		return a->fn(c, node);
	case ATTR_TEXT:
		if (node->kind == HCL_STRING && node->text[0] == '\0')
			return 0;
		return get_text(c, node, node->key, at, a->size);
	case ATTR_BOOL:
		return get_bool(c, node, node->key, (bool *)at);
	case ATTR_NUMBER:
		return get_number(c, node, node->key, a->most, (uint64_t *)(void *)at);
	case ATTR_BLOCK:
		return read_blocks(c, node, a->inside);
	case ATTR_UNUSED:
		warn_at(c, node->key_at, node->key, a->why);
		return 0;
	}
	return 0;
}

static bool
is_repeatable(const struct attr *a)
{
	return a->kind == ATTR_BLOCK || a->kind == ATTR_UNUSED;
}

static int
read_body(struct reader *c, const struct hcl_node *body, const struct attr *known)
{
	uint64_t seen = 0;
	int r;

	for (const struct hcl_node *n = body->first; n; n = n->next) {
		const struct attr *a = known;

		while (a->key && strcmp(a->key, n->key) != 0)
			a++;
		if (!a->key && !a->fn) {
			warn_at(c, n->key_at, n->key, "is not known here and has no effect");
			continue;
		}
		if (n->kind == HCL_NULL)
			continue;
		if (a->key && !is_repeatable(a)) {
			if (seen >> (a - known) & 1)
				return fail(c, n->key_at, "'%s' stands here twice", n->key);
			seen |= 1ull << (a - known);
		}
		r = a->key ? read_attr(c, n, a) : a->fn(c, n);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- the agent --- */

static int
read_data_dir(struct reader *c, const struct hcl_node *node)
{
	return get_path(c, node, node->key, c->config->data_dir);
}

static int
read_log_level(struct reader *c, const struct hcl_node *node)
{
	char word[sizeof c->config->log_level];
	int r = get_text(c, node, node->key, word, sizeof word);

	if (r < 0)
		return r;
	for (char *at = word; *at; at++)
		if (*at >= 'A' && *at <= 'Z')
			*at += 'a' - 'A';
	if (log_level_parse(word) < 0)
		return fail(c, node->at,
		    "%s: expected error, warn, info, debug or trace, found \"%.64s\"", node->key,
		    word);
	memcpy(c->config->log_level, word, sizeof word);
	return 0;
}

static int
read_server_enabled(struct reader *c, const struct hcl_node *node)
{
	bool on = false;
	int r = get_bool(c, node, node->key, &on);

	if (on)
		warn_at(c, node->key_at, "server",
		    "has no effect: drover is a client, and its own source without servers");
	return r;
}

/* --- client --- */

static int
read_client_enabled(struct reader *c, const struct hcl_node *node)
{
	bool on = true;
	int r = get_bool(c, node, node->key, &on);

	if (r == 0 && !on)
		warn_at(
		    c, node->key_at, "enabled", "= false has no effect: drover is always a client");
	return r;
}

static int
add_server(struct reader *c, const struct hcl_node *node)
{
	struct agent_config *config = c->config;

	if (config->n_servers == CONFIG_SERVERS_MAX)
		return fail(c, node->at, "servers: expected at most 16");
	if (node->text[0] == '\0' || strpbrk(node->text, " \t"))
		return fail(c, node->at,
		    "servers: expected the address of a server, found \"%.64s\"", node->text);
	if (get_text(c, node, "servers", config->servers[config->n_servers], CONFIG_PATH_SIZE) < 0)
		return -EINVAL;
	config->n_servers++;
	return 0;
}

static int
read_servers(struct reader *c, const struct hcl_node *node)
{
	c->config->n_servers = 0;
	return each_string(c, node, node->key, add_server);
}

static int
read_max_kill_timeout(struct reader *c, const struct hcl_node *node)
{
	struct err why = { 0 };
	int64_t ns = 0;

	if (node->kind != HCL_STRING)
		return wrong(c, node, node->key, "a duration such as \"30s\"");
	if (duration_parse(node->text, &ns, &why) < 0)
		return fail(c, node->at, "%s: %.200s", node->key, why.msg);
	if (ns < NS_PER_MS)
		return fail(c, node->at, "%s: expected a duration of at least 1ms, found \"%.64s\"",
		    node->key, node->text);
	c->config->max_kill_timeout_ms = (uint64_t)(ns / NS_PER_MS);
	return 0;
}

static int
read_cgroup_parent(struct reader *c, const struct hcl_node *node)
{
	char path[CONFIG_PATH_SIZE] = "/";
	int r = get_text(c, node, node->key, path + 1, sizeof path - 1);

	if (r < 0 || !path[1])
		return r;
	/* "nomad.slice" and "/nomad" are both in use: it is a path below the root of each
	 * hierarchy. */
	if (path[1] == '/')
		memmove(path, path + 1, sizeof path - 1);
	r = check_path(c, node->at, node->key, path);
	if (r == 0 && !path[1])
		r = fail(c, node->at, "%s: expected a cgroup below the root", node->key);
	if (r == 0)
		memcpy(c->policy->cgroup_parent, path, sizeof path);
	return r;
}

static int
read_meta(struct reader *c, const struct hcl_node *node)
{
	struct agent_config *config = c->config;
	uint32_t i = 0;
	int r;

	while (i < config->n_meta && strcmp(config->meta[i].key, node->key) != 0)
		i++;
	if (i == CONFIG_META_MAX)
		return fail(c, node->key_at, "meta: expected at most 64 entries");
	if (!node->key[0] || strlen(node->key) >= CONFIG_NAME_SIZE)
		return fail(c, node->key_at, "meta: expected a key of 1 to 127 bytes");
	r = get_text(c, node, node->key, config->meta[i].value, sizeof config->meta[i].value);
	if (r < 0)
		return r;
	(void)strcpy(config->meta[i].key, node->key);
	if (i == config->n_meta)
		config->n_meta++;
	return 0;
}

static int
add_chroot(struct reader *c, const struct hcl_node *node)
{
	struct agent_policy *policy = c->policy;
	uint32_t i = policy->n_chroot_env;
	int r;

	if (i == CONFIG_CHROOT_MAX)
		return fail(c, node->key_at, "chroot_env: expected at most 64 entries");
	if (strlen(node->key) >= CONFIG_PATH_SIZE)
		return fail(c, node->key_at, "chroot_env: expected a path of at most 255 bytes");
	r = check_path(c, node->key_at, "chroot_env", node->key);
	if (r < 0)
		return r;
	r = get_path(c, node, node->key, policy->chroot_env[i].target);
	if (r < 0)
		return r;
	if (!policy->chroot_env[i].target[1])
		return fail(c, node->at, "%s: expected a path below the task's root", node->key);
	memset(policy->chroot_env[i].source, 0, CONFIG_PATH_SIZE);
	(void)strcpy(policy->chroot_env[i].source, node->key);
	policy->n_chroot_env++;
	return 0;
}

/* Replaces the default, as semantics.md 8.1 has it. An empty one leaves it. */
static int
read_chroot_env(struct reader *c, const struct hcl_node *node)
{
	static const struct attr any[] = { { .fn = add_chroot } };

	if (node->kind == HCL_OBJECT && !node->first)
		return 0;
	c->policy->n_chroot_env = 0;
	return read_blocks(c, node, any);
}

/* Drivers by name, separated by commas: the bits of those that exist here. */
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
		at += len;
	}
	return bits;
}

static int
read_driver_list(struct reader *c, const struct hcl_node *node)
{
	bool allow = strcmp(node->key, "driver.allowlist") == 0;

	if (node->kind != HCL_STRING)
		return wrong(c, node, node->key, "a string with names of drivers");
	if (node->text[strspn(node->text, ", ")] == '\0')
		return 0;
	c->policy->drivers_denied |= allow ? ~drivers_named(node->text) : drivers_named(node->text);
	return 0;
}

static const struct attr options_attrs[] = {
	CALL("driver.allowlist", read_driver_list),
	CALL("driver.denylist", read_driver_list),
	{ 0 },
};

static const struct attr meta_attrs[] = { { .fn = read_meta } };

static int
set_host_volume(
    struct reader *c, const struct hcl_node *node, const struct config_host_volume *volume)
{
	struct agent_config *config = c->config;
	uint32_t i = 0;

	while (
	    i < config->n_host_volumes && strcmp(config->host_volumes[i].name, volume->name) != 0)
		i++;
	if (i == CONFIG_VOLUMES_MAX)
		return fail(c, node->key_at, "host_volume: expected at most 64");
	config->host_volumes[i] = *volume;
	if (i == config->n_host_volumes)
		config->n_host_volumes++;
	memcpy(c->policy->host_volumes, config->host_volumes, sizeof config->host_volumes);
	c->policy->n_host_volumes = config->n_host_volumes;
	return 0;
}

/* host_volume "name" { path, read_only }: node is the object under the name. */
static int
read_host_volume(struct reader *c, const struct hcl_node *node)
{
	struct config_host_volume volume = { 0 };
	const struct hcl_node *body = node->kind == HCL_LIST ? node->first : node;
	int r = 0;

	if (!body || body->kind != HCL_OBJECT || (node->kind == HCL_LIST && body->next))
		return wrong(c, node, "host_volume", "a name and a block with path and read_only");
	if (!name_is_component(node->key) || strlen(node->key) >= sizeof volume.name)
		return fail(c, node->key_at,
		    "host_volume: \"%.64s\" is no name (letters, digits, '-', '_', '.')",
		    node->key);
	(void)strcpy(volume.name, node->key);
	for (const struct hcl_node *n = body->first; n && r == 0; n = n->next) {
		if (strcmp(n->key, "path") == 0)
			r = get_path(c, n, n->key, volume.path);
		else if (strcmp(n->key, "read_only") == 0)
			r = get_bool(c, n, n->key, &volume.read_only);
		else
			warn_at(c, n->key_at, n->key, "is not known here and has no effect");
	}
	if (r < 0)
		return r;
	if (!volume.path[0])
		return fail(c, node->key_at, "host_volume \"%s\": expected a path", volume.name);
	return set_host_volume(c, node, &volume);
}

static const struct attr host_volume_attrs[] = { { .fn = read_host_volume } };

static const struct attr reserved_attrs[] = {
	NUMBER("cpu", reserved_cpu_mhz),
	NUMBER("memory", reserved_memory_mb),
	NUMBER("disk", reserved_disk_mb),
	UNUSED("cores"),
	UNUSED("reserved_ports"),
	{ 0 },
};

static const struct attr server_join_attrs[] = {
	CALL("retry_join", read_servers),
	UNUSED_AS("retry_interval", "has no effect: drover's own backoff applies"),
	UNUSED_AS("retry_max", "has no effect: drover tries for ever"),
	{ 0 },
};

static const struct attr client_attrs[] = {
	CALL("enabled", read_client_enabled),
	CALL("servers", read_servers),
	BLOCK("server_join", server_join_attrs),
	TEXT("node_class", node_class),
	TEXT("node_pool", node_pool),
	BLOCK("meta", meta_attrs),
	BLOCK("options", options_attrs),
	BLOCK("host_volume", host_volume_attrs),
	{ .key = "chroot_env", .kind = ATTR_CALL, .fn = read_chroot_env },
	BLOCK("reserved", reserved_attrs),
	NUMBER("cpu_total_compute", cpu_total_mhz),
	NUMBER("memory_total_mb", memory_total_mb),
	CALL("cgroup_parent", read_cgroup_parent),
	CALL("max_kill_timeout", read_max_kill_timeout),
	UNUSED_AS("alloc_dir", "has no effect: allocations live in <data_dir>/alloc"),
	UNUSED_AS("state_dir", "has no effect: state lives in <data_dir>/state"),
	UNUSED("artifact"),
	UNUSED("bind_wildcard_default_host_network"),
	UNUSED("bridge_network_hairpin_mode"),
	UNUSED("bridge_network_name"),
	UNUSED("bridge_network_subnet"),
	UNUSED("client_max_port"),
	UNUSED("client_min_port"),
	UNUSED("cni_config_dir"),
	UNUSED("cni_path"),
	UNUSED("cpu_disable_dmidecode"),
	UNUSED("disable_remote_exec"),
	UNUSED("disk_free_mb"),
	UNUSED("disk_total_mb"),
	UNUSED("drain_on_shutdown"),
	UNUSED("gc_disk_usage_threshold"),
	UNUSED("gc_inode_usage_threshold"),
	UNUSED("gc_interval"),
	UNUSED("gc_max_allocs"),
	UNUSED("gc_parallel_destroys"),
	UNUSED("host_network"),
	UNUSED("max_dynamic_port"),
	UNUSED("min_dynamic_port"),
	UNUSED("network_interface"),
	UNUSED("network_speed"),
	UNUSED("no_host_uuid"),
	UNUSED("nomad_service_discovery"),
	UNUSED("preferred_address_family"),
	UNUSED("reservable_cores"),
	UNUSED("template"),
	{ 0 },
};

/* --- plugins --- */

/* Nomad's "10,20-30". */
static int
read_ranges(struct reader *c, const struct hcl_node *node, uint32_t *n,
    struct config_range ranges[CONFIG_RANGES_MAX])
{
	const char *at = node->text;

	if (node->kind != HCL_STRING)
		return wrong(c, node, node->key, "a string such as \"0,1000-1999\"");
	for (at += strspn(at, ", "); *at; at += strspn(at, ", ")) {
		uint64_t low = 0, high = 0;
		bool good = read_number(&at, UINT32_MAX - 1, &low);

		high = low;
		if (good && *at == '-') {
			at++;
			good = read_number(&at, UINT32_MAX - 1, &high) && high >= low;
		}
		if (!good || (*at && *at != ',' && *at != ' '))
			return fail(c, node->at,
			    "%s: expected numbers and ranges as in \"0,1000-1999\", found "
			    "\"%.64s\"",
			    node->key, node->text);
		if (*n == CONFIG_RANGES_MAX)
			return fail(
			    c, node->at, "%s: expected at most 32 ranges in all", node->key);
		ranges[(*n)++] = (struct config_range){ (uint32_t)low, (uint32_t)high, c->driver };
	}
	return 0;
}

/* What an earlier file said about this driver's ids is replaced. */
static void
forget_ranges(const struct reader *c, uint32_t *n, struct config_range ranges[CONFIG_RANGES_MAX])
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < *n; i++)
		if (ranges[i].drivers != c->driver)
			ranges[kept++] = ranges[i];
	memset(&ranges[kept], 0, (*n - kept) * sizeof ranges[0]);
	*n = kept;
}

static int
read_denied_uids(struct reader *c, const struct hcl_node *node)
{
	forget_ranges(c, &c->policy->n_denied_uids, c->policy->denied_uids);
	return read_ranges(c, node, &c->policy->n_denied_uids, c->policy->denied_uids);
}

static int
read_denied_gids(struct reader *c, const struct hcl_node *node)
{
	forget_ranges(c, &c->policy->n_denied_gids, c->policy->denied_gids);
	return read_ranges(c, node, &c->policy->n_denied_gids, c->policy->denied_gids);
}

static int
read_driver_enabled(struct reader *c, const struct hcl_node *node)
{
	bool on = false;
	int r = get_bool(c, node, node->key, &on);

	if (r < 0)
		return r;
	c->policy->drivers = on ? c->policy->drivers | c->driver : c->policy->drivers & ~c->driver;
	return 0;
}

static int
add_cap(struct reader *c, const struct hcl_node *node)
{
	int cap = strcasecmp(node->text, "all") == 0 ? 0 : privs_cap_from_name(node->text);

	if (cap < 0)
		return fail(c, node->at,
		    "allow_caps: expected the name of a capability, found \"%.64s\"", node->text);
	c->policy->allow_caps |=
	    strcasecmp(node->text, "all") == 0 ? privs_all_caps() : 1ull << cap;
	return 0;
}

static int
read_allow_caps(struct reader *c, const struct hcl_node *node)
{
	c->policy->allow_caps = 0;
	return each_string(c, node, node->key, add_cap);
}

static int
read_ns_mode(struct reader *c, const struct hcl_node *node)
{
	bool *host = strcmp(node->key, "default_pid_mode") == 0 ? &c->config->default_pid_host
								: &c->config->default_ipc_host;

	if (node->kind != HCL_STRING)
		return wrong(c, node, node->key, "\"private\" or \"host\"");
	*host = strcmp(node->text, "host") == 0;
	if (!*host && strcmp(node->text, "private") != 0)
		return fail(c, node->at, "%s: expected \"private\" or \"host\", found \"%.64s\"",
		    node->key, node->text);
	return 0;
}

static int
read_no_pivot_root(struct reader *c, const struct hcl_node *node)
{
	bool on = false;
	int r = get_bool(c, node, node->key, &on);

	if (on)
		warn_at(c, node->key_at, node->key,
		    "has no effect: drover always changes the root by pivot_root");
	return r;
}

static const struct attr raw_exec_config_attrs[] = {
	CALL("enabled", read_driver_enabled),
	CALL("denied_host_uids", read_denied_uids),
	CALL("denied_host_gids", read_denied_gids),
	UNUSED_AS("no_cgroups", "has no effect: every task has a cgroup"),
	UNUSED_AS(
	    "denied_envvars", "has no effect: tasks inherit nothing of the agent's environment"),
	{ 0 },
};

static const struct attr exec_config_attrs[] = {
	CALL("enabled", read_driver_enabled),
	CALL("allow_caps", read_allow_caps),
	CALL("default_pid_mode", read_ns_mode),
	CALL("default_ipc_mode", read_ns_mode),
	CALL("no_pivot_root", read_no_pivot_root),
	CALL("denied_host_uids", read_denied_uids),
	CALL("denied_host_gids", read_denied_gids),
	{ 0 },
};

static const struct attr raw_exec_attrs[] = { BLOCK("config", raw_exec_config_attrs),
	UNUSED("args"), { 0 } };
static const struct attr exec_attrs[] = { BLOCK("config", exec_config_attrs), UNUSED("args"),
	{ 0 } };

static int
read_raw_exec(struct reader *c, const struct hcl_node *node)
{
	c->driver = DRIVER_BIT(DRIVER_RAW_EXEC);
	return read_blocks(c, node, raw_exec_attrs);
}

static int
read_exec(struct reader *c, const struct hcl_node *node)
{
	c->driver = DRIVER_BIT(DRIVER_EXEC);
	return read_blocks(c, node, exec_attrs);
}

static const struct attr plugin_attrs[] = {
	CALL("raw_exec", read_raw_exec),
	CALL("exec", read_exec),
	{ 0 },
};

static int
skip(struct reader *c, const struct hcl_node *node)
{
	(void)c;
	(void)node;
	return 0;
}

static const struct attr server_attrs[] = { CALL("enabled", read_server_enabled), { .fn = skip } };

#define UNUSED_SOCKET(key)                                                                         \
	UNUSED_AS(key, "has no effect: drover listens on its control socket only")

static const struct attr agent_attrs[] = {
	TEXT("region", region),
	TEXT("datacenter", datacenter),
	TEXT("name", name),
	CALL("data_dir", read_data_dir),
	CALL("log_level", read_log_level),
	BLOCK("client", client_attrs),
	BLOCK("plugin", plugin_attrs),
	BLOCK("server", server_attrs),
	UNUSED("acl"),
	UNUSED_SOCKET("addresses"),
	UNUSED_SOCKET("advertise"),
	UNUSED("audit"),
	UNUSED("autopilot"),
	UNUSED_SOCKET("bind_addr"),
	UNUSED("consul"),
	UNUSED("disable_anonymous_signature"),
	UNUSED("disable_update_check"),
	UNUSED("enable_debug"),
	UNUSED("enable_syslog"),
	UNUSED("http_api_response_headers"),
	UNUSED("leave_on_interrupt"),
	UNUSED("leave_on_terminate"),
	UNUSED("limits"),
	UNUSED("log_file"),
	UNUSED("log_include_location"),
	UNUSED("log_json"),
	UNUSED("log_rotate_bytes"),
	UNUSED("log_rotate_duration"),
	UNUSED("log_rotate_max_files"),
	UNUSED_AS("plugin_dir", "has no effect: drover's drivers are built in"),
	UNUSED_SOCKET("ports"),
	UNUSED("reporting"),
	UNUSED("sentinel"),
	UNUSED("syslog_facility"),
	UNUSED("telemetry"),
	UNUSED("tls"),
	UNUSED("ui"),
	UNUSED("vault"),
	{ 0 },
};

/* --- exported --- */

int
policy_mask_add(struct agent_policy *policy, const char *path)
{
	if (strlen(path) >= CONFIG_PATH_SIZE)
		return -ENAMETOOLONG;
	for (uint32_t i = 0; i < policy->n_masks; i++)
		if (strcmp(policy->masks[i], path) == 0)
			return 0;
	if (policy->n_masks == CONFIG_MASKS_MAX)
		return -ENOSPC;
	(void)strcpy(policy->masks[policy->n_masks++], path);
	return 0;
}

static void
default_policy(struct agent_policy *policy, bool dev)
{
	static const char *const chroot[] = { "/bin", "/etc", "/lib", "/lib32", "/lib64",
		"/run/resolvconf", "/run/systemd/resolve", "/sbin", "/usr" };
	static const char *const masks[] = { "/etc/shadow", "/etc/shadow-", "/etc/gshadow",
		"/etc/gshadow-", "/etc/ssl/private", "/etc/drover" };

	*policy = (struct agent_policy){ .magic = POLICY_MAGIC, .size = sizeof *policy };
	policy->drivers = DRIVER_BIT(DRIVER_EXEC) | (dev ? DRIVER_BIT(DRIVER_RAW_EXEC) : 0);
	/* semantics.md 10.3. SYS_ADMIN is what a CSI plugin needs, and it is root's power over the
	 * host (PRIVSEP.md). */
	policy->allow_caps = CAP_BIT(AUDIT_WRITE) | CAP_BIT(CHOWN) | CAP_BIT(DAC_OVERRIDE) |
			     CAP_BIT(FOWNER) | CAP_BIT(FSETID) | CAP_BIT(KILL) | CAP_BIT(MKNOD) |
			     CAP_BIT(NET_BIND_SERVICE) | CAP_BIT(SETFCAP) | CAP_BIT(SETGID) |
			     CAP_BIT(SETPCAP) | CAP_BIT(SETUID) | CAP_BIT(SYS_CHROOT) |
			     (dev ? CAP_BIT(SYS_ADMIN) : 0);
	for (size_t i = 0; i < ELEMENTSOF(chroot); i++) {
		(void)strcpy(policy->chroot_env[i].source, chroot[i]);
		(void)strcpy(policy->chroot_env[i].target, chroot[i]);
	}
	policy->n_chroot_env = ELEMENTSOF(chroot);
	for (size_t i = 0; i < ELEMENTSOF(masks); i++)
		(void)policy_mask_add(policy, masks[i]);
}

void
config_defaults(struct agent_config *config, struct agent_policy *policy, bool dev)
{
	default_policy(policy, dev);
	*config = (struct agent_config){
		.magic = CONFIG_MAGIC,
		.size = sizeof *config,
		.region = "global",
		.datacenter = "dc1",
		.node_pool = "default",
		.log_level = "info",
		.drivers = policy->drivers,
		.allow_caps = policy->allow_caps,
		.max_kill_timeout_ms = 30000,
		.dev = dev,
	};
}

int
config_parse(const char *text, size_t len, const char *name, struct agent_config *config,
    struct agent_policy *policy, void (*warn)(void *arg, const char *sentence), void *arg,
    struct err *e)
{
	struct reader c = {
		.name = name, .config = config, .policy = policy, .warn = warn, .arg = arg, .e = e
	};
	struct hcl_doc doc;
	int r;

	r = hcl_parse(text, len, name, &doc, e);
	if (r < 0)
		return -EINVAL;
	r = read_body(&c, doc.root, agent_attrs);
	hcl_doc_done(&doc);
	if (r < 0)
		return r;
	if (name[0] == '/' && policy_mask_add(policy, name) < 0 && warn)
		warn(arg,
		    "an exec task may see a configuration file: there are more than can be masked");
	policy->drivers &= ~policy->drivers_denied;
	config->drivers = policy->drivers;
	config->allow_caps = policy->allow_caps;
	return 0;
}
