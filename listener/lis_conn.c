// SPDX-License-Identifier: Apache-2.0
/* lis_conn.c: the connections of clients: their requests, answers, limits and deadlines. Runs in:
 * listener. Asked by: anyone on the network. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/proc_fd.h"
#include "listener/lis.h"

#define ADDRESS_MAX     100   /* connections of one address */
#define ACCEPTS         64    /* at once */
#define HEAD_MS         10000 /* for the whole head of a request */
#define IDLE_MS         75000 /* between two requests: more than the usual interval of a scrape */
#define WRITE_MS        30000 /* for the whole answer to be read */
#define DRAIN_MS        1000
#define ACCEPT_AGAIN_MS 200

static const struct {
	int status;
	const char *phrase;
} phrases[] = {
	{ 200, "OK" },
	{ 400, "Bad Request" },
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

static void
conn_free(struct lis *l, struct lis_conn *c)
{
	if (c->state == LIS_WAITS)
		lis_line_leave(l, c);
	TAILQ_REMOVE(&l->conns, c, all);
	l->n_conns--;
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
	    type[0] ? "\r\n" : "", len, status == 405 ? "Allow: GET, HEAD\r\n" : "",
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
	int r = lis_head_parse(c->in, c->in_len, &c->head, &why);

	if (r == 0)
		return;
	if (r < 0) { /* nobody knows where the next request would begin */
		c->closes = true;
		c->in_len = 0;
		reply_text(l, c, -r, why);
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

/* Returns the bytes that came, 0 if none did, or -1 if the connection has ended. */
static ssize_t
receive(struct lis_conn *c, char *buf, size_t size)
{
	ssize_t n = recv(c->fd, buf, size, 0);

	if (n > 0)
		return n;
	return n < 0 && errno == EAGAIN ? 0 : -1;
}

static void
read_head(struct lis *l, struct lis_conn *c)
{
	ssize_t n;

	if (!c->in && !(c->in = malloc(LIS_HEAD_MAX))) {
		conn_free(l, c);
		return;
	}
	n = receive(c, c->in + c->in_len, LIS_HEAD_MAX - c->in_len);
	if (n < 0) {
		conn_free(l, c);
		return;
	}
	if (n > 0 && c->in_len == 0) /* the time for the head begins with its first byte */
		enter(l, c, LIS_READS, HEAD_MS, EPOLLIN);
	c->in_len += (size_t)n;
	if (n > 0)
		handle_head(l, c);
}

/* If the client still sends, the kernel would drop the answer together with the connection. */
static void
end_conn(struct lis *l, struct lis_conn *c)
{
	char byte;

	if (c->head.len > 0 && c->in_len == 0 && receive(c, &byte, 1) <= 0)
		conn_free(l, c);
	else
		enter(l, c, LIS_DRAINS, DRAIN_MS, EPOLLIN);
}

static void
end_answer(struct lis *l, struct lis_conn *c)
{
	lis_answer_unref(c->answer);
	c->answer = NULL;
	if (c->closes) {
		end_conn(l, c);
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
}

/* Sends from data[*at, len). Returns whether all is sent; frees the connection if it has ended. */
static bool
send_from(struct lis *l, struct lis_conn *c, const char *data, size_t len, size_t *at, int flags)
{
	ssize_t n = 0;

	while (*at < len && (n = send(c->fd, data + *at, len - *at, MSG_NOSIGNAL | flags)) > 0)
		*at += (size_t)n;
	if (*at < len && errno != EAGAIN) {
		conn_free(l, c);
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

	if (receive(c, buf, sizeof buf) < 0)
		conn_free(l, c);
}

void
lis_conn_ready(struct lis *l, struct lis_conn *c, uint32_t events)
{
	if (events & (EPOLLERR | EPOLLHUP))
		conn_free(l, c);
	else if (c->state == LIS_READS)
		read_head(l, c);
	else if (c->state == LIS_WRITES)
		write_answer(l, c);
	else if (c->state == LIS_DRAINS)
		drain(l, c);
}

uint64_t
lis_conns_tick(struct lis *l)
{
	uint64_t next = UINT64_MAX;
	struct lis_conn *c, *after;

	TAILQ_FOREACH_SAFE (c, &l->conns, all, after) {
		if (c->state == LIS_WAITS) /* the line has the deadline */
			continue;
		if (c->deadline_ms <= l->now_ms)
			conn_free(l, c);
		else if (c->deadline_ms < next)
			next = c->deadline_ms;
	}
	return next;
}

/* --- new connections --- */

/* One client has a whole /64 of IPv6. */
static struct in6_addr
key_of(const struct sockaddr_storage *from)
{
	struct in6_addr key = { 0 };

	if (from->ss_family == AF_INET) {
		key.s6_addr[10] = key.s6_addr[11] = 0xff;
		memcpy(&key.s6_addr[12], &((const struct sockaddr_in *)from)->sin_addr, 4);
		return key;
	}
	key = ((const struct sockaddr_in6 *)from)->sin6_addr;
	if (!IN6_IS_ADDR_V4MAPPED(&key))
		memset(&key.s6_addr[8], 0, 8);
	return key;
}

/* Ends the connection that has waited longest for its client, to make room for another one. */
static void
evict(struct lis *l)
{
	struct lis_conn *c, *oldest = NULL;

	TAILQ_FOREACH (c, &l->conns, all)
		if (c->state != LIS_WAITS && (!oldest || c->since_ms < oldest->since_ms))
			oldest = c;
	if (oldest)
		conn_free(l, oldest);
}

static bool
may_join(struct lis *l, const struct in6_addr *from)
{
	const struct lis_conn *c;
	unsigned n = 0;

	TAILQ_FOREACH (c, &l->conns, all)
		n += memcmp(&c->from, from, sizeof *from) == 0;
	if (n >= ADDRESS_MAX)
		return false;
	if (l->n_conns == LIS_CONNS_MAX)
		evict(l);
	return l->n_conns < LIS_CONNS_MAX;
}

static void
conn_new(struct lis *l, int fd, const struct sockaddr_storage *from)
{
	struct in6_addr key = key_of(from);
	struct lis_conn *c = may_join(l, &key) ? calloc(1, sizeof *c) : NULL;

	if (!c || lis_watch(l, EPOLL_CTL_ADD, fd, EPOLLIN, &c->source) < 0) {
		free(c);
		(void)close(fd);
		return;
	}
	*c = (struct lis_conn){ .source.kind = LIS_CONN, .fd = fd, .from = key };
	TAILQ_INSERT_TAIL(&l->conns, c, all);
	l->n_conns++;
	c->state = LIS_READS;
	c->since_ms = l->now_ms;
	c->deadline_ms = l->now_ms + HEAD_MS;
	read_head(l, c); /* most requests are there already, and must not be evicted */
}

void
lis_accept(struct lis *l)
{
	for (int i = 0; i < ACCEPTS; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t len = sizeof from;
		int fd = accept4(
		    FD_SPECIAL, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			conn_new(l, fd, &from);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			log_warn("accept a connection: %s", strerrordesc_np(errno));
			l->accept_at_ms = l->now_ms + ACCEPT_AGAIN_MS;
			(void)lis_watch(l, EPOLL_CTL_MOD, FD_SPECIAL, 0, &l->socket);
		}
		return;
	}
}
