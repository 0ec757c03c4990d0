// SPDX-License-Identifier: Apache-2.0
/* lis_relay.c: passes the bytes of connections to the API. Runs in: listener. Asked by: the
 * network, supervisor. */
#include "listener/lis_relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/ipc.h"
#include "common/proc_fd.h"
#include "listener/lis.h"

#define LINK_MS    10000
#define READ_MS    30000 /* for the client to read something */
#define YIELD_MS   2000  /* without a byte in either direction: may make room for another */
#define UNKNOWN_MS 100   /* for the first request to come to the supervisor */
#define ROUNDS     16    /* in one turn: other connections have their turn too */

#define BUSY "the agent has too many connections: try again in a moment"

/* --- begin and end --- */

/* The supervisor may still have its copy of the descriptor, so closing it is not enough. */
static void
close_link(struct lis *l, struct lis_relay *r)
{
	if (r->fd >= 0 && !r->hangs)
		(void)lis_watch(l, EPOLL_CTL_DEL, r->fd, 0, NULL);
	close_p(&r->fd);
}

void
lis_relay_free(struct lis *l, struct lis_relay *r)
{
	close_link(l, r);
	TAILQ_REMOVE(&l->relays, r, all);
	l->n_relays--;
	r->conn->relay = NULL;
	free(r);
}

static void
refuse(struct lis *l, struct lis_conn *c, const char *why)
{
	if (c->relay)
		lis_relay_free(l, c->relay);
	c->closes = true;
	c->in_len = 0;
	lis_conn_refuse(l, c, 503, why);
}

static unsigned
count_unproven(const struct lis *l, const struct in6_addr *from)
{
	const struct lis_relay *r;
	unsigned n = 0;

	TAILQ_FOREACH (r, &l->relays, all)
		n += !r->proven && memcmp(&r->conn->from, from, sizeof *from) == 0;
	return n;
}

/* Finds the oldest connection of the address that has the most without a proof, so that nobody
 * loses the only one to somebody who opens many. Whether it is silent does not count. */
static struct lis_relay *
find_unproven(const struct lis *l)
{
	struct lis_relay *r, *found = NULL;
	unsigned n, most = 0;

	TAILQ_FOREACH (r, &l->relays, all) {
		if (r->proven || l->now_ms - r->begun_ms < UNKNOWN_MS)
			continue;
		n = count_unproven(l, &r->conn->from);
		if (n > most) {
			most = n;
			found = r;
		}
	}
	return found;
}

/* Finds the connection that has been silent longest. */
static struct lis_relay *
find_silent(const struct lis *l)
{
	struct lis_relay *r, *found = NULL;

	TAILQ_FOREACH (r, &l->relays, all)
		if (l->now_ms - r->conn->since_ms >= YIELD_MS &&
		    (!found || r->conn->since_ms < found->conn->since_ms))
			found = r;
	return found;
}

/* Makes room for the client. Without a certificate it has proven nothing yet, and displaces only
 * others that have not either. */
static void
evict_for(struct lis *l, const struct lis_conn *c)
{
	struct lis_relay *r = find_unproven(l);

	if (!r && c->subject[0])
		r = find_silent(l);
	if (r)
		lis_conn_end(l, r->conn);
}

void
lis_relay_begin(struct lis *l, struct lis_conn *c)
{
	struct lis_want_ev want = { .link = ++l->link, .api = true };
	struct lis_relay *r;
	struct err e = { 0 };

	if (l->n_relays >= l->relays_max)
		evict_for(l, c);
	r = l->n_relays < l->relays_max ? calloc(1, sizeof *r) : NULL;
	if (!r) {
		refuse(l, c, BUSY);
		return;
	}
	r->source.kind = LIS_RELAY;
	r->conn = c;
	r->link = want.link;
	r->fd = -1;
	r->proven = c->subject[0];
	r->begun_ms = l->now_ms;
	TAILQ_INSERT_TAIL(&l->relays, r, all);
	l->n_relays++;
	c->relay = r;
	c->state = LIS_RELAYS;
	c->since_ms = l->now_ms;
	c->deadline_ms = l->now_ms + LINK_MS;
	(void)lis_watch(l, EPOLL_CTL_MOD, c->fd, 0, &c->source);
	IPC_TEXT_SET(want.address, c->address);
	IPC_TEXT_SET(want.certificate, c->subject);
	if (ipc_send(FD_IPC, IPC_LISTENER, IPC_SUPERVISOR, LIS_WANT_EV, 0, &want, NULL, 0,
		MSG_DONTWAIT, &e) < 0)
		refuse(l, c, BUSY);
}

void
lis_relay_prove(struct lis *l, uint32_t link)
{
	struct lis_relay *r;

	TAILQ_FOREACH (r, &l->relays, all)
		if (r->link == link)
			r->proven = true;
}

bool
lis_relay_on_link(struct lis *l, uint32_t link, int fd)
{
	struct lis_relay *r;

	TAILQ_FOREACH (r, &l->relays, all)
		if (r->link == link && r->fd < 0 && !r->ended)
			break;
	if (!r)
		return false;
	r->fd = fd;
	if (lis_watch(l, EPOLL_CTL_ADD, fd, 0, &r->source) < 0)
		refuse(l, r->conn, BUSY);
	else
		lis_relay_pump(l, r);
	return true;
}

void
lis_relay_late(struct lis *l, struct lis_relay *r)
{
	if (r->fd < 0 && !r->ended)
		refuse(l, r->conn, "the agent did not answer within 10 seconds");
	else
		lis_conn_end(l, r->conn);
}

/* --- bytes --- */

/* Returns whether a byte went to the supervisor. What it does not take any more is dropped. */
static bool
send_up(struct lis_relay *r)
{
	struct lis_conn *c = r->conn;
	ssize_t n;

	if (c->in_len == 0 || r->fd < 0)
		return false;
	n = send(r->fd, c->in, c->in_len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n < 0)
		n = (ssize_t)c->in_len;
	c->in_len -= (size_t)n;
	memmove(c->in, c->in + n, c->in_len);
	return true;
}

static bool
receive_down(struct lis *l, struct lis_relay *r)
{
	ssize_t n;

	if (r->fd < 0 || r->len == sizeof r->out)
		return false;
	n = recv(r->fd, r->out + r->len, sizeof r->out - r->len, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0) {
		r->ended = true;
		close_link(l, r);
		return false;
	}
	r->len += (size_t)n;
	r->answered = true;
	return true;
}

/* The next two return 1 if a byte was moved, 0, or -1 if the client has left. */
static int
receive_up(struct lis_conn *c)
{
	ssize_t n;

	if (c->in_len == LIS_HEAD_MAX)
		return 0;
	n = lis_conn_receive(c, c->in + c->in_len, LIS_HEAD_MAX - c->in_len);
	if (n > 0)
		c->in_len += (size_t)n;
	return n > 0 ? 1 : (int)n;
}

static int
send_down(struct lis_relay *r)
{
	ssize_t n;

	if (r->len == 0)
		return 0;
	n = lis_conn_send(r->conn, r->out, r->len, 0);
	if (n <= 0)
		return n == -EAGAIN ? 0 : -1;
	r->len -= (size_t)n;
	memmove(r->out, r->out + n, r->len);
	return 1;
}

/* Sets what is waited for. */
static void
watch(struct lis *l, struct lis_relay *r)
{
	struct lis_conn *c = r->conn;

	(void)lis_watch(l, EPOLL_CTL_MOD, c->fd,
	    (c->in_len < LIS_HEAD_MAX ? EPOLLIN : 0u) | (r->len > 0 ? EPOLLOUT : 0u), &c->source);
	if (r->fd >= 0 && !r->hangs)
		(void)lis_watch(l, EPOLL_CTL_MOD, r->fd,
		    (r->len < sizeof r->out ? EPOLLIN : 0u) | (c->in_len > 0 ? EPOLLOUT : 0u),
		    &r->source);
}

void
lis_relay_pump(struct lis *l, struct lis_relay *r)
{
	struct lis_conn *c = r->conn;
	bool moved = true, any = false;

	for (int i = 0; moved && i < ROUNDS; i++) {
		int up, down;

		moved = send_up(r);
		moved |= receive_down(l, r);
		up = receive_up(c);
		down = up < 0 ? -1 : send_down(r);
		if (down < 0) {
			lis_conn_end(l, c);
			return;
		}
		moved |= up > 0 || down > 0;
		any |= moved;
	}
	if (r->ended && !r->answered) {
		refuse(l, c, BUSY);
		return;
	}
	if (r->ended && r->len == 0) {
		lis_conn_close(l, c);
		return;
	}
	if (any)
		c->since_ms = l->now_ms;
	if (r->len == 0)
		c->deadline_ms = UINT64_MAX; /* the supervisor ends what is idle */
	else if (any || c->deadline_ms == UINT64_MAX)
		c->deadline_ms = l->now_ms + READ_MS;
	watch(l, r);
}

void
lis_relay_ready(struct lis *l, struct lis_relay *r, uint32_t events)
{
	/* The event would come again and again while the client reads what is left. */
	if (events & (EPOLLHUP | EPOLLERR) && !r->hangs) {
		(void)lis_watch(l, EPOLL_CTL_DEL, r->fd, 0, NULL);
		r->hangs = true;
	}
	lis_relay_pump(l, r);
}
