// SPDX-License-Identifier: Apache-2.0
/* test_port_taken.c: ports that programs have, by sockets of this test at loopback addresses. */
#include "supervisor/service/port_taken.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "tests/unit/unit.h"

/* The port of the last socket, for another one to have the same. */
static uint32_t port;

/* Returns a socket that is bound to the address, at `at` or, if that is 0, any free port. -1: this
 * machine has no IPv6. */
static int
make_socket(int family, int type, const char *address, uint32_t at, int only_ipv6)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)at) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((uint16_t)at) };
	socklen_t len = family == AF_INET ? sizeof four : sizeof six;
	void *sa = family == AF_INET ? (void *)&four : &six;
	int fd = socket(family, type | SOCK_CLOEXEC, 0), on = 1;

	ck_assert_int_eq(
	    inet_pton(family, address, family == AF_INET ? (void *)&four.sin_addr : &six.sin6_addr),
	    1);
	if (fd < 0 && family == AF_INET6)
		return -1;
	ck_assert(fd >= 0);
	if (type == SOCK_STREAM)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_ipv6, sizeof only_ipv6);
	if (bind(fd, sa, len) < 0) {
		ck_assert_msg(family == AF_INET6, "bind %s: %s", address, strerror(errno));
		(void)close(fd);
		return -1;
	}
	ck_assert_int_eq(getsockname(fd, sa, &len), 0);
	port = ntohs(family == AF_INET ? four.sin_port : six.sin6_port);
	if (type == SOCK_STREAM)
		ck_assert_int_eq(listen(fd, 1), 0);
	return fd;
}

/* Returns the sentence about the port at this address; "" if it is free. */
static const char *
ask(const char *ip, bool ipv6)
{
	static struct err e;
	struct port_wanted wanted[] = { { "other", "192.0.2.1", 1 }, { "web", ip, port } };
	int r;

	e = (struct err){ 0 };
	r = port_check_free(wanted, ELEMENTSOF(wanted), ipv6, &e);
	ck_assert_msg(r == (e.code ? -EADDRINUSE : 0), "%d: %s", r, e.msg);
	return e.msg;
}

#define ck_taken(ip, ipv6) ck_assert_str_ne(ask(ip, ipv6), "")
#define ck_free(ip, ipv6)  ck_assert_str_eq(ask(ip, ipv6), "")

START_TEST(an_address)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM };
	char wanted[256];

	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		cleanup_close int fd = make_socket(AF_INET, types[i], "127.0.0.1", 0, 0);

		ck_taken("", false);
		ck_taken("", true);
		(void)snprintf(wanted, sizeof wanted,
		    "port \"web\" (%u/%s at 127.0.0.1) is in use: a program of this machine, with "
		    "uid %u, has it at 127.0.0.1 and would",
		    port, i == 0 ? "tcp" : "udp", getuid());
		ck_assert_msg(strstr(ask("127.0.0.1", false), wanted) != NULL, "%s", wanted);
		ck_free("127.0.0.2", true);
		ck_free("::1", true);
		close_p(&fd);
		ck_free("", true);
	}
}
END_TEST

START_TEST(all_addresses)
{
	cleanup_close int fd = make_socket(AF_INET, SOCK_STREAM, "0.0.0.0", 0, 0);

	ck_assert(fd >= 0);
	ck_taken("127.0.0.1", false);
	ck_taken("127.0.0.2", false);
	ck_taken("", false);
	ck_free("::1", true);
}
END_TEST

START_TEST(ipv6)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM };

	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		cleanup_close int both = make_socket(AF_INET6, types[i], "::", 0, 0), only = -1,
				  mapped = -1;

		if (both < 0)
			return;
		ck_taken("127.0.0.1", false);
		ck_taken("", false);
		ck_taken("::1", true);
		ck_free("::1", false);
		ck_assert_msg(strstr(ask("127.0.0.1", false), "at [::]") != NULL, "the address");
		only = make_socket(AF_INET6, types[i], "::", 0, 1);
		ck_free("127.0.0.1", true);
		ck_free("", false);
		ck_taken("", true);
		ck_taken("::1", true);
		mapped = make_socket(AF_INET6, types[i], "::ffff:127.0.0.1", 0, 0);
		ck_taken("127.0.0.1", false);
		ck_taken("", false);
		ck_free("127.0.0.2", false);
		ck_free("::1", true);
	}
}
END_TEST

/* Both ends of a connection, and what TIME_WAIT keeps of it, when nobody listens any more. */
START_TEST(connections)
{
	cleanup_close int fd = make_socket(AF_INET, SOCK_STREAM, "127.0.0.1", 0, 0), far = -1;
	cleanup_close int near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr = { htonl(INADDR_LOOPBACK) } };
	uint32_t of_server = port;
	char byte;

	ck_assert_int_eq(connect(near, (const struct sockaddr *)&at, sizeof at), 0);
	far = accept(fd, NULL, NULL);
	ck_assert(far >= 0);
	close_p(&fd);
	ck_free("", true);
	/* The end that closes first has its address in TIME_WAIT. */
	close_p(&far);
	ck_assert_int_eq(read(near, &byte, 1), 0);
	close_p(&near);
	port = of_server;
	ck_free("", true);
}
END_TEST

START_TEST(udp_with_a_peer)
{
	cleanup_close int fd = make_socket(AF_INET, SOCK_DGRAM, "127.0.0.1", 0, 0);
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = { htonl(INADDR_LOOPBACK) }
	};

	ck_taken("", false);
	ck_assert_int_eq(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
	ck_free("", true);
}
END_TEST

START_TEST(many_sockets)
{
	int fds[900];
	uint32_t first = 0;

	for (size_t i = 0; i < ELEMENTSOF(fds); i++) {
		fds[i] = make_socket(AF_INET, SOCK_DGRAM, "127.0.0.1", 0, 0);
		first = i == 0 ? port : first;
	}
	ck_taken("", true);
	port = first;
	ck_taken("", true);
	for (size_t i = 0; i < ELEMENTSOF(fds); i++)
		(void)close(fds[i]);
	ck_free("", true);
}
END_TEST

static void
add_tests(TCase *tc)
{
	tcase_add_test(tc, an_address);
	tcase_add_test(tc, all_addresses);
	tcase_add_test(tc, ipv6);
	tcase_add_test(tc, connections);
	tcase_add_test(tc, udp_with_a_peer);
	tcase_add_test(tc, many_sockets);
}

int
main(void)
{
	return unit_run("port_taken", add_tests);
}
