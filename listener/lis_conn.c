// SPDX-License-Identifier: Apache-2.0
/* lis_conn.c: the connections of clients: their requests, answers, limits and deadlines. Runs in:
 * listener. Asked by: anyone on the network. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/tls.h"
#include "listener/lis.h"

#define NO_TOKEN                                                                                   \
	"Permission denied: a request over TCP needs a valid ACL token (-token, DROVER_TOKEN, or " \
	"the header X-Nomad-Token)"
#define HEAD_MS  10000 /* for the handshake of TLS, and for the whole head of a request */
#define IDLE_MS  75000 /* between two requests: more than the usual interval of a scrape */
#define WRITE_MS 30000 /* for the whole answer to be read */
#define DRAIN_MS 1000
/* Bytes that are read after the last answer; a client that still sends more may not get it. */
#define DRAIN_MAX (64 * 1024)

static const struct {
	int status;
	const char *phrase;
} phrases[] = {
	{ 200, "OK" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 417, "Expectation Failed" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 505, "HTTP Version Not Supported" },
};

static const char *
phrase_of(int status)
{
	for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
		if (phrases[i].status == status)
			return phrases[i].phrase;
	return "Answer";
}

/* --- states --- */

void
lis_conn_end(struct lis *l, struct lis_conn *c)
{
	if (c->state == LIS_WAITS)
		lis_line_leave(l, c);
	if (c->relay)
		lis_relay_free(l, c->relay);
	TAILQ_REMOVE(&c->door->conns, c, all);
	c->door->n_conns--;
	if (c->ssl)
		tls_end(c->ssl, c->state != LIS_SHAKES);
	lis_answer_unref(c->answer);
	(void)close(c->fd);
	free(c->in);
	free(c);
}

static void
enter(
    struct lis *l, struct lis_conn *c, enum lis_conn_state state, uint64_t for_ms, uint32_t events)
{
	c->state = state;
	c->since_ms = l->now_ms;
	c->deadline_ms = l->now_ms + for_ms;
	(void)lis_watch(l, EPOLL_CTL_MOD, c->fd, events, &c->source);
}

/* --- answers --- */

static void
begin_answer(struct lis *l, struct lis_conn *c, int status, const char *type, size_t len)
{
	time_t now = time(NULL);
	struct tm tm;
	char date[64];
	int n;

	(void)gmtime_r(&now, &tm);
	(void)strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
	n = snprintf(c->out, sizeof c->out,
	    "HTTP/1.1 %d %s\r\nDate: %s\r\n%s%s%sContent-Length: %zu\r\n"
	    "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n%s%s\r\n",
	    status, phrase_of(status), date, type[0] ? "Content-Type: " : "", type,
	    type[0] ? "\r\n" : "", len,
	    status == 405   ? "Allow: GET, HEAD\r\n"
	    : status == 401 ? "WWW-Authenticate: Bearer\r\n"
			    : "",
	    c->closes ? "Connection: close\r\n" : "");
	c->out_len = (size_t)n;
	c->out_at = c->body_at = 0;
	enter(l, c, LIS_WRITES, WRITE_MS, EPOLLOUT);
}

void
lis_conn_answer(struct lis *l, struct lis_conn *c, struct lis_answer *answer)
{
	c->answer = lis_answer_ref(answer);
	c->closes |= !c->head.keeps;
	begin_answer(l, c, answer->status, answer->type, answer->len);
	if (c->head.is_head)
		c->body_at = answer->len;
}

/* The sentence follows the head in the same buffer. */
static void
reply_text(struct lis *l, struct lis_conn *c, int status, const char *why)
{
	begin_answer(l, c, status, "text/plain; charset=utf-8", strlen(why) + 1);
	if (!c->head.is_head)
		c->out_len +=
		    (size_t)snprintf(c->out + c->out_len, sizeof c->out - c->out_len, "%s\n", why);
}

void
lis_conn_refuse(struct lis *l, struct lis_conn *c, int status, const char *why)
{
	c->closes |= !c->head.keeps;
	reply_text(l, c, status, why);
}

/* --- requests --- */

static void
handle_head(struct lis *l, struct lis_conn *c)
{
	const char *why;
	int r = lis_head_parse(c->in, c->in_len, c->door->is_api, &c->head, &why);

	if (r == 0)
		return;
	if (r < 0) { /* nobody knows where the next request would begin */
		c->closes = true;
		c->in_len = 0;
		reply_text(l, c, -r, why);
		return;
	}
	if (!lis_door_opens_for(c->door, c)) {
		c->closes = true;
		c->in_len = 0;
		reply_text(l, c, 401,
		    c->door->is_api ? NO_TOKEN
				    : "this address needs a token: Authorization: Bearer TOKEN");
		return;
	}
	if (c->door->is_api) {
		lis_relay_begin(l, c);
		return;
	}
	r = lis_gate_check(&c->head, &c->question, &why);
	/* A client may send its next request early; it waits in the buffer. */
	c->in_len -= c->head.len;
	memmove(c->in, c->in + c->head.len, c->in_len);
	if (r < 0) {
		lis_conn_refuse(l, c, -r, why);
		return;
	}
	enter(l, c, LIS_WAITS, 0, 0);
	lis_line_join(l, c);
}

ssize_t
lis_conn_receive(struct lis_conn *c, char *buf, size_t size)
{
	struct err e = { 0 };
	ssize_t n;

	if (c->ssl)
		n = tls_read(c->ssl, buf, size, &e);
	else if ((n = recv(c->fd, buf, size, 0)) < 0)
		n = -errno;
	if (n > 0)
		return n;
	return n == -EAGAIN ? 0 : -1;
}

static void
read_head(struct lis *l, struct lis_conn *c)
{
	ssize_t n;

	if (!c->in && !(c->in = malloc(LIS_HEAD_MAX))) {
		lis_conn_end(l, c);
		return;
	}
	n = lis_conn_receive(c, c->in + c->in_len, LIS_HEAD_MAX - c->in_len);
	if (n < 0) {
		lis_conn_end(l, c);
		return;
	}
	if (n > 0 && c->in_len == 0) /* the time for the head begins with its first byte */
		enter(l, c, LIS_READS, HEAD_MS, EPOLLIN);
	c->in_len += (size_t)n;
	if (n > 0)
		handle_head(l, c);
}

/* If the client still sends, the kernel would drop the answer together with the connection. */
void
lis_conn_close(struct lis *l, struct lis_conn *c)
{
	char byte;

	if (c->relay)
		lis_relay_free(l, c->relay);
	if (c->head.len > 0 && c->in_len == 0 && lis_conn_receive(c, &byte, 1) <= 0)
		lis_conn_end(l, c);
	else
		enter(l, c, LIS_DRAINS, DRAIN_MS, EPOLLIN);
}

static void
end_answer(struct lis *l, struct lis_conn *c)
{
	lis_answer_unref(c->answer);
	c->answer = NULL;
	c->served = true;
	if (c->closes) {
		lis_conn_close(l, c);
		return;
	}
	c->head = (struct lis_head){ 0 };
	if (c->in_len == 0) {
		free(c->in);
		c->in = NULL;
	}
	enter(l, c, LIS_READS, c->in_len > 0 ? HEAD_MS : IDLE_MS, EPOLLIN);
	if (c->in_len > 0)
		handle_head(l, c);
	/* TLS may have decoded bytes that did not fit into the buffer: no event reports them. */
	if (c->state == LIS_READS && c->ssl)
		read_head(l, c);
}

ssize_t
lis_conn_send(struct lis_conn *c, const char *data, size_t len, int flags)
{
	struct err e = { 0 };
	ssize_t n;

	if (c->ssl)
		return tls_write(c->ssl, data, len, &e);
	n = send(c->fd, data, len, MSG_NOSIGNAL | flags);
	return n < 0 ? -errno : n;
}

/* Sends from data[*at, len). Returns whether all is sent; frees the connection if it has ended. */
static bool
send_from(struct lis *l, struct lis_conn *c, const char *data, size_t len, size_t *at, int flags)
{
	ssize_t n = 0;

	while (*at < len && (n = lis_conn_send(c, data + *at, len - *at, flags)) > 0)
		*at += (size_t)n;
	if (*at < len && n != -EAGAIN) {
		lis_conn_end(l, c);
		return false;
	}
	return *at == len;
}

static void
write_answer(struct lis *l, struct lis_conn *c)
{
	bool has_body = c->answer && c->body_at < c->answer->len;

	if (!send_from(l, c, c->out, c->out_len, &c->out_at, has_body ? MSG_MORE : 0))
		return;
	if (has_body && !send_from(l, c, c->answer->body, c->answer->len, &c->body_at, 0))
		return;
	end_answer(l, c);
}

static void
drain(struct lis *l, struct lis_conn *c)
{
	char buf[4096];
	ssize_t n = lis_conn_receive(c, buf, sizeof buf);

	if (n > 0)
		c->drained += (size_t)n;
	if (n < 0 || c->drained >= DRAIN_MAX)
		lis_conn_end(l, c);
}

/* Returns whether the first byte is that of a client which does not speak TLS. */
static bool
begins_with_text(struct lis_conn *c)
{
	char first;

	if (c->shakes || recv(c->fd, &first, 1, MSG_PEEK) != 1)
		return false;
	c->shakes = true;
	return first >= 'A' && first <= 'Z';
}

static void
shake(struct lis *l, struct lis_conn *c)
{
	struct err e = { 0 };
	short events = POLLIN;
	int r;

	if (begins_with_text(c)) {
		tls_end(steal_ptr(&c->ssl), false);
		c->closes = true;
		reply_text(l, c, 400, "this address needs TLS: https instead of http");
		return;
	}
	r = tls_shake(c->ssl, &events, &e);
	if (r < 0) {
		log_debug("a client: %s", e.msg);
		tls_end(steal_ptr(&c->ssl), false);
		enter(l, c, LIS_DRAINS, DRAIN_MS, EPOLLIN); /* for its alert to arrive */
	} else if (r == 0) {
		(void)lis_watch(
		    l, EPOLL_CTL_MOD, c->fd, events == POLLOUT ? EPOLLOUT : EPOLLIN, &c->source);
	} else {
		tls_peer_subject(c->ssl, c->subject);
		enter(l, c, LIS_READS, HEAD_MS, EPOLLIN);
		read_head(l, c);
	}
}

void
lis_conn_ready(struct lis *l, struct lis_conn *c, uint32_t events)
{
	if (events & (EPOLLERR | EPOLLHUP))
		lis_conn_end(l, c);
	else if (c->state == LIS_SHAKES)
		shake(l, c);
	else if (c->state == LIS_READS)
		read_head(l, c);
	else if (c->state == LIS_WRITES)
		write_answer(l, c);
	else if (c->state == LIS_RELAYS)
		lis_relay_pump(l, c->relay);
	else if (c->state == LIS_DRAINS)
		drain(l, c);
}

void
lis_conn_finish(struct lis *l, struct lis_conn *c)
{
	c->closes = true;
	if (c->state == LIS_WAITS) {
		lis_line_leave(l, c);
		lis_conn_refuse(l, c, 503, "the agent restarts: try again in a moment");
	} else if (c->state == LIS_RELAYS && c->relay->fd < 0 && !c->relay->ended) {
		lis_relay_late(l, c->relay);
	} else if (c->state == LIS_READS && c->in_len == 0 && c->served) {
		lis_conn_end(l, c);
	}
}

uint64_t
lis_conns_tick(struct lis *l, struct lis_door *d)
{
	uint64_t next = UINT64_MAX;
	struct lis_conn *c, *after;

	TAILQ_FOREACH_SAFE (c, &d->conns, all, after) {
		if (c->state == LIS_WAITS) /* the line has the deadline */
			continue;
		if (c->deadline_ms <= l->now_ms && c->relay)
			lis_relay_late(l, c->relay);
		else if (c->deadline_ms <= l->now_ms)
			lis_conn_end(l, c);
		else if (c->deadline_ms < next)
			next = c->deadline_ms;
	}
	return next;
}

/* --- new connections --- */

void
lis_conn_new(
    struct lis *l, struct lis_door *d, int fd, const struct in6_addr *from, const char *address)
{
	struct ssl_st *ssl = d->tls ? tls_accept(d->tls, fd) : NULL;
	struct lis_conn *c = calloc(1, sizeof *c);

	if (!c || (d->tls && !ssl) || lis_watch(l, EPOLL_CTL_ADD, fd, EPOLLIN, &c->source) < 0) {
		if (ssl)
			tls_end(ssl, false);
		free(c);
		(void)close(fd);
		return;
	}
	*c = (struct lis_conn){
		.source.kind = LIS_CONN, .door = d, .fd = fd, .ssl = ssl, .from = *from
	};
	(void)strcpy(c->address, address);
	TAILQ_INSERT_TAIL(&d->conns, c, all);
	d->n_conns++;
	c->state = ssl ? LIS_SHAKES : LIS_READS;
	c->since_ms = l->now_ms;
	c->deadline_ms = l->now_ms + HEAD_MS;
	/* Most have sent something already, and must not be evicted. */
	lis_conn_ready(l, c, EPOLLIN);
}
