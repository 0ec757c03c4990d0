// SPDX-License-Identifier: Apache-2.0
/* hb_conn.c: one connection to a server. Runs in: heartbeat. */
#include "heartbeat/hb_conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/tls.h"

/* The limit for each of: connecting, the handshake, the first answered ping. */
#define CONNECT_MS 5000
#define PING_MS    3000  /* of silence, after which a ping is sent */
#define SLOW_MS    2000  /* without an answer, after which another server is tried */
#define DEAD_MS    10000 /* without an answer, after which the connection is closed */
#define READ_SIZE  65536
#define READS_MAX  8 /* in one turn, so that no connection starves the others */

static void
die(struct hb_conn *c, const struct err *e)
{
	if (c->state == HB_CONN_DEAD)
		return;
	c->state = HB_CONN_DEAD;
	c->why = *e;
	if (c->ssl)
		tls_end(c->ssl, false);
	c->ssl = NULL;
	close_p(&c->fd);
}

static void __attribute__((format(printf, 3, 4)))
die_saying(struct hb_conn *c, int code, const char *fmt, ...)
{
	struct err e = { 0 };
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	(void)err_say(&e, code, "%s", text);
	die(c, &e);
}

struct hb_conn *
hb_conn_new(const char *name, const struct sockaddr_storage *addr,
    const struct hb_conn_options *options, uint64_t now_ms, struct err *e)
{
	static const int on = 1;
	socklen_t len =
	    addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	cleanup_close int fd =
	    socket(addr->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct hb_conn *c;

	if (fd < 0) {
		(void)err_set(e, -errno, "make a socket");
		return NULL;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (connect(fd, (const struct sockaddr *)(const void *)addr, len) < 0 &&
	    errno != EINPROGRESS) {
		(void)err_set(e, -errno, "connect");
		return NULL;
	}
	c = mem_new(struct hb_conn);
	(void)snprintf(c->name, sizeof c->name, "%s", name);
	c->state = HB_CONN_CONNECTING;
	c->events = POLLOUT;
	c->fd = steal_fd(&fd);
	c->began_ms = c->heard_ms = now_ms;
	hb_yamux_init(&c->yamux, options->ops, options->user);
	return c;
}

void
hb_conn_free(struct hb_conn *c)
{
	die_saying(c, -ECONNABORTED, "closed");
	hb_yamux_done(&c->yamux);
	free(c);
}

/* Sends the byte that selects the protocol, then a ping to prove that the server answers. */
static void
go_up(struct hb_conn *c, uint64_t now_ms)
{
	static const uint8_t mode = HB_RPC_MULTIPLEX;

	c->state = HB_CONN_UP;
	c->began_ms = c->pinged_ms = now_ms;
	hb_buf_add(&c->yamux.out, &mode, 1);
	(void)hb_yamux_ping(&c->yamux);
	hb_conn_flush(c);
}

static void
shake(struct hb_conn *c, uint64_t now_ms)
{
	struct err e = { 0 };
	int r = tls_shake(c->ssl, &c->events, &e);

	if (r < 0)
		die(c, &e);
	else if (r > 0)
		go_up(c, now_ms);
}

static void
on_connected(struct hb_conn *c, const struct hb_conn_options *options, uint64_t now_ms)
{
	static const uint8_t mode = HB_RPC_TLS;
	socklen_t len = sizeof(int);
	int code = 0;

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0)
		code = errno;
	if (code) {
		die_saying(c, -code, "connect: %s", strerrordesc_np(code));
		return;
	}
	if (!options->tls) {
		go_up(c, now_ms);
		return;
	}
	c->ssl = tls_begin(options->tls, c->fd, options->server_name);
	if (!c->ssl || write(c->fd, &mode, 1) != 1) {
		die_saying(c, -EIO, "begin TLS");
		return;
	}
	c->state = HB_CONN_SECURING;
	c->began_ms = now_ms;
	shake(c, now_ms);
}

/* With TLS 1.3 the handshake ends before the server has verified our certificate. */
static void
die_closed(struct hb_conn *c)
{
	die_saying(c, -ECONNRESET, "%s",
	    c->ssl && !c->proven
		? "the server closed the connection after the TLS handshake: does it "
		  "accept tls.cert_file?"
		: "the server closed the connection");
}

static ssize_t
read_bytes(struct hb_conn *c, void *buf, size_t size, struct err *e)
{
	ssize_t n;

	if (c->ssl)
		return tls_read(c->ssl, buf, size, e);
	n = read(c->fd, buf, size);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	return n < 0 ? err_set(e, -errno, "read") : n;
}

static ssize_t
write_bytes(struct hb_conn *c, const void *buf, size_t size, struct err *e)
{
	ssize_t n;

	if (c->ssl)
		return tls_write(c->ssl, buf, size, e);
	n = write(c->fd, buf, size);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	return n < 0 ? err_set(e, -errno, "write") : n;
}

/* Reads nothing that would add to the output while too much output is waiting. */
static void
read_some(struct hb_conn *c, uint64_t now_ms)
{
	static uint8_t buf[READ_SIZE];
	struct err e = { 0 };

	c->more = false;
	for (int i = 0; c->state == HB_CONN_UP && !hb_yamux_is_full(&c->yamux); i++) {
		ssize_t n;

		if (i == READS_MAX) {
			c->more = c->ssl != NULL;
			return;
		}
		n = read_bytes(c, buf, sizeof buf, &e);
		if (n == -EAGAIN)
			return;
		if (n == 0 || (n < 0 && c->ssl && !c->proven)) {
			die_closed(c);
			return;
		}
		c->heard_ms = now_ms;
		if (n < 0 || hb_yamux_input(&c->yamux, buf, (size_t)n, &e) < 0) {
			die(c, &e);
			return;
		}
		if (!c->ssl && (size_t)n < sizeof buf)
			return;
	}
	/* TLS may have decoded bytes that poll() does not report. */
	c->more = c->state == HB_CONN_UP && c->ssl != NULL;
}

void
hb_conn_flush(struct hb_conn *c)
{
	struct hb_buf *out = &c->yamux.out;
	struct err e = { 0 };
	ssize_t n;

	while (c->state == HB_CONN_UP && out->len > 0) {
		n = write_bytes(c, out->data, out->len, &e);
		if (n == -EAGAIN)
			return;
		if (n == 0 || (n < 0 && c->ssl && !c->proven)) {
			die_closed(c);
			return;
		}
		if (n < 0) {
			die(c, &e);
			return;
		}
		hb_buf_drop(out, (size_t)n);
	}
}

short
hb_conn_events(const struct hb_conn *c)
{
	if (c->state != HB_CONN_UP)
		return c->events;
	return (short)((hb_yamux_is_full(&c->yamux) ? 0 : POLLIN) |
		       (c->yamux.out.len > 0 ? POLLOUT : 0));
}

void
hb_conn_ready(
    struct hb_conn *c, const struct hb_conn_options *options, short revents, uint64_t now_ms)
{
	if (revents == 0 && !c->more)
		return;
	switch (c->state) {
	case HB_CONN_CONNECTING:
		on_connected(c, options, now_ms);
		return;
	case HB_CONN_SECURING:
		shake(c, now_ms);
		return;
	case HB_CONN_UP:
		hb_conn_flush(c);
		read_some(c, now_ms);
		hb_conn_flush(c);
		return;
	case HB_CONN_DEAD:
		return;
	}
}

bool
hb_conn_is_slow(const struct hb_conn *c, uint64_t now_ms)
{
	return c->state == HB_CONN_UP && c->pinged_ms && c->heard_ms <= c->pinged_ms &&
	       now_ms - c->pinged_ms >= SLOW_MS;
}

uint64_t
hb_conn_tick(struct hb_conn *c, uint64_t now_ms)
{
	if (c->state == HB_CONN_DEAD)
		return now_ms;
	if (c->state != HB_CONN_UP || !c->proven) {
		if (now_ms - c->began_ms >= CONNECT_MS)
			die_saying(c, -ETIMEDOUT, "%s within %d s",
			    c->state == HB_CONN_CONNECTING ? "no connection"
			    : c->state == HB_CONN_SECURING ? "no TLS handshake"
							   : "no answer",
			    CONNECT_MS / 1000);
		return c->began_ms + CONNECT_MS;
	}
	if (c->pinged_ms && c->heard_ms > c->pinged_ms)
		c->pinged_ms = 0; /* any message proves that the server is alive */
	if (!c->pinged_ms && now_ms - c->heard_ms >= PING_MS) {
		c->pinged_ms = now_ms;
		(void)hb_yamux_ping(&c->yamux);
		hb_conn_flush(c);
	}
	if (!c->pinged_ms)
		return c->heard_ms + PING_MS;
	if (now_ms - c->pinged_ms >= DEAD_MS)
		die_saying(c, -ETIMEDOUT, "no answer within %d s", DEAD_MS / 1000);
	return now_ms - c->pinged_ms < SLOW_MS ? c->pinged_ms + SLOW_MS : c->pinged_ms + DEAD_MS;
}
