// SPDX-License-Identifier: Apache-2.0
/*
 * config.c: reads Nomad's agent configuration into the two records, with tables of the known blocks
 * and attributes. Runs in: the launcher's configuration child.
 */
#include "config/config.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/id.h"
#include "common/log.h"
#include "config/config_reader.h"

/* --- the agent --- */

static int
read_data_dir(struct config_reader *c, const struct hcl_node *node)
{
	return config_get_path(c, node, node->key, c->config->data_dir);
}

static int
read_runtime_dir(struct config_reader *c, const struct hcl_node *node)
{
	if (c->config->dev)
		config_warn(
		    c, node->key_at, node->key, "has no effect with -dev: it is <data_dir>/rt");
	return config_get_path(c, node, node->key, c->config->runtime_dir);
}

static int
read_log_level(struct config_reader *c, const struct hcl_node *node)
{
	char word[sizeof c->config->log_level];
	int r = config_get_text(c, node, node->key, word, sizeof word);

	if (r < 0)
		return r;
	for (char *at = word; *at; at++)
		if (*at >= 'A' && *at <= 'Z')
			*at += 'a' - 'A';
	if (log_level_parse(word) < 0)
		return config_fail(c, node->at,
		    "%s: expected error, warn, info, debug or trace, found \"%.64s\"", node->key,
		    word);
	memcpy(c->config->log_level, word, sizeof word);
	return 0;
}

static int
read_server_enabled(struct config_reader *c, const struct hcl_node *node)
{
	bool on = false;
	int r = config_get_bool(c, node, node->key, &on);

	if (on)
		config_warn(c, node->key_at, node->key,
		    "= true has no effect: drover is a client, with an embedded server if no "
		    "servers are "
		    "configured");
	return r;
}

/* --- client --- */

static int
read_client_enabled(struct config_reader *c, const struct hcl_node *node)
{
	bool on = true;
	int r = config_get_bool(c, node, node->key, &on);

	if (r == 0 && !on)
		config_warn(
		    c, node->key_at, "enabled", "= false has no effect: drover is always a client");
	return r;
}

static int
read_max_kill_timeout(struct config_reader *c, const struct hcl_node *node)
{
	return config_get_duration(c, node, 1, &c->config->max_kill_timeout_ms);
}

static int
read_ephemeral_limit(struct config_reader *c, const struct hcl_node *node)
{
	return config_get_duration(c, node, 1000, &c->config->ephemeral_limit_ms);
}

static int
read_gc_interval(struct config_reader *c, const struct hcl_node *node)
{
	return config_get_duration(c, node, 1, &c->config->gc_interval_ms);
}

static int
read_gc_threshold(struct config_reader *c, const struct hcl_node *node)
{
	bool eval = strcmp(node->key, "eval_gc_threshold") == 0;

	return config_get_duration(
	    c, node, 1, eval ? &c->config->eval_gc_ms : &c->config->job_gc_ms);
}

static int
read_cgroup_parent(struct config_reader *c, const struct hcl_node *node)
{
	char path[CONFIG_PATH_SIZE] = "/";
	int r = config_get_text(c, node, node->key, path + 1, sizeof path - 1);

	if (r < 0 || !path[1])
		return r;
	/* Both "nomad.slice" and "/nomad" are in use: the value is a path below the root of each
	 * hierarchy. */
	if (path[1] == '/')
		memmove(path, path + 1, sizeof path - 1);
	r = config_check_path(c, node->at, node->key, path);
	if (r == 0 && !path[1])
		r = config_fail(c, node->at, "%s: expected a cgroup below the root", node->key);
	if (r == 0)
		memcpy(c->policy->cgroup_parent, path, sizeof path);
	return r;
}

static int
read_meta(struct config_reader *c, const struct hcl_node *node)
{
	struct agent_config *config = c->config;
	uint32_t i = 0;
	int r;

	while (i < config->n_meta && strcmp(config->meta[i].key, node->key) != 0)
		i++;
	if (i == CONFIG_META_MAX)
		return config_fail(c, node->key_at, "meta: expected at most 64 entries");
	if (!node->key[0] || strlen(node->key) >= CONFIG_NAME_SIZE)
		return config_fail(c, node->key_at, "meta: expected a key of 1 to 127 bytes");
	r = config_get_text(
	    c, node, node->key, config->meta[i].value, sizeof config->meta[i].value);
	if (r < 0)
		return r;
	(void)strcpy(config->meta[i].key, node->key);
	if (i == config->n_meta)
		config->n_meta++;
	return 0;
}

static int
add_chroot(struct config_reader *c, const struct hcl_node *node)
{
	struct agent_policy *policy = c->policy;
	uint32_t i = policy->n_chroot_env;
	int r;

	if (i == CONFIG_CHROOT_MAX)
		return config_fail(c, node->key_at, "chroot_env: expected at most 64 entries");
	if (strlen(node->key) >= CONFIG_PATH_SIZE)
		return config_fail(
		    c, node->key_at, "chroot_env: expected a path of at most 255 bytes");
	r = config_check_path(c, node->key_at, "chroot_env", node->key);
	if (r < 0)
		return r;
	r = config_get_path(c, node, node->key, policy->chroot_env[i].target);
	if (r < 0)
		return r;
	if (!policy->chroot_env[i].target[1])
		return config_fail(
		    c, node->at, "%s: expected a path below the task's root", node->key);
	memset(policy->chroot_env[i].source, 0, CONFIG_PATH_SIZE);
	(void)strcpy(policy->chroot_env[i].source, node->key);
	policy->n_chroot_env++;
	return 0;
}

/* Replaces the default chroot_env; an empty block keeps it. */
static int
read_chroot_env(struct config_reader *c, const struct hcl_node *node)
{
	static const struct config_attr any[] = { { .fn = add_chroot } };

	if (node->kind == HCL_NODE_OBJECT && !node->first)
		return 0;
	c->policy->n_chroot_env = 0;
	return config_read_blocks(c, node, any);
}

static const struct config_attr meta_attrs[] = { { .fn = read_meta } };

static int
set_host_volume(
    struct config_reader *c, const struct hcl_node *node, const struct config_host_volume *volume)
{
	struct agent_config *config = c->config;
	uint32_t i = 0;

	while (
	    i < config->n_host_volumes && strcmp(config->host_volumes[i].name, volume->name) != 0)
		i++;
	if (i == CONFIG_VOLUMES_MAX)
		return config_fail(c, node->key_at, "host_volume: expected at most 64");
	config->host_volumes[i] = *volume;
	if (i == config->n_host_volumes)
		config->n_host_volumes++;
	memcpy(c->policy->host_volumes, config->host_volumes, sizeof config->host_volumes);
	c->policy->n_host_volumes = config->n_host_volumes;
	return 0;
}

/* Returns whether text is a name, or a name and an index such as "[0]" (per_alloc). */
static bool
is_volume_name(const char *text)
{
	char name[CONFIG_NAME_SIZE];
	size_t len = strcspn(text, "[");

	if (len >= sizeof name || strlen(text) >= sizeof name)
		return false;
	memcpy(name, text, len);
	name[len] = '\0';
	text += len;
	if (*text == '[') {
		size_t digits = strspn(text + 1, "0123456789");

		if (digits == 0 || strcmp(text + 1 + digits, "]") != 0)
			return false;
	}
	return name_is_component(name);
}

/* Reads host_volume "name" { path, read_only }; node is the object under the name. */
static int
read_host_volume(struct config_reader *c, const struct hcl_node *node)
{
	struct config_host_volume volume = { 0 };
	const struct hcl_node *body = node->kind == HCL_NODE_LIST ? node->first : node;
	int r = 0;

	if (!body || body->kind != HCL_NODE_OBJECT || (node->kind == HCL_NODE_LIST && body->next))
		return config_wrong(
		    c, node, "host_volume", "a name and a block with path and read_only");
	if (!is_volume_name(node->key))
		return config_fail(c, node->key_at,
		    "host_volume: \"%.64s\" is not a valid name (letters, digits, '-', '_', '.', "
		    "an index such as [0])",
		    node->key);
	(void)strcpy(volume.name, node->key);
	for (const struct hcl_node *n = body->first; n && r == 0; n = n->next) {
		if (strcmp(n->key, "path") == 0)
			r = config_get_path(c, n, n->key, volume.path);
		else if (strcmp(n->key, "read_only") == 0)
			r = config_get_bool(c, n, n->key, &volume.read_only);
		else
			config_warn(c, n->key_at, n->key, "is unknown and has no effect");
	}
	if (r < 0)
		return r;
	if (!volume.path[0])
		return config_fail(
		    c, node->key_at, "host_volume \"%s\": expected a path", volume.name);
	return set_host_volume(c, node, &volume);
}

static const struct config_attr host_volume_attrs[] = { { .fn = read_host_volume } };

static int
read_cores(struct config_reader *c, const struct hcl_node *node, char ret[CONFIG_NAME_SIZE])
{
	int r = config_get_text(c, node, node->key, ret, CONFIG_NAME_SIZE);

	return r == 0 && ret[strspn(ret, "0123456789,- ")]
		   ? config_wrong(c, node, node->key, "cores such as \"0-3,8\"")
		   : r;
}

static int
read_reserved_cores(struct config_reader *c, const struct hcl_node *node)
{
	return read_cores(c, node, c->config->reserved_cores);
}

static int
read_reservable_cores(struct config_reader *c, const struct hcl_node *node)
{
	return read_cores(c, node, c->config->reservable_cores);
}

static const struct config_attr reserved_attrs[] = {
	NUMBER("cpu", reserved_cpu_mhz),
	NUMBER("memory", reserved_memory_mb),
	NUMBER("disk", reserved_disk_mb),
	CALL("cores", read_reserved_cores),
	CALL("reserved_ports", config_read_reserved_ports),
	{ 0 },
};

static const struct config_attr client_attrs[] = {
	CALL("enabled", read_client_enabled),
	CALL("servers", config_read_servers),
	BLOCK("server_join", config_server_join_attrs),
	TEXT("node_class", node_class),
	BOOL("ephemeral", ephemeral),
	CALL("ephemeral_limit", read_ephemeral_limit),
	TEXT("node_pool", node_pool),
	BLOCK("meta", meta_attrs),
	BLOCK("options", config_options_attrs),
	BLOCK("host_volume", host_volume_attrs),
	BLOCK("csi_plugin", config_csi_plugin_attrs),
	BLOCK("artifact", config_artifact_attrs),
	BLOCK("template", config_template_attrs),
	BLOCK("host_network", config_host_network_attrs),
	CALL("network_interface", config_read_network_interface),
	PORT("min_dynamic_port", min_dynamic_port),
	PORT("max_dynamic_port", max_dynamic_port),
	{ .key = "chroot_env", .kind = ATTR_CALL, .fn = read_chroot_env },
	BLOCK("reserved", reserved_attrs),
	NUMBER("cpu_total_compute", cpu_total_mhz),
	NUMBER("memory_total_mb", memory_total_mb),
	NUMBER("disk_total_mb", disk_total_mb),
	NUMBER("disk_free_mb", disk_free_mb),
	CALL("cgroup_parent", read_cgroup_parent),
	CALL("max_kill_timeout", read_max_kill_timeout),
	CALL("csi_call_timeout", config_read_csi_call_timeout),
	CALL("gc_interval", read_gc_interval),
	NUMBER("gc_disk_usage_threshold", gc_disk_percent),
	NUMBER("gc_inode_usage_threshold", gc_inode_percent),
	NUMBER("gc_max_allocs", gc_max_allocs),
	NUMBER("gc_parallel_destroys", gc_parallel_destroys),
	CALL("reservable_cores", read_reservable_cores),
	BOOL("disable_remote_exec", disable_remote_exec),
	CALL("drain_on_shutdown", config_read_drain),
	UNUSED_AS("alloc_dir", "has no effect: allocations are in <data_dir>/alloc"),
	UNUSED_AS("alloc_mounts_dir", "has no effect: mounts are below <data_dir>/alloc"),
	UNUSED_AS(
	    "bind_wildcard_default_host_network", "has no effect: ports are bound by the tasks"),
	CALL("bridge_network_hairpin_mode", config_read_hairpin),
	CALL("bridge_network_name", config_read_bridge),
	CALL("bridge_network_subnet", config_read_bridge_subnet),
	CALL("bridge_network_subnet_ipv6", config_read_bridge_subnet6),
	UNUSED_AS("client_max_port", "has no effect: drover starts no plugins that need ports"),
	UNUSED_AS("client_min_port", "has no effect: drover starts no plugins that need ports"),
	CALL("cni_config_dir", config_read_cni_config_dir),
	CALL("cni_path", config_read_cni_path),
	UNUSED_AS("common_plugin_dir", "has no effect: jobs with secret blocks are refused"),
	UNUSED_AS("cpu_disable_dmidecode", "has no effect: drover never runs dmidecode"),
	UNUSED_AS("default_ineligible",
	    "has no effect: a new node is eligible: use drover node eligibility -disable"),
	UNUSED_AS("fingerprint", "has no effect: drover measures the node in its own way"),
	UNUSED_AS("gc_volumes_on_node_gc", "has no effect: dynamic host volumes are not supported"),
	UNUSED_AS(
	    "host_volume_plugin_dir", "has no effect: dynamic host volumes are not supported"),
	UNUSED_AS("host_volumes_dir", "has no effect: dynamic host volumes are not supported"),
	UNUSED_AS("log_file",
	    "has no effect: the log goes to stderr, which is the journal under systemd"),
	UNUSED_AS("network_speed", "has no effect: bandwidth is not scheduled"),
	UNUSED_AS("no_host_uuid", "has no effect: the node id is random, and kept in <data_dir>"),
	UNUSED_AS("node_max_allocs",
	    "has no effect: the number of allocations is limited by resources only"),
	UNUSED_AS("nomad_service_discovery",
	    "has no effect: services with provider nomad are always available"),
	UNUSED_AS("preferred_address_family",
	    "has no effect: set network_interface or host_network to choose an address"),
	UNUSED_AS("state_dir", "has no effect: state is in <data_dir>/state"),
	UNUSED_AS("stats", "has no effect: statistics are collected on request"),
	UNUSED_AS("users", "has no effect: tasks run as the user that they name"),
	{ 0 },
};

#define UNUSED_SERVER(key)                                                                         \
	UNUSED_AS(                                                                                 \
	    key, "has no effect: the embedded server is the only one, and has no such setting")

static const struct config_attr server_attrs[] = {
	CALL("enabled", read_server_enabled),
	CALL("eval_gc_threshold", read_gc_threshold),
	CALL("job_gc_threshold", read_gc_threshold),
	UNUSED_SERVER("acl_token_gc_threshold"),
	UNUSED_SERVER("authoritative_region"),
	UNUSED_SERVER("batch_eval_gc_threshold"),
	UNUSED_SERVER("bootstrap_expect"),
	UNUSED_SERVER("client_introduction"),
	UNUSED_SERVER("csi_plugin_gc_threshold"),
	UNUSED_SERVER("csi_volume_claim_gc_interval"),
	UNUSED_SERVER("csi_volume_claim_gc_threshold"),
	UNUSED_SERVER("data_dir"),
	UNUSED_SERVER("default_scheduler_config"),
	UNUSED_SERVER("deploy_query_rate_limit"),
	UNUSED_SERVER("deployment_gc_threshold"),
	UNUSED_SERVER("enable_event_broker"),
	UNUSED_SERVER("enabled_schedulers"),
	UNUSED_SERVER("encrypt"),
	UNUSED_SERVER("event_buffer_size"),
	UNUSED_SERVER("failover_heartbeat_ttl"),
	UNUSED_SERVER("heartbeat_grace"),
	UNUSED_SERVER("job_default_priority"),
	UNUSED_SERVER("job_gc_interval"),
	UNUSED_SERVER("job_max_count"),
	UNUSED_SERVER("job_max_priority"),
	UNUSED_SERVER("job_max_source_size"),
	UNUSED_SERVER("job_tracked_versions"),
	UNUSED_SERVER("license_path"),
	UNUSED_SERVER("max_heartbeats_per_second"),
	UNUSED_SERVER("min_heartbeat_ttl"),
	UNUSED_SERVER("node_gc_threshold"),
	UNUSED_SERVER("non_voting_server"),
	UNUSED_SERVER("num_schedulers"),
	UNUSED_SERVER("oidc_issuer"),
	UNUSED_SERVER("plan_apply_pipeline"),
	UNUSED_SERVER("plan_rejection_tracker"),
	UNUSED_SERVER("protocol_version"),
	UNUSED_SERVER("raft_boltdb"),
	UNUSED_SERVER("raft_logstore"),
	UNUSED_SERVER("raft_multiplier"),
	UNUSED_SERVER("raft_protocol"),
	UNUSED_SERVER("raft_snapshot_interval"),
	UNUSED_SERVER("raft_snapshot_threshold"),
	UNUSED_SERVER("raft_trailing_logs"),
	UNUSED_SERVER("redundancy_zone"),
	UNUSED_SERVER("rejoin_after_leave"),
	UNUSED_SERVER("retry_interval"),
	UNUSED_SERVER("retry_join"),
	UNUSED_SERVER("retry_max"),
	UNUSED_SERVER("root_key_gc_interval"),
	UNUSED_SERVER("root_key_gc_threshold"),
	UNUSED_SERVER("root_key_rotation_threshold"),
	UNUSED_SERVER("search"),
	UNUSED_SERVER("server_join"),
	UNUSED_SERVER("start_join"),
	UNUSED_SERVER("start_timeout"),
	UNUSED_SERVER("upgrade_version"),
	{ 0 },
};

/* --- acl --- */

static int
read_token_ttl(struct config_reader *c, const struct hcl_node *node)
{
	return config_get_duration(c, node, 1, &c->config->acl_ttl_ms);
}

static int
read_shortest_expiration(struct config_reader *c, const struct hcl_node *node)
{
	return config_get_duration(c, node, 1, &c->config->acl_expiration_min_ms);
}

static int
read_longest_expiration(struct config_reader *c, const struct hcl_node *node)
{
	return config_get_duration(c, node, 1, &c->config->acl_expiration_max_ms);
}

static const struct config_attr acl_attrs[] = {
	BOOL("enabled", acl_enabled),
	CALL("token_ttl", read_token_ttl),
	UNUSED_AS("policy_ttl", "has no effect: policies are kept as long as their token"),
	UNUSED_AS("role_ttl", "has no effect: roles are kept as long as their token"),
	UNUSED_AS("replication_token", "has no effect: tokens are kept by the servers"),
	CALL("token_max_expiration_ttl", read_longest_expiration),
	CALL("token_min_expiration_ttl", read_shortest_expiration),
	{ 0 },
};

static const struct config_attr agent_attrs[] = {
	TEXT("region", region),
	TEXT("datacenter", datacenter),
	TEXT("name", name),
	CALL("data_dir", read_data_dir),
	CALL("runtime_dir", read_runtime_dir),
	CALL("log_level", read_log_level),
	BOOL("leave_on_interrupt", leave_on_interrupt),
	BOOL("leave_on_terminate", leave_on_terminate),
	BLOCK("client", client_attrs),
	BLOCK("plugin", config_plugin_attrs),
	BLOCK("server", server_attrs),
	BLOCK("acl", acl_attrs),
	BLOCK("health", config_health_attrs),
	BLOCK("tls", config_tls_attrs),
	TEXT("bind_addr", bind_address),
	BLOCK("addresses", config_addresses_attrs),
	BLOCK("ports", config_ports_attrs),
	BLOCK("telemetry", config_telemetry_attrs),
	BLOCK("audit", config_audit_attrs),
	UNUSED_AS("advertise", "has no effect: drover tells nobody an address of its own"),
	UNUSED_AS("autopilot", "has no effect: there is one embedded server"),
	UNUSED_AS("consul", "has no effect: jobs with consul blocks are refused"),
	UNUSED_AS(
	    "disable_anonymous_signature", "has no effect: drover contacts nobody but its servers"),
	UNUSED_AS("disable_update_check", "has no effect: drover contacts nobody but its servers"),
	UNUSED_AS("enable_debug", "has no effect: use drover monitor -log-level=debug"),
	UNUSED_AS("enable_syslog",
	    "has no effect: the log goes to stderr, which is the journal under systemd"),
	UNUSED_AS("eventlog",
	    "has no effect: the log goes to stderr, which is the journal under systemd"),
	UNUSED_AS("http_api_response_headers",
	    "has no effect: the API is on the control socket, without added headers"),
	UNUSED_AS("keyring",
	    "has no effect: the embedded server encrypts its keys with the file seal.key"),
	UNUSED_AS("limits", "has no effect: the limits of the control socket are fixed"),
	UNUSED_AS("log_file",
	    "has no effect: the log goes to stderr, which is the journal under systemd"),
	UNUSED_AS("log_include_location", "has no effect: lines name the process"),
	UNUSED_AS("log_json",
	    "has no effect: lines have fields in the journal (journalctl -o json), and drover "
	    "monitor -log-json prints JSON"),
	UNUSED_AS("log_rotate_bytes",
	    "has no effect: the log goes to stderr, which is the journal under systemd"),
	UNUSED_AS("log_rotate_duration",
	    "has no effect: the log goes to stderr, which is the journal under systemd"),
	UNUSED_AS("log_rotate_max_files",
	    "has no effect: the log goes to stderr, which is the journal under systemd"),
	UNUSED_AS("plugin_dir", "has no effect: the drivers are built in"),
	UNUSED_AS("reporting", "has no effect: drover contacts nobody but its servers"),
	UNUSED_AS("rpc", "has no effect: the settings of connections to servers are fixed"),
	UNUSED_AS("sentinel", "has no effect: there are no policies of this kind"),
	UNUSED_AS("syslog_facility",
	    "has no effect: the log goes to stderr, which is the journal under systemd"),
	UNUSED_AS("ui", "has no effect: there is no web interface"),
	UNUSED_AS("vault", "has no effect: jobs with vault blocks are refused"),
	{ 0 },
};

/* --- exported --- */

static void
say_of_file(struct config_sink *sink, const char *name, const char *sentence)
{
	char text[ERR_MSG_SIZE];

	(void)snprintf(text, sizeof text, "%s: %s", name, sentence);
	config_say(sink, true, text);
}

static void
read_document(struct config_reader *c, const struct hcl_source *source)
{
	const struct hcl_node *root = hcl_tree_parse(c->h, source);

	if (root)
		(void)config_read_body(c, root, agent_attrs);
	for (const struct hcl_problem *p = root ? NULL : hcl_problems(c->h); p; p = p->next)
		config_say(c->sink, true, hcl_problem_text(c->h, p));
}

int
config_parse(const char *text, size_t len, const char *name, struct agent_config *config,
    struct agent_policy *policy, struct config_sink *sink)
{
	const struct hcl_source source = { name, text, len };
	struct config_reader c = { .config = config, .policy = policy, .sink = sink };
	unsigned n_errors = sink->n_errors;

	c.h = hcl_new(&hcl_tree_limits);
	read_document(&c, &source);
	hcl_free(c.h);
	if (name[0] == '/' && policy_mask_add(policy, name) < 0)
		say_of_file(sink, name,
		    "too many paths to hide from exec tasks: files, keys and password files are at "
		    "most 128");
	policy->drivers &= ~policy->drivers_denied;
	config->drivers = policy->drivers;
	config->allow_caps = policy->allow_caps;
	config->cni = policy->cni;
	config->allow_host_pid = policy->allow_host_pid;
	config->allow_host_ipc = policy->allow_host_ipc;
	config->allow_privileged = policy->allow_privileged;
	config->allow_host_userns = policy->allow_host_userns;
	memcpy(config->allow_devices, policy->allow_devices, sizeof config->allow_devices);
	return sink->n_errors > n_errors ? -EINVAL : 0;
}

int
config_is_name(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return entry->d_name[0] != '.' && dot &&
	       (strcmp(dot, ".hcl") == 0 || strcmp(dot, ".json") == 0);
}

int
config_compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}
