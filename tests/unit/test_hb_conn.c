/* SPDX-License-Identifier: Apache-2.0 */
/* test_hb_conn.c: when a silent server counts as slow and as dead, with a simulated clock. Runs in:
 * unit tests. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "heartbeat/hb_conn.h"
#include "tests/unit/unit.h"

#define BEGIN 1000000 /* ms */

static int listener, peer;
static struct hb_conn *conn;

/* As in hb_link.c. */
static void
on_pong(struct hb_yamux *y, uint32_t value)
{
	conn->pinged_ms = 0;
	conn->proven = true;
}

static const struct hb_yamux_ops ops = { .on_pong = on_pong };
static const struct hb_conn_options options = { .ops = &ops };

static void
wait_for(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	ck_assert_int_eq(poll(&p, 1, 30000), 1);
}

/* A frame of the connection, not of a stream. */
struct seen_frame {
	uint8_t head[8];
	uint32_t value;
};

/* Reads this much as the server. */
static void
hears(void *ret, size_t len)
{
	ck_assert_int_eq(recv(peer, ret, len, MSG_WAITALL), (ssize_t)len);
}

static void
hears_nothing(void)
{
	uint8_t got;

	ck_assert_int_eq(recv(peer, &got, 1, MSG_DONTWAIT), -1);
	ck_assert_int_eq(errno, EAGAIN);
}

/* Reads a ping as the server; returns its value. */
static uint32_t
hears_ping(void)
{
	static const uint8_t ping[8] = { 0, 2, 0, 1 };
	struct seen_frame f;

	hears(&f, sizeof f);
	ck_assert(memcmp(f.head, ping, sizeof ping) == 0);
	return f.value;
}

/* Passes bytes from the server at that time. */
static void
says(const void *bytes, size_t len, uint64_t now_ms)
{
	ck_assert_int_eq(write(peer, bytes, len), (ssize_t)len);
	wait_for(conn->fd, POLLIN);
	hb_conn_ready(conn, &options, POLLIN, now_ms);
	ck_assert_uint_eq(conn->heard_ms, now_ms);
}

static void
answers(uint32_t value, uint64_t now_ms)
{
	struct seen_frame f = { .head = { 0, 2, 0, 2 }, .value = value };

	says(&f, sizeof f, now_ms);
}

static void
begin(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_storage address = { 0 };
	socklen_t len = sizeof at;
	struct err e = { 0 };

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(listener, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	memcpy(&address, &at, sizeof at);
	conn = hb_conn_new("server", &address, &options, BEGIN, &e);
	ck_assert_msg(conn != NULL, "%s", e.msg);
	wait_for(conn->fd, POLLOUT);
	peer = accept(listener, NULL, NULL);
	ck_assert_int_ge(peer, 0);
	hb_conn_ready(conn, &options, POLLOUT, BEGIN);
	ck_assert_int_eq(conn->state, HB_CONN_UP);
}

/* The server has answered the first ping, which follows the byte that selects the protocol. */
static void
begin_proven(void)
{
	uint8_t mode;

	begin();
	hears(&mode, 1);
	ck_assert_uint_eq(mode, HB_RPC_MULTIPLEX);
	answers(hears_ping(), BEGIN);
	ck_assert(conn->proven);
}

static void
end(void)
{
	hb_conn_free(conn);
	(void)close(peer);
	(void)close(listener);
}

/* The limits are far below the half minute that Nomad's own client waits. */
START_TEST(a_silent_server_is_asked_doubted_and_given_up)
{
	begin_proven();
	ck_assert_uint_eq(hb_conn_tick(conn, BEGIN + 1), BEGIN + 3000);
	ck_assert_uint_eq(hb_conn_tick(conn, BEGIN + 2999), BEGIN + 3000);
	hears_nothing();
	ck_assert_uint_eq(hb_conn_tick(conn, BEGIN + 3000), BEGIN + 5000);
	(void)hears_ping();
	ck_assert(!hb_conn_is_slow(conn, BEGIN + 4999));
	ck_assert(hb_conn_is_slow(conn, BEGIN + 5000));
	ck_assert_uint_eq(hb_conn_tick(conn, BEGIN + 5000), BEGIN + 13000);
	ck_assert_int_eq(conn->state, HB_CONN_UP);
	(void)hb_conn_tick(conn, BEGIN + 13000);
	ck_assert_int_eq(conn->state, HB_CONN_DEAD);
	ck_assert_str_eq(conn->why.msg, "no answer within 10 s");
	end();
}
END_TEST

START_TEST(a_late_answer_is_one)
{
	uint32_t value;

	begin_proven();
	(void)hb_conn_tick(conn, BEGIN + 3000);
	value = hears_ping();
	ck_assert(hb_conn_is_slow(conn, BEGIN + 12000));
	answers(value, BEGIN + 12000);
	ck_assert(!hb_conn_is_slow(conn, BEGIN + 14000));
	ck_assert_uint_eq(hb_conn_tick(conn, BEGIN + 14000), BEGIN + 15000);
	hears_nothing();
	(void)hb_conn_tick(conn, BEGIN + 15000);
	(void)hears_ping();
	end();
}
END_TEST

/* Any byte shows that the server is alive, even while a ping is unanswered. */
START_TEST(whatever_a_server_says_it_is_there)
{
	begin_proven();
	(void)hb_conn_tick(conn, BEGIN + 3000);
	(void)hears_ping();
	says("", 1, BEGIN + 6000);
	ck_assert(!hb_conn_is_slow(conn, BEGIN + 8000));
	ck_assert_uint_eq(hb_conn_tick(conn, BEGIN + 8000), BEGIN + 9000);
	ck_assert_int_eq(conn->state, HB_CONN_UP);
	end();
}
END_TEST

START_TEST(who_never_answers_is_no_server)
{
	begin();
	(void)hb_conn_tick(conn, BEGIN + 4999);
	ck_assert_int_eq(conn->state, HB_CONN_UP);
	(void)hb_conn_tick(conn, BEGIN + 5000);
	ck_assert_int_eq(conn->state, HB_CONN_DEAD);
	ck_assert_str_eq(conn->why.msg, "no answer within 5 s");
	end();
}
END_TEST

START_TEST(who_closes_is_gone_at_once)
{
	begin_proven();
	ck_assert_int_eq(shutdown(peer, SHUT_WR), 0);
	wait_for(conn->fd, POLLIN);
	hb_conn_ready(conn, &options, POLLIN, BEGIN + 1);
	ck_assert_int_eq(conn->state, HB_CONN_DEAD);
	ck_assert_str_eq(conn->why.msg, "the server closed the connection");
	end();
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, a_silent_server_is_asked_doubted_and_given_up);
	tcase_add_test(tc, a_late_answer_is_one);
	tcase_add_test(tc, whatever_a_server_says_it_is_there);
	tcase_add_test(tc, who_never_answers_is_no_server);
	tcase_add_test(tc, who_closes_is_gone_at_once);
}

int
main(void)
{
	return unit_run("hb_conn", add);
}
