// SPDX-License-Identifier: Apache-2.0
/* http_clients.c: the connections of the control socket, and limits for slow clients. Runs in:
 * supervisor. */
#include "supervisor/http/http_clients.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "supervisor/http/tcp_gate.h"

#define SEND_MS  30000 /* time for a request's first line, and again for the rest of the request */
#define YIELD_MS 2000  /* waiting time after which a connection may be cut off for others */

void
http_clients_init(struct http_clients *all, int epoll_fd, size_t held_max)
{
	*all = (struct http_clients){ .epoll_fd = epoll_fd, .held_max = held_max };
	TAILQ_INIT(&all->waiting);
}

static void
stop_waiting(struct http_client *c)
{
	if (c->waiting)
		TAILQ_REMOVE(&c->all->waiting, c, waits);
	c->waiting = false;
}

static void
wait_for(struct http_client *c, bool reads)
{
	stop_waiting(c);
	if (c->cut)
		return;
	c->since_ms = clock_ms();
	c->reads = reads;
	c->waiting = true;
	TAILQ_INSERT_TAIL(&c->all->waiting, c, waits);
}

/* Ends a connection. libmicrohttpd has no call for that, and the seccomp filter refuses
 * shutdown(2). So the client's socket is no longer polled, and the connection times out within a
 * second. */
static void
cut_off(struct http_client *c)
{
	struct epoll_event none = { .data.ptr = c->conn }; /* descriptor that libmicrohttpd uses */

	log_debug("API: a client that %s for %llu s is cut off, and %zu bytes are freed",
	    c->reads ? "does not read its answer" : "does not finish its request",
	    (unsigned long long)(clock_ms() - c->since_ms) / 1000, c->held);
	stop_waiting(c);
	http_client_release(c, c->held);
	c->cut = true;
	(void)epoll_ctl(c->all->epoll_fd, EPOLL_CTL_MOD, c->fd, &none);
	(void)MHD_set_connection_option(c->conn, MHD_CONNECTION_OPTION_TIMEOUT, 1u);
}

struct http_client *
http_client_new(struct http_clients *all, struct MHD_Connection *conn, int fd)
{
	struct http_client *c = mem_new(struct http_client);

	c->all = all;
	c->conn = conn;
	c->fd = fd;
	wait_for(c, false);
	return c;
}

void
http_client_free(struct http_client *c)
{
	stop_waiting(c);
	http_client_release(c, c->held);
	free(c);
}

void
http_client_expect_request(struct http_client *c)
{
	wait_for(c, false);
}

void
http_client_expect_read(struct http_client *c)
{
	wait_for(c, true);
}

void
http_client_expect_nothing(struct http_client *c)
{
	stop_waiting(c);
}

/* Finds the longest waiting connection that holds memory and may be cut off. */
static struct http_client *
find_holder(struct http_clients *all, const struct http_client *but)
{
	uint64_t now = clock_ms();
	struct http_client *c;

	TAILQ_FOREACH (c, &all->waiting, waits) {
		if (now - c->since_ms < YIELD_MS)
			return NULL;
		if (c->held > 0 && c != but)
			return c;
	}
	return NULL;
}

bool
http_client_hold(struct http_client *c, size_t n)
{
	struct http_clients *all = c->all;
	struct http_client *other;

	if (c->cut)
		return false;
	while (all->held > c->held && all->held + n > all->held_max) {
		other = c->tcp && !c->tcp->proven ? NULL : find_holder(all, c);
		if (!other)
			return false;
		cut_off(other);
	}
	c->held += n;
	all->held += n;
	return true;
}

void
http_client_release(struct http_client *c, size_t n)
{
	if (n > c->held) /* it was cut off in the meantime */
		n = c->held;
	c->held -= n;
	c->all->held -= n;
}

uint64_t
http_clients_tick(struct http_clients *all, bool full)
{
	uint64_t now = clock_ms();
	struct http_client *c, *next;

	TAILQ_FOREACH_SAFE (c, &all->waiting, waits, next) {
		uint64_t waited = now - c->since_ms;
		if (full && waited < YIELD_MS)
			return YIELD_MS - waited;
		if (!full && waited < SEND_MS && !c->reads)
			return SEND_MS - waited;
		if (full || (waited >= SEND_MS && !c->reads))
			cut_off(c);
		full = false;
	}
	return UINT64_MAX;
}
