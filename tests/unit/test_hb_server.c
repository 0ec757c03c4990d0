// SPDX-License-Identifier: Apache-2.0
/* test_hb_server.c: names of servers, and which ones are tried. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "heartbeat/hb_server.h"
#include "tests/unit/unit.h"

/* Replaces the one in hb_main.c, which is not linked here. */
uint64_t hb_random(uint64_t below);

uint64_t
hb_random(uint64_t below)
{
	static uint64_t next;

	return next++ % below;
}

static void
expect(const char *name, const char *host, unsigned port)
{
	char got[HB_RPC_ADDR_SIZE];
	unsigned got_port = 0;

	ck_assert_int_eq(hb_server_split(name, got, &got_port), 0);
	ck_assert_str_eq(got, host);
	ck_assert_uint_eq(got_port, port);
}

START_TEST(names_are_split)
{
	expect("10.0.0.1", "10.0.0.1", 4647);
	expect("10.0.0.1:14647", "10.0.0.1", 14647);
	expect("nomad.service.consul", "nomad.service.consul", 4647);
	expect("nomad.service.consul:1", "nomad.service.consul", 1);
	expect("[fd00::1]:4648", "fd00::1", 4648);
	expect("[fd00::1]", "fd00::1", 4647);
	expect("fd00::1", "fd00::1", 4647);
}
END_TEST

START_TEST(what_is_no_name_is_refused)
{
	static const char *const bad[] = { "", ":4647", "a:", "a:0", "a:65536", "a:46x", "[fd00::1",
		"[]", "[fd00::1]4647", "[a]:" };
	char host[HB_RPC_ADDR_SIZE], longest[400];
	unsigned port;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_msg(hb_server_split(bad[i], host, &port) == -EINVAL, "%s", bad[i]);
	memset(longest, 'a', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	ck_assert_int_eq(hb_server_split(longest, host, &port), -EINVAL);
}
END_TEST

START_TEST(addresses_are_told_from_names)
{
	struct sockaddr_storage a;

	ck_assert_int_eq(hb_server_address("10.1.2.3", 4647, &a), 1);
	ck_assert_int_eq(a.ss_family, AF_INET);
	ck_assert_uint_eq(((struct sockaddr_in *)(void *)&a)->sin_port, htons(4647));
	ck_assert_int_eq(hb_server_address("fd00::1", 4647, &a), 1);
	ck_assert_int_eq(a.ss_family, AF_INET6);
	ck_assert_uint_eq(((struct sockaddr_in6 *)(void *)&a)->sin6_port, htons(4647));
	ck_assert_int_eq(hb_server_address("localhost", 4647, &a), 0);
	ck_assert_int_eq(hb_server_address("10.1.2", 4647, &a), 0);
}
END_TEST

static struct hb_servers servers;

START_TEST(a_list_is_replaced_when_it_differs)
{
	static struct agent_config config = { .n_servers = 3, .servers = { "a", "b", "a" } };
	static struct hb_rpc_node node = { .n_servers = 2, .servers = { "b", "a" } };
	char why[256];

	hb_servers_from_config(&servers, &config);
	ck_assert_uint_eq(servers.n, 2);
	(void)strcpy(hb_servers_find(&servers, "a")->why, "it is broken");
	ck_assert(!hb_servers_from_cluster(&servers, &node));
	hb_servers_why(&servers, why, sizeof why);
	ck_assert_str_eq(why, "a: it is broken");
	node.n_servers = 0;
	ck_assert(!hb_servers_from_cluster(&servers, &node));
	ck_assert_uint_eq(servers.n, 2);
	node = (struct hb_rpc_node){ .n_servers = 2, .servers = { "b", "c" } };
	ck_assert(hb_servers_from_cluster(&servers, &node));
	ck_assert_ptr_null(hb_servers_find(&servers, "a"));
	ck_assert_ptr_nonnull(hb_servers_find(&servers, "c"));
	hb_servers_why(&servers, why, sizeof why);
	ck_assert_str_eq(why, "no server has answered yet");
}
END_TEST

START_TEST(a_long_story_is_cut)
{
	static struct hb_rpc_node node = { .n_servers = HB_RPC_SERVERS };
	char why[64];

	for (unsigned i = 0; i < HB_RPC_SERVERS; i++)
		(void)snprintf(node.servers[i], sizeof node.servers[i], "server-%u", i);
	ck_assert(hb_servers_from_cluster(&servers, &node));
	for (unsigned i = 0; i < HB_RPC_SERVERS; i++)
		memset(servers.list[i].why, 'x', sizeof servers.list[i].why - 1);
	hb_servers_why(&servers, why, sizeof why);
	ck_assert_uint_eq(strlen(why), sizeof why - 1);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, names_are_split);
	tcase_add_test(tc, what_is_no_name_is_refused);
	tcase_add_test(tc, addresses_are_told_from_names);
	tcase_add_test(tc, a_list_is_replaced_when_it_differs);
	tcase_add_test(tc, a_long_story_is_cut);
}

int
main(void)
{
	return unit_run("hb_server", add);
}
