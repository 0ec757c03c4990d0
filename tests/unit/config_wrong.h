/* SPDX-License-Identifier: Apache-2.0 */
/* config_wrong.h: configurations that are refused, each with the place and the sentence. Runs in:
 * tests. */
#ifndef DROVER_TESTS_UNIT_CONFIG_WRONG_H
#define DROVER_TESTS_UNIT_CONFIG_WRONG_H

static const struct {
	const char *text, *says;
} wrong[] = {
	{ "region = \n", "a.hcl:2:1: expected a value (a text in quotes, a number, true, false, a "
			 "list or an object), found the end of the file" },
	{ "region \"x\"\n  a = 1", "a.hcl:1:11: expected \"=\" and a value, or \"{\" and a block, "
				   "found the end of the line" },
	{ "a = tru", "a.hcl:1:5: expected a value (a text in quotes, a number, true, false, a list "
		     "or an object), found \"tru\"" },
	{ "health { address = \"127.0.0.1\" }",
	    "a.hcl:1:20: health.address: expected an address and a port such as "
	    "\"127.0.0.1:4648\", \"[::1]:4648\" or \":4648\", found \"127.0.0.1\"" },
	{ "health { address = \"localhost:80\" }",
	    "a.hcl:1:20: health.address: expected an address and a port such as "
	    "\"127.0.0.1:4648\", \"[::1]:4648\" or \":4648\", found \"localhost:80\"" },
	{ "health { address = \"::1:80\" }",
	    "a.hcl:1:20: health.address: expected an address and a port such as "
	    "\"127.0.0.1:4648\", \"[::1]:4648\" or \":4648\", found \"::1:80\"" },
	{ "health { address = \"127.0.0.1:65536\" }",
	    "a.hcl:1:20: health.address: expected an address and a port such as "
	    "\"127.0.0.1:4648\", \"[::1]:4648\" or \":4648\", found \"127.0.0.1:65536\"" },
	{ "health { address = \"[::1]80\" }",
	    "a.hcl:1:20: health.address: expected an address and a port such as "
	    "\"127.0.0.1:4648\", \"[::1]:4648\" or \":4648\", found \"[::1]80\"" },
	{ "health { address = \"127.0.0.1:0\" }",
	    "a.hcl:1:20: health.address: expected an address and a port such as "
	    "\"127.0.0.1:4648\", \"[::1]:4648\" or \":4648\", found \"127.0.0.1:0\"" },
	{ "audit { sink \"a\" { type = \"syslog\" } }",
	    "a.hcl:1:27: type: expected \"file\", found \"syslog\"" },
	{ "audit { sink \"a\" { delivery_guarantee = \"maybe\" } }",
	    "a.hcl:1:41: delivery_guarantee: expected \"enforced\" or \"best-effort\", found "
	    "\"maybe\"" },
	{ "audit { sink \"a\" { mode = \"0777\" } }",
	    "a.hcl:1:27: mode: expected permissions such as \"0600\" or \"0640\", found \"0777\"" },
	{ "audit { sink \"a\" { path = \"audit.log\" } }",
	    "a.hcl:1:27: path: expected an absolute path, found \"audit.log\"" },
	{ "audit { sink \"a\" { rotate_bytes = -1 } }",
	    "a.hcl:1:35: rotate_bytes: expected a whole number from 0 to 1000000000000" },
	{ "audit { sink \"a\" { } sink \"b\" { } }",
	    "a.hcl:1:27: sink \"b\": there is one already, \"a\", and entries are written to one" },
	{ "audit { filter \"a\" { type = \"GRPCEvent\" } }",
	    "a.hcl:1:29: type: expected \"HTTPEvent\", found \"GRPCEvent\"" },
	{ "audit { filter \"a\" { stages = \"*\" } }",
	    "a.hcl:1:31: stages: expected a list of strings, found a string" },
	{ "plugin \"docker\" { config { allow_devices = [\"/etc/x\"] } }",
	    "a.hcl:1:45: allow_devices: expected at most 32 paths or patterns as in "
	    "\"/dev/dri/*\", "
	    "of at most 127 bytes after \"/dev/\" and without names that begin with a dot, found "
	    "\"/etc/x\"" },
	{ "plugin \"podman\" { config { allow_devices = [\"/dev/.*/mem\"] } }",
	    "a.hcl:1:45: allow_devices: expected at most 32 paths or patterns as in "
	    "\"/dev/dri/*\", "
	    "of at most 127 bytes after \"/dev/\" and without names that begin with a dot, found "
	    "\"/dev/.*/mem\"" },
	{ "client {\n", "a.hcl:2:1: expected \"}\", found the end of the file" },
	{ "client }", "a.hcl:1:8: expected \"=\" and a value, or \"{\" and a block, found \"}\"" },
	{ "}", "a.hcl:1:1: expected a setting or a block, found \"}\"" },
	{ "x = [1 2]", "a.hcl:1:8: expected \",\" or \"]\", found \"2\"" },
	{ "x = \"a\nb\"", "a.hcl:1:7: a text in quotes ends on its line: expected a quote; for a "
			  "text of several lines use a heredoc (<<EOF), for a new line \\n" },
	{ "x = \"a", "a.hcl:1:5: this text has no end: expected a quote" },
	{ "x = \"\\q\"", "a.hcl:1:6: unknown escape: a backslash in quotes is followed by n, r, t, "
			 "\\, \", u or U; for a backslash itself write two" },
	{ "x = \"\\u12g4\"", "a.hcl:1:6: \\u needs 4 hexadecimal digits" },
	{ "x = \"\\u0000\"", "a.hcl:1:5: a text cannot have a NUL character" },
	{ "x = \"\\ud800\"", "a.hcl:1:6: this escape is not a character of Unicode" },
	{ "x = \"${y}\"",
	    "a.hcl:1:6: expressions do not exist here: write \"$${\" for the text \"${\"" },
	{ "x = <<E\n${y}\nE\n",
	    "a.hcl:2:1: expressions do not exist here: write \"$${\" for the text \"${\"" },
	{ "x = <<E\ny\n", "a.hcl:1:5: this heredoc has no end: expected a line with E alone" },
	{ "x = << E\ny\n", "a.hcl:1:5: expected a value (a text in quotes, a number, true, false, "
			   "a list or an object), found \"<\"" },
	{ "x = 012", "a.hcl:1:5: expected a number without a leading zero, found \"012\"" },
	{ "x = 1.", "a.hcl:1:6: expected the end of the number, found \".\"" },
	{ "x = 5s", "a.hcl:1:6: expected the end of the number, found \"s\"" },
	{ "/* x", "a.hcl:1:1: this comment has no end: expected */" },
	{ "a = 1\n\xff", "a.hcl:2:1: expected UTF-8 text, found an invalid byte" },
	{ "a = \x01", "a.hcl:1:5: expected a value (a text in quotes, a number, true, false, a "
		      "list or an object), found control character 0x01" },
	{ "{\"a\": 1,}", "a.hcl:1:9: expected \"}\" or a key in quotes, found \"}\"" },
	{ "{\"a\": [1,]}", "a.hcl:1:10: expected a value (a text in quotes, a number, true, false, "
			   "a list or an object), found \"]\"" },
	{ "{\"a\" 1}", "a.hcl:1:6: expected \":\" and a value, found \"1\"" },
	{ "{\"a\": 1 \"b\": 2}", "a.hcl:1:9: expected \",\" or \"}\", found a quoted text" },
	{ "{} x", "a.hcl:1:4: expected the end of the file, found \"x\"" },
	{ "a=[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1",
	    "a.hcl:1:35: this is nested more than 32 levels deep" },
	{ "region = 5\nregion = 6", "a.hcl:2:1: 'region' occurs twice" },
	{ "region = [1]", "a.hcl:1:10: region: expected a string, found a list" },
	{ "region = \"a\\nb\"",
	    "a.hcl:1:10: region: expected a string without control characters" },
	{ "client = 5", "a.hcl:1:10: client: expected a block, found a number" },
	{ "client { meta { a = {} } }",
	    "a.hcl:1:21: a: expected a string, found a block or object" },
	{ "data_dir = \"opt\"", "a.hcl:1:12: data_dir: expected an absolute path, found \"opt\"" },
	{ "data_dir = \"/a/../b\"", "a.hcl:1:12: data_dir: expected a path without '.', '..' and "
				    "empty parts, found \"/a/../b\"" },
	{ "log_level = \"loud\"",
	    "a.hcl:1:13: log_level: expected error, warn, info, debug or trace, found \"loud\"" },
	{ "client { max_kill_timeout = 5 }",
	    "a.hcl:1:29: max_kill_timeout: expected a duration such as \"30s\", found a number" },
	{ "client { max_kill_timeout = \"5 s\" }",
	    "a.hcl:1:29: max_kill_timeout: duration '5 s' has an unknown unit ' s' (known: ns, us, "
	    "ms, s, m, h)" },
	{ "client { max_kill_timeout = \"-5s\" }",
	    "a.hcl:1:29: max_kill_timeout: expected a duration of at least 1ms, found \"-5s\"" },
	{ "client { csi_call_timeout = \"999ms\" }",
	    "a.hcl:1:29: csi_call_timeout: expected a duration of at least 1000ms, found "
	    "\"999ms\"" },
	{ "client { csi_call_timeout = \"31m\" }",
	    "a.hcl:1:29: csi_call_timeout: expected a duration of at most 30m, found \"31m\"" },
	{ "client { artifact { http_max_size = \"1 XB\" } }",
	    "a.hcl:1:37: http_max_size: expected a size such as \"100GB\", found a string" },
	{ "client { artifact { http_max_size = 5 } }",
	    "a.hcl:1:37: http_max_size: expected a size such as \"100GB\", found a number" },
	{ "client { artifact { http_read_timeout = \"900h\" } }",
	    "a.hcl:1:41: http_read_timeout: expected a duration of at most 24 days, found "
	    "\"900h\"" },
	{ "client { artifact { set_environment_variables = \"A=b\" } }",
	    "a.hcl:1:49: set_environment_variables: expected at most 16 names of variables, with "
	    "commas between them, found a string" },
	{ "client { artifact { filesystem_isolation_extra_paths = [\"/opt\"] } }",
	    "a.hcl:1:57: filesystem_isolation_extra_paths: expected a text such as "
	    "\"d:rx:/opt/git\", found \"/opt\"" },
	{ "client { artifact { file_directories = [\"srv\"] } }",
	    "a.hcl:1:41: file_directories: expected an absolute path, found \"srv\"" },
	{ "client { artifact { filesystem_isolation_extra_paths = [\"d:rx:opt\"] } }",
	    "a.hcl:1:57: filesystem_isolation_extra_paths: expected an absolute path, found "
	    "\"opt\"" },
	{ "client { enabled = \"maybe\" }",
	    "a.hcl:1:20: enabled: expected true or false, found \"maybe\"" },
	{ "client { servers = \"a\" }",
	    "a.hcl:1:20: servers: expected a list of strings, found a string" },
	{ "client { servers = [\"a\", 5] }",
	    "a.hcl:1:26: servers: expected a string, found a number" },
	{ "client { servers = [\"a b\"] }",
	    "a.hcl:1:21: servers: expected the address of a server, found \"a b\"" },
	{ "client { reserved { cpu = -1 } }",
	    "a.hcl:1:27: cpu: expected a whole number from 0 to 1000000000, found '-1'" },
	{ "client { reserved { cpu = 1.5 } }",
	    "a.hcl:1:27: cpu: expected a whole number from 0 to 1000000000, found '1.5'" },
	{ "client { reserved { cpu = 99999999999999999999 } }",
	    "a.hcl:1:27: cpu: expected a whole number from 0 to 1000000000, found "
	    "'99999999999999999999'" },
	{ "client { reserved { reserved_ports = \"22,0\" } }",
	    "a.hcl:1:38: reserved_ports: expected ports and ranges of them as in "
	    "\"22,8500-8600\", found \"22,0\"" },
	{ "client { reserved { reserved_ports = \"9-8\" } }",
	    "a.hcl:1:38: reserved_ports: expected ports and ranges of them as in "
	    "\"22,8500-8600\", found \"9-8\"" },
	{ "client { max_dynamic_port = 65536 }",
	    "a.hcl:1:29: max_dynamic_port: expected a whole number from 0 to 65535, found "
	    "'65536'" },
	{ "client { network_interface = \"../eth0\" }",
	    "a.hcl:1:30: network_interface: \"../eth0\" is not the name of an interface" },
	{ "client { host_network \"default\" { } }",
	    "a.hcl:1:23: host_network: \"default\" is not a valid name (letters, digits, '-', '_', "
	    "'.'; \"default\" is reserved for network_interface)" },
	{ "client { host_network \"a\" { cidr = \"192.0.2.0\" } }",
	    "a.hcl:1:36: cidr: expected a network such as \"192.0.2.0/24\", found "
	    "\"192.0.2.0\"" },
	{ "client { host_network \"a\" { cidr = \"192.0.2.0/33\" } }",
	    "a.hcl:1:36: cidr: expected a network such as \"192.0.2.0/24\", found "
	    "\"192.0.2.0/33\"" },
	{ "client { host_volume \"a\" { } }", "a.hcl:1:22: host_volume \"a\": expected a path" },
	{ "client { host_volume \"../a\" { path = \"/a\" } }",
	    "a.hcl:1:22: host_volume: \"../a\" is not a valid name (letters, digits, '-', '_', "
	    "'.', an index such as [0])" },
	{ "client { host_volume { path = \"/a\" } }",
	    "a.hcl:1:31: host_volume: expected a name and a block with path and read_only, found a "
	    "string" },
	{ "client { template { function_denylist = [\"a b\"] } }",
	    "a.hcl:1:42: function_denylist: \"a b\" is no function" },
	{ "client { template { wait { min = 5 } } }",
	    "a.hcl:1:34: min: expected a duration such as \"30s\", found a number" },
	{ "client { chroot_env { \"etc\" = \"/etc\" } }",
	    "a.hcl:1:23: chroot_env: expected an absolute path, found \"etc\"" },
	{ "client { chroot_env { \"/etc\" = \"/\" } }",
	    "a.hcl:1:32: /etc: expected a path below the task's root" },
	{ "client { cgroup_parent = \"../x\" }",
	    "a.hcl:1:26: cgroup_parent: expected a path without '.', '..' and empty parts, found "
	    "\"/../x\"" },
	{ "plugin \"exec\" { config { allow_caps = [\"foo\"] } }",
	    "a.hcl:1:40: allow_caps: expected the name of a capability, found \"foo\"" },
	{ "plugin \"exec\" { config { default_pid_mode = \"x\" } }",
	    "a.hcl:1:45: default_pid_mode: expected \"private\" or \"host\", found \"x\"" },
	{ "plugin \"raw_exec\" { config { denied_host_uids = \"5-1\" } }",
	    "a.hcl:1:49: denied_host_uids: expected numbers and ranges as in \"0,1000-1999\", "
	    "found \"5-1\"" },
	{ "plugin \"raw_exec\" { config { denied_host_gids = \"4294967295\" } }",
	    "a.hcl:1:49: denied_host_gids: expected numbers and ranges as in \"0,1000-1999\", "
	    "found \"4294967295\"" },
};

#endif
