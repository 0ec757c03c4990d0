// SPDX-License-Identifier: Apache-2.0
/* test_config.c: Nomad's agent configuration as HCL and JSON, and a sentence with a position for
 * each mistake. */
#include <errno.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/config_map.h"
#include "common/fd.h"
#include "common/privs.h"
#include "common/ipc.h"
#include "config/config.h"
#include "proto/ipc_records.h"
#include "hcl/hcl_tree.h"
#include "tests/unit/config_bed.h"
#include "tests/unit/config_wrong.h"
#include "tests/unit/unit.h"

#define CONTAINERS (1u << DRIVER_DOCKER | 1u << DRIVER_PODMAN)

START_TEST(defaults)
{
	parse_well("");
	ck_assert_str_eq(config.region, "global");
	ck_assert_str_eq(config.datacenter, "dc1");
	ck_assert_str_eq(config.node_pool, "default");
	ck_assert_str_eq(config.log_level, "info");
	ck_assert_str_eq(config.data_dir, "");
	ck_assert_uint_eq(config.n_servers, 0);
	ck_assert_uint_eq(config.max_kill_timeout_ms, 30000);
	ck_assert_uint_eq(config.csi_call_timeout_ms, 120000);
	ck_assert_uint_eq(config.gc_interval_ms, 60000);
	ck_assert_uint_eq(config.gc_disk_percent, 80);
	ck_assert_uint_eq(config.gc_inode_percent, 70);
	ck_assert_uint_eq(config.gc_max_allocs, 50);
	ck_assert_uint_eq(config.gc_parallel_destroys, 2);
	ck_assert(config.images.gc);
	ck_assert_uint_eq(config.images.gc_delay_ms, 180000);
	ck_assert_uint_eq(config.eval_gc_ms, 24 * 3600000);
	ck_assert_uint_eq(config.job_gc_ms, 4 * 3600000);
	ck_assert_uint_eq(policy.drivers, 1u << DRIVER_EXEC);
	ck_assert_uint_eq(
	    policy.allow_caps, CAP_BIT(AUDIT_WRITE) | CAP_BIT(KILL) | CAP_BIT(NET_BIND_SERVICE));
	ck_assert(!policy.allow_host_pid && !policy.allow_host_ipc);
	ck_assert_uint_eq(policy.n_chroot_env, 9);
	ck_assert_str_eq(policy.masks[0], "/etc/shadow");
	config_defaults(&config, &policy, true);
	ck_assert_uint_eq(policy.drivers, CONTAINERS | 1u << DRIVER_EXEC | 1u << DRIVER_RAW_EXEC);
	ck_assert_uint_ne(policy.allow_caps & CAP_BIT(SYS_ADMIN), 0);
	ck_assert(!policy.allow_host_pid && !policy.allow_host_ipc);
	ck_assert(config.dev);
}
END_TEST

static const char hcl[] =
    "# comment\n"
    "region = \"eu\" // and another\n"
    "/* over\n lines */ datacenter: \"dc2\"\n"
    "name = \"n\\u00e9 \\\"q\\\" \\\\ $${x} $5\"\n"
    "data_dir = \"/opt/drover/\"\n"
    "log_level = \"WARN\"\n"
    "health { address = \"[2001:db8::1]:4648\" token_file = \"/h/token\"\n"
    "  tls { ca_file = \"/h/ca\" cert_file = \"/h/cert\" key_file = \"/h/key\" } }\n"
    "client {\n"
    "  enabled = true\n"
    "  servers = [ \"a:4647\", \"b\", ]\n"
    "  node_class = \"big\" node_pool = \"gpu\"\n"
    "  meta { rack = 12, \"a.b\" = \"c\" }\n"
    "  meta = { on: true }\n"
    "  max_kill_timeout = \"1m30s\" csi_call_timeout = \"5m\"\n"
    "  gc_interval = \"5m\" gc_max_allocs = 7 gc_disk_usage_threshold = 66\n"
    "  gc_inode_usage_threshold = 55 gc_parallel_destroys = 3\n"
    "  cgroup_parent = \"nomad.slice\"\n"
    "  cpu_total_compute = 4000\n"
    "  memory_total_mb = \"2048\" disk_total_mb = 9000 disk_free_mb = 8000\n"
    "  reserved { cpu = 500 memory = 256 disk = 1024 reserved_ports = \"22,80-81\" }\n"
    "  network_interface = \"eth1\" min_dynamic_port = 25000 max_dynamic_port = 26000\n"
    "  host_network \"lan\" {\n    cidr = \"192.0.2.128/25\"\n    reserved_ports = \"443\"\n  }\n"
    "  host_network \"six\" {\n    cidr = \"2001:db8::/32\"\n    interface = \"eth2\"\n  }\n"
    "  host_volume \"data\" { path = \"/srv/data\" }\n"
    "  csi_plugin \"out\" {\n    type = \"node\"\n    socket = \"/run/out/csi.sock\"\n"
    "    health_timeout = \"45s\"\n  }\n"
    "  host_volume \"ro\" {\n    path = \"/srv/ro\"\n    read_only = true\n  }\n"
    "  artifact {\n    http_max_size = \"1.5 GiB\"\n    git_timeout = \"0s\"\n"
    "    decompression_file_count_limit = 0\n    set_environment_variables = \"A_b, C\"\n"
    "    filesystem_isolation_extra_paths = [\"d:rx:/opt\"]\n"
    "    file_directories = [\"/srv\"]\n  }\n"
    "  template {\n    function_denylist = [\"plugin\", \"writeToFile\", \"sockaddr\"]\n"
    "    wait {\n      min = \"0s\"\n      max = \"1m\"\n    }\n"
    "    wait_bounds { min = \"2s\" }\n  }\n"
    "  chroot_env { \"/bin\" = \"/bin\" \"/opt/tools\" = \"/tools\" }\n"
    "}\n"
    "server { eval_gc_threshold = \"2h\" job_gc_threshold = \"90m\" }\n"
    "plugin \"raw_exec\" { config { enabled = true denied_host_uids = \"0, 1000-1999\" } }\n"
    "plugin \"exec\" { config {\n"
    "  allow_caps = [\"net_raw\", \"CAP_SYS_ADMIN\"]\n"
    "  default_pid_mode = \"host\"\n"
    "} }\n";

static const char json[] =
    "{ \"region\": \"eu\", \"datacenter\": \"dc2\", \"name\": \"n\\u00e9 \\\"q\\\" \\\\ ${x} "
    "$5\",\n"
    "  \"data_dir\": \"/opt/drover\", \"log_level\": \"warn\",\n"
    "  \"health\": { \"address\": \"[2001:db8::1]:4648\", \"token_file\": \"/h/token\",\n"
    "    \"tls\": { \"ca_file\": \"/h/ca\", \"cert_file\": \"/h/cert\", \"key_file\": \"/h/key\" } "
    "},\n"
    "  \"server\": { \"eval_gc_threshold\": \"2h\", \"job_gc_threshold\": \"90m\" },\n"
    "  \"client\": [ { \"enabled\": true, \"servers\": [\"a:4647\", \"b\"], \"node_class\": "
    "\"big\",\n"
    "    \"node_pool\": \"gpu\", \"meta\": { \"rack\": 12, \"a.b\": \"c\", \"on\": true },\n"
    "    \"max_kill_timeout\": \"90s\", \"csi_call_timeout\": \"300s\", \"cgroup_parent\": "
    "\"/nomad.slice\", "
    "\"cpu_total_compute\": 4000,\n"
    "    \"gc_interval\": \"5m\", \"gc_max_allocs\": 7, \"gc_disk_usage_threshold\": 66,\n"
    "    \"gc_inode_usage_threshold\": 55, \"gc_parallel_destroys\": 3,\n"
    "    \"disk_total_mb\": 9000, \"disk_free_mb\": 8000,\n"
    "    \"memory_total_mb\": 2048, \"reserved\": { \"cpu\": 500, \"memory\": 256, \"disk\": 1024, "
    "\"reserved_ports\": \"22,80-81\" },\n"
    "    \"network_interface\": \"eth1\", \"min_dynamic_port\": 25000, \"max_dynamic_port\": "
    "26000,\n"
    "    \"host_network\": [ { \"lan\": { \"cidr\": \"192.0.2.128/25\", \"reserved_ports\": "
    "\"443\" } "
    "},\n"
    "      { \"six\": [ { \"cidr\": \"2001:db8::/32\", \"interface\": \"eth2\" } ] } ],\n"
    "    \"csi_plugin\": { \"out\": { \"type\": \"node\", \"socket\": "
    "\"/run/out/csi.sock\", \"health_timeout\": \"45s\" } },\n"
    "    \"artifact\": { \"http_max_size\": \"1610612736\", \"git_timeout\": \"0s\", "
    "\"decompression_file_count_limit\": 0, \"set_environment_variables\": \"A_b, C\", "
    "\"filesystem_isolation_extra_paths\": [\"d:rx:/opt\"], \"file_directories\": [\"/srv\"] },\n"
    "    \"template\": { \"function_blacklist\": [\"plugin\", \"writeToFile\", \"sockaddr\"],\n"
    "      \"wait\": { \"min\": \"0\", \"max\": \"60s\" }, \"wait_bounds\": [ { \"min\": \"2s\" } "
    "] },\n"
    "    \"host_volume\": [ { \"data\": [ { \"path\": \"/srv/data\" } ] },\n"
    "      { \"ro\": { \"path\": \"/srv/ro\", \"read_only\": true } } ],\n"
    "    \"chroot_env\": { \"/bin\": \"/bin\", \"/opt/tools\": \"/tools\" } } ],\n"
    "  \"plugin\": [ { \"raw_exec\": [ { \"config\": [ { \"enabled\": true,\n"
    "      \"denied_host_uids\": \"0,1000-1999\" } ] } ] },\n"
    "    { \"exec\": { \"config\": { \"allow_caps\": [\"NET_RAW\", \"cap_sys_admin\"],\n"
    "      \"default_pid_mode\": \"host\" } } } ], \"tls\": null }\n";

START_TEST(everything_in_either_language)
{
	static struct agent_config first;
	static struct agent_policy first_policy;

	parse_well(hcl);
	first = config;
	first_policy = policy;
	parse_well(json);
	ck_assert_mem_eq(&config, &first, sizeof config);
	ck_assert_mem_eq(&policy, &first_policy, sizeof policy);
	ck_assert_str_eq(config.region, "eu");
	ck_assert_str_eq(config.datacenter, "dc2");
	ck_assert_str_eq(config.name, "n\xc3\xa9 \"q\" \\ ${x} $5");
	ck_assert_str_eq(config.data_dir, "/opt/drover");
	ck_assert_str_eq(config.log_level, "warn");
	ck_assert_uint_eq(config.n_servers, 2);
	ck_assert_str_eq(config.servers[1], "b");
	ck_assert_str_eq(config.node_class, "big");
	ck_assert_str_eq(config.node_pool, "gpu");
	ck_assert_uint_eq(config.n_meta, 3);
	ck_assert_str_eq(config.meta[0].key, "rack");
	ck_assert_str_eq(config.meta[0].value, "12");
	ck_assert_str_eq(config.meta[2].value, "true");
	ck_assert_uint_eq(config.max_kill_timeout_ms, 90000);
	ck_assert_uint_eq(config.csi_call_timeout_ms, 300000);
	ck_assert_uint_eq(config.gc_interval_ms, 300000);
	ck_assert_uint_eq(config.gc_disk_percent, 66);
	ck_assert_uint_eq(config.gc_inode_percent, 55);
	ck_assert_uint_eq(config.gc_max_allocs, 7);
	ck_assert_uint_eq(config.eval_gc_ms, 7200000);
	ck_assert_uint_eq(config.job_gc_ms, 5400000);
	ck_assert_uint_eq(config.gc_parallel_destroys, 3);
	ck_assert_uint_eq(config.cpu_total_mhz, 4000);
	ck_assert_uint_eq(config.memory_total_mb, 2048);
	ck_assert_uint_eq(config.disk_total_mb, 9000);
	ck_assert_uint_eq(config.disk_free_mb, 8000);
	ck_assert_uint_eq(config.reserved_disk_mb, 1024);
	ck_assert_str_eq(config.cni.reserved_ports, "22,80-81");
	ck_assert_str_eq(config.network_interface, "eth1");
	ck_assert_str_eq(config.listen[LISTEN_HEALTH].text, "[2001:db8::1]:4648");
	ck_assert_int_eq(config.listen[LISTEN_HEALTH].family, AF_INET6);
	ck_assert_mem_eq(config.listen[LISTEN_HEALTH].sockaddr,
	    &((struct sockaddr_in6){ .sin6_family = AF_INET6,
		.sin6_port = htons(4648),
		.sin6_addr.s6_addr = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } }),
	    sizeof(struct sockaddr_in6));
	ck_assert_str_eq(config.files[FILE_HEALTH_CA], "/h/ca");
	ck_assert_str_eq(config.files[FILE_HEALTH_CERT], "/h/cert");
	ck_assert_str_eq(config.files[FILE_HEALTH_KEY], "/h/key");
	ck_assert_str_eq(config.files[FILE_HEALTH_TOKEN], "/h/token");
	ck_assert_uint_eq(config.min_dynamic_port, 25000);
	ck_assert_uint_eq(config.max_dynamic_port, 26000);
	ck_assert_uint_eq(config.n_host_networks, 2);
	ck_assert_str_eq(config.host_networks[0].reserved_ports, "443");
	ck_assert_uint_eq(config.host_networks[0].prefix_bits, 25);
	ck_assert_mem_eq(config.host_networks[0].prefix, "\300\0\2\200", 4);
	ck_assert_str_eq(config.host_networks[1].interface, "eth2");
	ck_assert_mem_eq(config.host_networks[1].prefix, "\x20\x01\x0d\xb8\0", 5);
	ck_assert_uint_eq(config.artifact.http_bytes, 1610612736);
	ck_assert_uint_eq(config.artifact.unpack_bytes, 100000000000);
	ck_assert_uint_eq(config.artifact.unpack_files, 0);
	ck_assert_uint_eq(config.artifact.git_ms, 1860000);
	ck_assert_uint_eq(config.artifact.http_ms, 1800000);
	ck_assert_str_eq(config.template.denied, "plugin writeToFile sockaddr");
	ck_assert_uint_eq(config.template.wait_min_ms, 0);
	ck_assert_uint_eq(config.template.wait_max_ms, 60000);
	ck_assert_uint_eq(config.template.bounds_min_ms, 2000);
	ck_assert_uint_eq(config.template.bounds_max_ms, UINT64_MAX);
	ck_assert_str_eq(config.artifact.variables, "A_b  C");
	ck_assert_str_eq(config.artifact.extra_paths[0], "d:rx:/opt");
	ck_assert_uint_eq(config.artifact.n_extra_paths, 1);
	ck_assert_str_eq(config.artifact.file_dirs[0], "/srv");
	ck_assert_uint_eq(config.artifact.n_file_dirs, 1);
	ck_assert_uint_eq(config.n_csi_plugins, 1);
	ck_assert_str_eq(config.csi_plugins[0].id, "out");
	ck_assert_uint_eq(config.csi_plugins[0].kind, PLUGIN_NODE);
	ck_assert_uint_eq(config.csi_plugins[0].health_timeout_ms, 45000);
	ck_assert_uint_eq(policy.n_csi_plugins, 1);
	ck_assert_str_eq(policy.csi_plugins[0].socket, "/run/out/csi.sock");
	ck_assert_uint_eq(config.n_host_volumes, 2);
	ck_assert_str_eq(config.host_volumes[1].path, "/srv/ro");
	ck_assert(config.host_volumes[1].read_only && !config.host_volumes[0].read_only);
	ck_assert(config.default_pid_host && !config.default_ipc_host);
	ck_assert_str_eq(policy.cgroup_parent, "/nomad.slice");
	ck_assert_uint_eq(policy.n_host_volumes, 2);
	ck_assert_uint_eq(policy.n_chroot_env, 2);
	ck_assert_str_eq(policy.chroot_env[1].source, "/opt/tools");
	ck_assert_str_eq(policy.chroot_env[1].target, "/tools");
	ck_assert_uint_eq(policy.drivers, 1u << DRIVER_EXEC | 1u << DRIVER_RAW_EXEC);
	ck_assert_uint_eq(config.drivers, policy.drivers);
	ck_assert_uint_eq(policy.allow_caps, CAP_BIT(NET_RAW) | CAP_BIT(SYS_ADMIN));
	ck_assert_uint_eq(policy.n_denied_uids, 2);
	ck_assert_uint_eq(policy.denied_uids[1].low, 1000);
	ck_assert_uint_eq(policy.denied_uids[1].high, 1999);
	ck_assert_uint_eq(policy.denied_uids[1].drivers, 1u << DRIVER_RAW_EXEC);
}
END_TEST

START_TEST(a_later_file_overrides)
{
	static const char more[] =
	    "region = \"us\" name = \"\"\n"
	    "client { servers = [\"c\"] meta { rack = 13 } host_volume \"ro\" { path = \"/other\" "
	    "} }\n"
	    "plugin \"raw_exec\" { config { enabled = false denied_host_uids = \"5\" } }\n";

	parse_well(hcl);
	ck_assert_int_eq(parse_more(more, sizeof more - 1), 0);
	ck_assert_str_eq(config.region, "us");
	ck_assert_str_eq(config.datacenter, "dc2");
	ck_assert_str_eq(config.name, "n\xc3\xa9 \"q\" \\ ${x} $5"); /* not configured */
	ck_assert_uint_eq(config.n_servers, 1);
	ck_assert_uint_eq(config.n_meta, 3);
	ck_assert_str_eq(config.meta[0].value, "13");
	ck_assert_uint_eq(config.n_host_volumes, 2);
	ck_assert_str_eq(policy.host_volumes[1].path, "/other");
	ck_assert(!policy.host_volumes[1].read_only);
	ck_assert_uint_eq(policy.drivers, 1u << DRIVER_EXEC);
	ck_assert_uint_eq(policy.n_denied_uids, 1);
}
END_TEST

START_TEST(driver_lists)
{
	static const char enable[] =
	    "plugin \"raw_exec\" { config { enabled = true } }\n"
	    "plugin \"docker\" { config { enabled = true } }\n"
	    "plugin \"nomad-driver-podman\" { config { enabled = true } }\n";

	parse_well("client { options { \"driver.denylist\" = \"docker, raw_exec\" } }");
	ck_assert_int_eq(parse_more(enable, sizeof enable - 1), 0);
	ck_assert_uint_eq(policy.drivers, 1u << DRIVER_PODMAN | 1u << DRIVER_EXEC);
	parse_well("plugin \"raw_exec\" { config { enabled = true } }\n"
		   "plugin \"docker\" { config { enabled = true } }\n"
		   "client { options = { \"driver.allowlist\" = \"raw_exec,docker\" } }");
	ck_assert_uint_eq(policy.drivers, 1u << DRIVER_RAW_EXEC | 1u << DRIVER_DOCKER);
	ck_assert_uint_eq(config.drivers, policy.drivers);
}
END_TEST

START_TEST(removal_of_images)
{
	parse_well("plugin \"docker\" { config { gc { image = false image_delay = \"10m\" } } }");
	ck_assert(!config.images.gc);
	ck_assert_uint_eq(config.images.gc_delay_ms, 600000);
}
END_TEST

START_TEST(devices_of_containers)
{
	static const char more[] =
	    "plugin \"docker\" { config { allow_devices = [\"/dev/kvm\"] } }";
	const struct config_devices *docker = &policy.allow_devices[0];

	parse_well(
	    "plugin \"docker\" { config { allow_devices = [\"/dev/fuse\", \"/dev/dri/*\"] } }\n"
	    "plugin \"podman\" { config { allow_devices = [\"/dev/net/tun\"] } }");
	ck_assert_uint_eq(docker->n, 2);
	ck_assert_str_eq(docker->patterns[0], "fuse");
	ck_assert_str_eq(docker->patterns[1], "dri/*");
	ck_assert_str_eq(policy.allow_devices[1].patterns[0], "net/tun");
	ck_assert_mem_eq(config.allow_devices, policy.allow_devices, sizeof config.allow_devices);
	ck_assert_int_eq(parse_more(more, sizeof more - 1), 0);
	ck_assert_uint_eq(docker->n, 1);
	ck_assert_str_eq(docker->patterns[0], "kvm");
	ck_assert_uint_eq(policy.allow_devices[1].n, 1);
	parse_well("");
	ck_assert_uint_eq(docker->n + policy.allow_devices[1].n, 0);
}
END_TEST

START_TEST(all_caps)
{
	parse_well("plugin \"exec\" { config { allow_caps = [\"all\"] } }");
	ck_assert_uint_eq(policy.allow_caps, privs_all_caps());
	parse_well("plugin \"exec\" { config { allow_caps = [] } }");
	ck_assert_uint_eq(policy.allow_caps, 0);
}
END_TEST

START_TEST(host_modes)
{
	parse_well("plugin \"exec\" { config { default_pid_mode = \"host\" } }");
	ck_assert_int_eq(check_config(), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "which needs allow_host_pid = true"));
	parse_well("plugin \"exec\" { config {\n allow_host_ipc = true\n"
		   "default_ipc_mode = \"host\"\n } }");
	ck_assert(policy.allow_host_ipc && !policy.allow_host_pid);
	ck_assert(config.allow_host_ipc && !config.allow_host_pid);
	ck_assert_int_eq(check_config(), 0);
}
END_TEST

START_TEST(volumes_in_volumes)
{
	parse_well("client { host_volume \"out\" { path = \"/srv/a\" }\n"
		   "host_volume \"in\" { path = \"/srv/a/b\"\n read_only = true }\n"
		   "host_volume \"deep\" { path = \"/srv/a/b/c\" }\n"
		   "host_volume \"same\" { path = \"/srv/a\"\n read_only = true }\n"
		   "host_volume \"beside\" { path = \"/srv/ab\" }\n"
		   "host_volume \"ro\" { path = \"/ro\"\n read_only = true }\n"
		   "host_volume \"ro-in\" { path = \"/ro/in\" } }");
	ck_assert_int_eq(check_config(), 0);
	ck_assert_uint_eq(config.n_host_volumes, 5);
	ck_assert_uint_eq(policy.n_host_volumes, 5);
	ck_assert_mem_eq(config.host_volumes, policy.host_volumes, sizeof config.host_volumes);
	ck_assert_str_eq(policy.host_volumes[1].name, "same");
	ck_assert_str_eq(policy.host_volumes[4].name, "ro-in");
	parse_well("client { host_volume \"all\" { path = \"/\" }\n"
		   "host_volume \"in\" { path = \"/srv\" } }");
	ck_assert_int_eq(check_config(), 0);
	ck_assert_uint_eq(policy.n_host_volumes, 1);
}
END_TEST

START_TEST(a_place_and_what_was_expected)
{
	ck_assert_int_eq(parse(wrong[_i].text), -EINVAL);
	ck_assert_str_eq(e.msg, wrong[_i].says);
}
END_TEST

START_TEST(tokens_are_wanted_when_acl_says_so)
{
	parse_well("client { }\n");
	ck_assert(!config.acl_enabled);
	ck_assert_uint_eq(config.acl_ttl_ms, 30000);
	parse_well("acl { enabled = true token_ttl = \"5s\" }\n");
	ck_assert(config.acl_enabled);
	ck_assert_uint_eq(config.acl_ttl_ms, 5000);
	ck_assert_uint_eq(config.acl_expiration_min_ms, 60000);
	ck_assert_uint_eq(config.acl_expiration_max_ms, 86400000);
	parse_well(
	    "acl { token_min_expiration_ttl = \"30s\" token_max_expiration_ttl = \"48h\" }\n");
	ck_assert_uint_eq(config.acl_expiration_min_ms, 30000);
	ck_assert_uint_eq(config.acl_expiration_max_ms, 172800000);
	ck_assert_int_lt(parse("acl { token_max_expiration_ttl = 1 }"), 0);
	parse_well("acl { token_min_expiration_ttl = \"2h\" token_max_expiration_ttl = \"1h\" }");
	ck_assert_int_eq(check_config(), -EINVAL);
	ck_assert_int_lt(parse("acl { enabled = \"yes\" }"), 0);
	ck_assert_int_lt(parse("acl { token_ttl = 5 }"), 0);
}
END_TEST

START_TEST(what_is_not_known_is_a_warning)
{
	ck_assert_int_eq(parse("frob = 1\nadvertise { http = 5 }\nclient {\n  enabled = false\n  "
			       "no_host_uuid = true\n}\n"
			       "server {\n  enabled = true\n  bootstrap_expect = 1\n}\nplugin "
			       "\"java\" { x = 1 }\n"),
	    0);
	ck_assert_str_eq(warnings,
	    "a.hcl:1:1: 'frob' is unknown and has no effect\n"
	    "a.hcl:2:1: 'advertise' has no effect: drover tells nobody an address of its own\n"
	    "a.hcl:4:3: 'enabled' = false has no effect: drover is always a client\n"
	    "a.hcl:5:3: 'no_host_uuid' has no effect: the node id is random, and kept in "
	    "<data_dir>\n"
	    "a.hcl:8:3: 'enabled' = true has no effect: drover is a client, with an embedded "
	    "server if no "
	    "servers are configured\n"
	    "a.hcl:9:3: 'bootstrap_expect' has no effect: the embedded server is the only one, and "
	    "has "
	    "no such setting\n"
	    "a.hcl:11:8: 'java' has no effect: the drivers are exec, raw_exec, docker and podman, "
	    "jobs with others are refused\n");
}
END_TEST

START_TEST(a_file_is_masked_in_tasks)
{
	config_defaults(&config, &policy, false);
	reset_sink();
	ck_assert_int_eq(config_parse("", 0, "/etc/x.hcl", &config, &policy, &sink), 0);
	ck_assert_str_eq(policy.masks[policy.n_masks - 1], "/etc/x.hcl");
}
END_TEST

static unsigned
masks_of(const char *path)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < policy.n_masks; i++)
		n += strcmp(policy.masks[i], path) == 0;
	return n;
}

START_TEST(a_mask_follows_its_directory_to_another_place)
{
	static const char text[] = "client { chroot_env { \"/etc\" = \"/conf\" \"/\" = \"/host\" "
				   "\"/et\" = \"/x\" \"/etc/shadow\" = \"/y\" } }";

	config_defaults(&config, &policy, false);
	reset_sink();
	ck_assert_int_eq(
	    config_parse(text, strlen(text), "/srv/x.hcl", &config, &policy, &sink), 0);
	ck_assert_int_eq(check_config(), 0);
	ck_assert_uint_eq(masks_of("/etc/shadow"), 1);
	ck_assert_uint_eq(masks_of("/y"), 1);
	ck_assert_uint_eq(masks_of("/conf/shadow"), 1);
	ck_assert_uint_eq(masks_of("/host/etc/shadow"), 1);
	ck_assert_uint_eq(masks_of("/host/srv/x.hcl"), 1);
	ck_assert_uint_eq(masks_of("/xc/shadow"), 0);
}
END_TEST

START_TEST(more_files_than_can_be_masked_are_refused)
{
	char name[32];
	int r = 0;

	config_defaults(&config, &policy, false);
	reset_sink();
	for (int i = 0; i < CONFIG_MASKS_MAX && r == 0; i++) {
		(void)snprintf(name, sizeof name, "/f/%d.hcl", i);
		r = config_parse("", 0, name, &config, &policy, &sink);
	}
	ck_assert_int_eq(r, -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "too many paths to hide from exec tasks"));
}
END_TEST

START_TEST(limits)
{
	static char text[HCL_TREE_BYTES_MAX + 1];
	size_t len = 0;

	memset(text, ' ', sizeof text);
	config_defaults(&config, &policy, false);
	ck_assert_int_eq(parse_more(text, HCL_TREE_BYTES_MAX), 0);
	ck_assert_int_eq(parse_more(text, HCL_TREE_BYTES_MAX + 1), -EINVAL);
	/* As many nodes as the text can contain: more than the arena holds. */
	for (size_t i = 0; i < HCL_TREE_BYTES_MAX; i += 4)
		memcpy(text + i, "x=1\n", 4);
	ck_assert_int_eq(parse_more(text, HCL_TREE_BYTES_MAX), -EINVAL);
	ck_assert_msg(strstr(e.msg, "a.hcl:1:1: the document needs too much memory"), "%s", e.msg);
	text[len++] = 'a';
	text[len++] = '=';
	text[len++] = '[';
	while (len + 2 < HCL_TREE_BYTES_MAX) {
		text[len++] = '1';
		text[len++] = ',';
	}
	text[len++] = ']';
	ck_assert_int_eq(parse_more(text, len), -EINVAL);
	ck_assert_msg(strstr(e.msg, "too much memory"), "%s", e.msg);
	len = (size_t)snprintf(text, sizeof text, "client { meta {");
	for (int i = 0; i <= CONFIG_META_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof text - len, "k%d = 1\n", i);
	len += (size_t)snprintf(text + len, sizeof text - len, "} }");
	ck_assert_int_eq(parse_more(text, len), -EINVAL);
	ck_assert_msg(strstr(e.msg, "meta: expected at most 64 entries"), "%s", e.msg);
	len = (size_t)snprintf(text, sizeof text, "name = \"%0*d\"", CONFIG_NAME_SIZE, 0);
	ck_assert_int_eq(parse_more(text, len), -EINVAL);
	ck_assert_str_eq(e.msg, "a.hcl:1:8: name: expected at most 127 bytes");
}
END_TEST

/* Every prefix of a valid file is either valid or gives a sentence with a position. */
START_TEST(cut_at_each_length)
{
	for (int i = 0; i < 2; i++) {
		const char *text = i ? json : hcl;

		for (size_t len = 0; len < strlen(text); len++) {
			config_defaults(&config, &policy, false);
			warnings[0] = '\0';
			if (parse_more(text, len) < 0)
				ck_assert_msg(strncmp(e.msg, "a.hcl:", 6) == 0, "%s", e.msg);
			else
				ck_assert(i == 0 || len == 0 || text[len] == '\n');
		}
	}
}
END_TEST

START_TEST(records_are_mapped_only_whole)
{
	int fd, none = fd_memfd_sealed("x", "abc", 3);

	config_defaults(&config, &policy, false);
	fd = fd_memfd_sealed("config", &config, sizeof config);
	ck_assert_ptr_nonnull(config_map(fd, &e));
	ck_assert_ptr_null(policy_map(fd, &e));
	ck_assert_ptr_null(config_map(none, &e));
	ck_assert_ptr_null(config_map(-1, &e));
	(void)close(fd);
	(void)close(none);
	config.size--;
	fd = fd_memfd_sealed("config", &config, sizeof config);
	ck_assert_ptr_null(config_map(fd, &e));
	(void)close(fd);
	fd = fd_memfd_sealed("policy", &policy, sizeof policy);
	ck_assert_ptr_nonnull(policy_map(fd, &e));
	(void)close(fd);
}
END_TEST

START_TEST(all_errors_are_reported_with_their_lines)
{
	ck_assert_int_eq(parse("region = 5.x\n"), -EINVAL);
	ck_assert_uint_eq(sink.n_errors, 1);
	ck_assert_int_eq(
	    parse("log_level = \"loud\"\nclient {\n\tservers = 1\n\treserved { cpu = -1 }\n"
		  "}\ndata_dir = \"x\"\n"),
	    -EINVAL);
	ck_assert_uint_eq(sink.n_errors, 4);
	ck_assert_str_eq(shown,
	    "a.hcl:1:13: log_level: expected error, warn, info, debug or trace, found \"loud\"\n"
	    "  1 | log_level = \"loud\"\n"
	    "    |             ^^^^^^");
	ck_assert_int_eq(parse("clinet { }\nclient { sever_join { } }\n"), 0);
	ck_assert_str_eq(warnings,
	    "a.hcl:1:1: 'clinet' is unknown and has no effect: did you mean \"client\"?\n"
	    "a.hcl:2:10: 'sever_join' is unknown and has no effect: did you mean "
	    "\"server_join\"?\n");
}
END_TEST

START_TEST(the_number_of_reported_problems_is_bounded)
{
	static char text[200 * 4];

	for (size_t i = 0; i + 4 <= sizeof text; i += 4)
		memcpy(text + i, "x=1\n", 4);
	config_defaults(&config, &policy, false);
	warnings[0] = '\0';
	ck_assert_int_eq(parse_more(text, sizeof text), 0);
	ck_assert_uint_eq(sink.n_problems, CONFIG_PROBLEMS_MAX);
}
END_TEST

START_TEST(acl_works_with_and_without_servers)
{
	parse_well("acl { enabled = true }");
	ck_assert_int_eq(check_config(), 0);
	parse_well("acl { enabled = true } client { servers = [\"a\"] }");
	ck_assert_int_eq(check_config(), 0);
	parse_well("tls { rpc = true }");
	ck_assert_int_eq(check_config(), -EINVAL);
	ck_assert_uint_eq(sink.n_errors, 3);
}
END_TEST

START_TEST(the_start_and_the_end)
{
	parse_well("");
	ck_assert_str_eq(config.runtime_dir, "/run/drover");
	ck_assert_uint_eq(config.drain_deadline_ms, 3600000);
	ck_assert(!config.drain_on_shutdown && !config.disable_remote_exec);
	ck_assert_int_eq(check_config(), 0);
	ck_assert_uint_eq(config.drain_signals, 0);
	parse_well(
	    "runtime_dir = \"/run/b\" leave_on_interrupt = true\n"
	    "client {\n  servers = [\"a\"]\n  disable_remote_exec = true\n"
	    "  drain_on_shutdown { deadline = \"0s\" force = true ignore_system_jobs = true }\n"
	    "  server_join { retry_max = 3 retry_interval = \"15s\" }\n}\n");
	ck_assert_str_eq(config.runtime_dir, "/run/b");
	ck_assert(config.disable_remote_exec);
	ck_assert_uint_eq(config.drain_deadline_ms, 0);
	ck_assert(config.drain_force && config.drain_spares_system);
	ck_assert_int_eq(check_config(), 0);
	ck_assert_uint_eq(config.drain_signals, 1u << SIGINT);
	ck_assert_uint_eq(config.retry_max, 3);
	ck_assert_uint_eq(config.retry_interval_ms, 15000);
	ck_assert_int_lt(parse("client { server_join { retry_interval = \"1ms\" } }"), 0);
	ck_assert_int_lt(parse("client { drain_on_shutdown = 1 }"), 0);
	parse_well("leave_on_terminate = true");
	ck_assert_int_eq(check_config(), 0);
	ck_assert_ptr_nonnull(
	    strstr(warnings, "have no effect without client { drain_on_shutdown"));
	parse_well("client { drain_on_shutdown { } }");
	ck_assert_int_eq(check_config(), 0);
	ck_assert_ptr_nonnull(
	    strstr(warnings, "drain_on_shutdown has no effect without leave_on_"));
}
END_TEST

START_TEST(templates_are_limited)
{
	parse_well("");
	ck_assert_str_eq(config.template.denied, "");
	ck_assert_uint_eq(config.template.wait_min_ms, 5000);
	ck_assert_uint_eq(config.template.wait_max_ms, 240000);
	ck_assert_uint_eq(config.template.bounds_min_ms, 0);
	ck_assert_int_eq(check_config(), 0);
	ck_assert_int_eq(parse("client { template { function_denylist = [] } }"), 0);
	ck_assert_ptr_nonnull(strstr(warnings, "plugin and writeToFile are always disabled"));
	ck_assert_int_eq(parse("client { template { function_denylist = [\"sprig_*\"] } }"), 0);
	ck_assert_ptr_nonnull(strstr(warnings, "plugin and writeToFile are always disabled"));
	parse_well("client { template { function_denylist = [\"*T*\", \"p*\", \"w*\"] } }");
	ck_assert_str_eq(config.template.denied, "*T* p* w*");
	ck_assert_str_eq(warnings, "");
	parse_well("client { template { disable_file_sandbox = false } }");
	ck_assert_str_eq(warnings, "");
	parse_well("client { template { wait { min = \"5m\" } } }");
	ck_assert_int_eq(check_config(), -EINVAL);
	parse_well("client { template { wait_bounds { min = \"5m\" max = \"1s\" } } }");
	ck_assert_int_eq(check_config(), -EINVAL);
}
END_TEST

START_TEST(telemetry_says_what_is_published)
{
	parse_well("");
	ck_assert(!config.telemetry.allocs && !config.telemetry.node);
	ck_assert(config.telemetry.prometheus && config.telemetry.filter_default);
	parse_well("telemetry { publish_allocation_metrics = true publish_node_metrics = true "
		   "prometheus_metrics = false filter_default = false }");
	ck_assert(config.telemetry.allocs && config.telemetry.node);
	ck_assert(!config.telemetry.prometheus && !config.telemetry.filter_default);
	parse_well("telemetry { prefix_filter = [\"+nomad.\", \"-nomad.client.host\"] "
		   "allowed_metadata_keys_in_metrics = [\"team\"] }");
	ck_assert_uint_eq(config.telemetry.n_filters, 2);
	ck_assert(config.telemetry.filters[0].allow && !config.telemetry.filters[1].allow);
	ck_assert_str_eq(config.telemetry.filters[1].prefix, "nomad.client.host");
	ck_assert_str_eq(config.telemetry.meta_keys[0], "team");
	parse_well("telemetry { statsd_address = \"[::1]:8125\" collection_interval = \"2s\" }");
	ck_assert_str_eq(config.telemetry.statsd_address, "[::1]:8125");
	ck_assert_uint_eq(config.telemetry.interval_ms, 2000);
	parse_well("telemetry { statsd_address = \"localhost:1\" }");
	ck_assert_int_lt(parse("telemetry { statsd_address = \"example.org:8125\" }"), 0);
	ck_assert_int_lt(parse("telemetry { statsd_address = \"127.0.0.1:0\" }"), 0);
	ck_assert_int_lt(parse("telemetry { statsd_address = \"127.0.0.1\" }"), 0);
	ck_assert_int_lt(parse("telemetry { statsd_address = \"[::1:8125\" }"), 0);
	ck_assert_int_lt(parse("telemetry { collection_interval = \"1ms\" }"), 0);
	ck_assert_int_lt(parse("telemetry { prefix_filter = [\"nomad.\"] }"), 0);
	ck_assert_int_eq(parse("telemetry { datadog_address = \"a:1\" }"), 0);
	ck_assert_ptr_nonnull(strstr(warnings, "DogStatsD"));
}
END_TEST

START_TEST(a_node_may_be_forgotten)
{
	parse_well("");
	ck_assert(!config.ephemeral && config.ephemeral_limit_ms == 300000);
	parse_well("client { servers = [\"a\"] ephemeral = true ephemeral_limit = \"10m\" }");
	ck_assert(config.ephemeral && config.ephemeral_limit_ms == 600000);
	ck_assert_int_eq(check_config(), 0);
	ck_assert_str_eq(warnings, "");
	ck_assert_int_lt(parse("client { ephemeral_limit = \"10ms\" }"), 0);
	parse_well("client { ephemeral = true }");
	ck_assert_int_eq(check_config(), 0);
	ck_assert_ptr_nonnull(strstr(warnings, "ephemeral has no effect without servers"));
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, a_node_may_be_forgotten);
	tcase_add_test(tc, telemetry_says_what_is_published);
	tcase_add_test(tc, all_errors_are_reported_with_their_lines);
	tcase_add_test(tc, the_number_of_reported_problems_is_bounded);
	tcase_add_test(tc, defaults);
	tcase_add_test(tc, everything_in_either_language);
	tcase_add_test(tc, templates_are_limited);
	tcase_add_test(tc, a_later_file_overrides);
	tcase_add_test(tc, driver_lists);
	tcase_add_test(tc, removal_of_images);
	tcase_add_test(tc, devices_of_containers);
	tcase_add_test(tc, all_caps);
	tcase_add_test(tc, host_modes);
	tcase_add_test(tc, volumes_in_volumes);
	tcase_add_loop_test(tc, a_place_and_what_was_expected, 0, (int)ELEMENTSOF(wrong));
	tcase_add_test(tc, tokens_are_wanted_when_acl_says_so);
	tcase_add_test(tc, what_is_not_known_is_a_warning);
	tcase_add_test(tc, a_file_is_masked_in_tasks);
	tcase_add_test(tc, a_mask_follows_its_directory_to_another_place);
	tcase_add_test(tc, more_files_than_can_be_masked_are_refused);
	tcase_add_test(tc, limits);
	tcase_add_test(tc, the_start_and_the_end);
	tcase_add_test(tc, cut_at_each_length);
	tcase_add_test(tc, acl_works_with_and_without_servers);
	tcase_add_test(tc, records_are_mapped_only_whole);
}

int
main(void)
{
	return unit_run("config", add);
}
