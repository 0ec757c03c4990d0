// SPDX-License-Identifier: Apache-2.0
/* test_config_listen.c: the configuration of TCP addresses, and of the keys of both sides. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/ipc.h"
#include "config/config.h"
#include "tests/unit/config_bed.h"
#include "tests/unit/unit.h"

static int
check_of(const char *text)
{
	parse_well(text);
	return check_config();
}

START_TEST(the_api_over_tcp)
{
	static const char tls[] =
	    "tls { http = true verify_https_client = true ca_file = \"/t/ca\"\n"
	    "  cert_file = \"/t/cert\" key_file = \"/t/key\" }\n";
	char text[512];

	ck_assert_int_eq(check_of("bind_addr = \"192.0.2.7\"\n"), 0);
	ck_assert_uint_eq(config.listen[LISTEN_API].len, 0);
	(void)snprintf(text, sizeof text, "bind_addr = \"192.0.2.7\" ports { http = 80 }\n%s", tls);
	ck_assert_int_eq(check_of(text), 0);
	ck_assert_str_eq(config.listen[LISTEN_API].text, "192.0.2.7:80");
	ck_assert_uint_eq(config.files_of[IPC_LISTENER],
	    1u << FILE_TLS_CA | 1u << FILE_TLS_CERT | 1u << FILE_TLS_KEY);
	ck_assert_uint_eq(config.files_of[IPC_HEARTBEAT], 0);
	(void)snprintf(text, sizeof text, "addresses { http = \"::1\" }\n%s", tls);
	ck_assert_int_eq(check_of(text), 0);
	ck_assert_str_eq(config.listen[LISTEN_API].text, "[::1]:4646");
	ck_assert_int_eq(check_of("addresses { http = \"::1\" } acl { enabled = true }\n"), 0);
	ck_assert_uint_eq(config.files_of[IPC_LISTENER], 0);
	ck_assert_int_eq(
	    check_of("addresses { http = \"::2\" } acl { enabled = true }\n"), -EINVAL);
	ck_assert_int_eq(check_of("addresses { http = \"::1\" }\n"), -EINVAL);
}
END_TEST

START_TEST(servers_to_join_and_their_tls)
{
	bool masked = false;

	parse_well("client { servers = [\"a\", \"b:1\"] server_join { retry_join = [\"c\"] } }\n"
		   "tls { rpc = true verify_server_hostname = true ca_file = \"/t/ca.pem\"\n"
		   "  cert_file = \"/t/cert.pem\" key_file = \"/t/key.pem\" }\n");
	ck_assert_uint_eq(config.n_servers, 3);
	ck_assert_str_eq(config.servers[1], "b:1");
	ck_assert_str_eq(config.servers[2], "c");
	ck_assert(config.tls_rpc && config.tls_verify_server_hostname);
	ck_assert_str_eq(config.files[FILE_TLS_CA], "/t/ca.pem");
	ck_assert_str_eq(config.files[FILE_TLS_CERT], "/t/cert.pem");
	ck_assert_str_eq(config.files[FILE_TLS_KEY], "/t/key.pem");
	for (uint32_t i = 0; i < policy.n_masks; i++)
		masked |= strcmp(policy.masks[i], "/t/key.pem") == 0;
	ck_assert(masked);

	ck_assert_int_eq(
	    parse("client { server_join { retry_join = [\"provider=aws x=y\"] } }"), 0);
	ck_assert_uint_eq(config.n_servers, 0);
	ck_assert_ptr_nonnull(strstr(warnings, "no effect with a provider"));
	ck_assert_int_lt(parse("tls { key_file = \"key.pem\" }"), 0);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, the_api_over_tcp);
	tcase_add_test(tc, servers_to_join_and_their_tls);
}

int
main(void)
{
	return unit_run("config_listen", add);
}
