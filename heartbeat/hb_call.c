// SPDX-License-Identifier: Apache-2.0
/* hb_call.c: calls to the servers. Runs in: heartbeat. */
#include "heartbeat/hb_call.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/lease.h"
#include "common/log.h"
#include "common/mem.h"
#include "heartbeat/hb_ipc.h"
#include "heartbeat/hb_link.h"
#include "proto/heartbeat.pb-c.h"

#define CALLS_MAX 8192 /* of which the supervisor lets 4096 block for values of templates */
#define JITTER_MS 312  /* longest pause before a retry: 1/16 of the time servers hold a call */
#define SEALS     (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

static const struct hb_stream_ops stream_ops;

/* --- bodies --- */

static int
to_memfd(struct hb_body *b)
{
	int r;

	b->fd = memfd_create("body", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (b->fd < 0)
		return -errno;
	r = fd_write_full(b->fd, b->buf.data, b->buf.len);
	hb_buf_done(&b->buf);
	return r;
}

static int
body_add(struct hb_body *b, const uint8_t *data, size_t len)
{
	int r = 0;

	if (len > HB_CALL_BODY_MAX - b->len)
		return -EMSGSIZE;
	b->len += len;
	if (b->fd < 0 && b->len > HB_CALL_INLINE_MAX)
		r = to_memfd(b);
	if (r < 0)
		return r;
	if (b->fd >= 0)
		return fd_write_full(b->fd, data, len);
	hb_buf_add(&b->buf, data, len);
	return 0;
}

static void
body_done(struct hb_body *b)
{
	hb_buf_done(&b->buf);
	close_p(&b->fd);
	*b = (struct hb_body){ .fd = -1 };
}

int
hb_body_seal(struct hb_body *b)
{
	if (fcntl(b->fd, F_ADD_SEALS, SEALS) < 0)
		return -errno;
	return steal_fd(&b->fd);
}

/* --- the life of a call --- */

struct hb_call *
hb_call_new(struct hb *hb, const char *method, struct hb_buf *request, const void *mapped,
    size_t mapped_len, uint64_t timeout_ms, bool repeat, hb_call_cb *done)
{
	struct hb_call *c;

	if (hb->n_calls == CALLS_MAX)
		return NULL;
	c = mem_new(struct hb_call);
	(void)snprintf(c->method, sizeof c->method, "%s", method);
	c->request = *request;
	*request = (struct hb_buf){ 0 };
	c->mapped = mapped;
	c->mapped_len = mapped_len;
	c->deadline_ms = hb->now_ms + timeout_ms;
	c->repeat = repeat;
	c->done = done;
	c->body.fd = -1;
	TAILQ_INSERT_TAIL(&hb->calls, c, link);
	hb->n_calls++;
	return c;
}

/* Resets a call to the state before it was sent. Sends FIN and not RST, because a server that has
 * not yet read the stream's first byte would close the whole connection. */
static void
reset_call(struct hb_call *c)
{
	if (c->stream)
		hb_stream_close(c->stream);
	c->stream = NULL;
	c->conn = NULL;
	c->sent = 0;
	c->in_body = false;
	c->scan = (struct hb_rpc_scan){ 0 };
	free_p(&c->error);
	hb_buf_done(&c->head_out);
	hb_buf_done(&c->head_in);
	body_done(&c->body);
}

static void
free_call(struct hb *hb, struct hb_call *c)
{
	TAILQ_REMOVE(&hb->calls, c, link);
	hb->n_calls--;
	reset_call(c);
	hb_buf_done(&c->request);
	if (c->mapped)
		(void)munmap((void *)(uintptr_t)c->mapped, c->mapped_len);
	free(c);
}

static void
finish_call(struct hb *hb, struct hb_call *c, int r, const struct err *e)
{
	if (c->stream)
		hb_stream_close(c->stream);
	c->stream = NULL;
	c->done(hb, c, r, e);
	free_call(hb, c);
}

static void __attribute__((format(printf, 4, 5)))
fail_call(struct hb *hb, struct hb_call *c, int code, const char *fmt, ...)
{
	struct err e = { 0 };
	char text[ERR_MSG_SIZE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	(void)err_say(&e, code, "%s: %s", c->method, text);
	finish_call(hb, c, code, &e);
}

static void
wait_and_retry(struct hb *hb, struct hb_call *c)
{
	reset_call(c);
	c->retry_ms = hb->now_ms + hb_random(JITTER_MS);
}

static const uint8_t *
request_of(const struct hb_call *c, size_t *ret_len)
{
	*ret_len = c->mapped ? c->mapped_len : c->request.len;
	return c->mapped ? c->mapped : c->request.data;
}

static void
send_request(struct hb_call *c)
{
	size_t len, head = c->head_out.len;
	const uint8_t *body = request_of(c, &len);

	if (c->sent < head)
		c->sent += hb_stream_write(c->stream, c->head_out.data + c->sent, head - c->sent);
	if (c->sent >= head && c->sent < head + len)
		c->sent += hb_stream_write(c->stream, body + c->sent - head, head + len - c->sent);
	if (c->sent > 0)
		c->tried = true;
}

/* The frame that opens the stream includes the mode byte. */
static void
start_call(struct hb *hb, struct hb_call *c, struct hb_conn *conn)
{
	static const uint8_t mode = HB_RPC_NOMAD;

	if (conn->yamux.n_unacked >= HB_YAMUX_UNACKED_MAX)
		return; /* retried in a later turn, after the server has accepted streams */
	c->stream = hb_stream_open(&conn->yamux, c);
	if (!c->stream) {
		wait_and_retry(hb, c);
		return;
	}
	hb_buf_add(&c->head_out, &mode, 1);
	hb_rpc_put_request(&c->head_out, c->method, ++hb->last_seq);
	c->stream->ops = &stream_ops;
	c->conn = conn;
	c->begun_ns = clock_boot_ns();
	send_request(c);
}

/* --- answers --- */

/* Returns whether a server reports a temporary failure, so that another one may succeed. */
static bool
is_passing(const char *error)
{
	return strstr(error, "No cluster leader") ||
	       strstr(error, "Not ready to serve consistent reads");
}

/* Returns whether the leader failed while a server forwarded the call to it. The call may have been
 * executed, as when a server itself fails. */
static bool
is_lost_between_servers(const char *error)
{
	static const char *const signs[] = { "EOF", "connection refused", "connection reset",
		"broken pipe", "stream closed", "session shutdown", "i/o timeout" };

	for (size_t i = 0; i < ELEMENTSOF(signs); i++)
		if (strstr(error, signs[i]))
			return true;
	return false;
}

static void
on_answer(struct hb *hb, struct hb_call *c)
{
	if (c->error && c->repeat && is_lost_between_servers(c->error) &&
	    hb->now_ms < c->deadline_ms) {
		wait_and_retry(hb, c);
		return;
	}
	if (c->error && is_passing(c->error) && hb->now_ms < c->deadline_ms) {
		hb_link_complain(hb->link, c->error);
		wait_and_retry(hb, c);
		return;
	}
	finish_call(hb, c, 0, NULL);
}

/* Returns the bytes consumed, or -EBADMSG for an invalid head. */
static ssize_t
take_head(struct hb_call *c, const uint8_t *data, size_t len)
{
	static struct hb_rpc_head head;
	bool done = false;
	ssize_t n = hb_rpc_scan(&c->scan, data, len, &done);

	if (n < 0 || (size_t)n > HB_RPC_HEAD_MAX - c->head_in.len)
		return -EBADMSG;
	hb_buf_add(&c->head_in, data, (size_t)n);
	if (!done)
		return n;
	if (hb_rpc_get_head(c->head_in.data, c->head_in.len, &head) < 0)
		return -EBADMSG;
	if (head.error[0])
		c->error = mem_strdup(head.error);
	hb_buf_done(&c->head_in);
	c->scan = (struct hb_rpc_scan){ 0 };
	c->in_body = true;
	return n;
}

static void
on_data(struct hb_stream *s, const uint8_t *data, size_t len)
{
	struct hb *hb = s->session->user;
	struct hb_call *c = s->user;
	ssize_t n = 0;
	bool done = false;
	int r = 0;

	hb_stream_took(c->stream, len);
	if (!c->in_body) {
		n = take_head(c, data, len);
		if (n < 0) {
			fail_call(hb, c, -EBADMSG, "the server's answer is invalid");
			return;
		}
		data += n;
		len -= (size_t)n;
	}
	if (!c->in_body)
		return;
	n = hb_rpc_scan(&c->scan, data, len, &done);
	if (n >= 0)
		r = body_add(&c->body, data, (size_t)n);
	if (n < 0 || r < 0)
		fail_call(hb, c, n < 0 ? -EBADMSG : r, "%s",
		    n < 0            ? "the server's answer is invalid"
		    : r == -EMSGSIZE ? "the server's answer is too large"
				     : strerrordesc_np(-r));
	else if (done)
		on_answer(hb, c);
}

/* Handles the loss of a call's connection or stream. A call that no server has read is sent to the
 * next one. */
static void
lose_call(struct hb *hb, struct hb_call *c, const char *why)
{
	if (c->repeat || !c->tried)
		wait_and_retry(hb, c);
	else
		fail_call(hb, c, -ECONNRESET, "%s", why);
}

static void
on_fin(struct hb_stream *s)
{
	lose_call(s->session->user, s->user, "the server closed the stream without an answer");
}

static void
on_reset(struct hb_stream *s)
{
	struct hb_call *c = s->user;

	if (!s->acked)
		c->tried = false; /* no server has read it */
	c->stream = NULL;
	on_fin(s);
}

static void
on_window(struct hb_stream *s)
{
	send_request(s->user);
}

static const struct hb_stream_ops stream_ops = { on_data, on_fin, on_reset, on_window };

void
hb_calls_lose(struct hb *hb, struct hb_conn *conn, const char *why)
{
	struct hb_call *c, *next;

	TAILQ_FOREACH_SAFE (c, &hb->calls, link, next)
		if (c->conn == conn)
			lose_call(hb, c, why);
}

void
hb_calls_move(struct hb *hb, struct hb_conn *conn)
{
	struct hb_call *c;

	TAILQ_FOREACH (c, &hb->calls, link)
		if (c->conn == conn && c->repeat)
			reset_call(c);
}

void
hb_calls_on_room(struct hb *hb, struct hb_conn *conn)
{
	struct hb_call *c;

	TAILQ_FOREACH (c, &hb->calls, link)
		if (c->conn == conn)
			send_request(c);
}

bool
hb_calls_any(const struct hb *hb, const struct hb_conn *conn)
{
	const struct hb_call *c;

	TAILQ_FOREACH (c, &hb->calls, link)
		if (c->conn == conn)
			return true;
	return false;
}

static void
fail_late(struct hb *hb, struct hb_call *c)
{
	if (c->conn)
		hb_link_complain(hb->link, "no answer in time");
	if (c->conn || hb_link_current(hb->link))
		fail_call(hb, c, -ETIMEDOUT, "no answer from %s in time",
		    c->conn ? c->conn->name : "a server");
	else
		fail_call(hb, c, -ENETUNREACH, "%s", hb_link_why(hb->link));
}

uint64_t
hb_calls_tick(struct hb *hb)
{
	struct hb_call *c, *next;
	uint64_t next_ms = UINT64_MAX;

	TAILQ_FOREACH_SAFE (c, &hb->calls, link, next) {
		uint64_t when = c->deadline_ms;

		if (hb->now_ms >= c->deadline_ms) {
			fail_late(hb, c);
			continue;
		}
		if (!c->conn && hb->now_ms >= c->retry_ms && hb_link_current(hb->link))
			start_call(hb, c, hb_link_current(hb->link));
		if (!c->conn && c->retry_ms > hb->now_ms && c->retry_ms < when)
			when = c->retry_ms;
		if (when < next_ms)
			next_ms = when;
	}
	return next_ms;
}

/* --- calls of the supervisor --- */

static void
refuse_request(struct hb *hb, uint32_t serial, int code, const char *why)
{
	struct ipc_error_rep error = { .code = code };

	(void)snprintf(error.text, sizeof error.text, "%s", why);
	hb_ipc_tell(hb, IPC_ERROR_REP, serial, &error, -1);
}

static void
answer_request(struct hb *hb, struct hb_call *c, int r, const struct err *e)
{
	HbCallRep rep = HB_CALL_REP__INIT;
	struct err why = { 0 };
	int fd = -1;

	if (r == 0 && !c->error && c->body.fd >= 0) {
		r = fd = hb_body_seal(&c->body);
		if (fd < 0)
			e = err_set(&why, fd, "pass on an answer") ? &why : e;
	}
	if (r < 0) {
		refuse_request(hb, c->serial, r, e->msg);
		return;
	}
	if (c->error)
		rep.error = c->error;
	else if (fd < 0)
		rep.body = (ProtobufCBinaryData){ c->body.buf.len, c->body.buf.data };
	if (!c->error && c->answered)
		c->answered(hb, c);
	CRASH_POINT(HB_BEFORE_ANSWER);
	hb_ipc_tell(hb, fd < 0 ? HB_CALL_REP : HB_CALL_BIG_REP, c->serial, &rep.base, fd);
}

int
hb_call_on_req(struct hb *hb, struct ipc_packet *p, hb_answered_cb *answered, struct err *e)
{
	const HbCallReq *req = p->msg;
	struct hb_buf body = { 0 };
	const void *map = NULL;
	size_t map_len = 0;
	struct hb_call *c;
	int r;

	if (!hb->link)
		return err_say(e, -EPROTO, "a call without servers");
	if (strlen(req->method) >= HB_RPC_METHOD_MAX)
		return err_say(e, -EPROTO, "a method of %zu bytes", strlen(req->method));
	if (p->n_fds > 0) {
		r = fd_memfd_map(p->fds[0], HB_CALL_BODY_MAX, &map, &map_len);
		if (r < 0 || !map)
			return err_say(
			    e, -EPROTO, "a body that is not a sealed memfd, or is too large");
	} else {
		hb_buf_add(&body, req->body.data, req->body.len);
	}
	c = hb_call_new(
	    hb, req->method, &body, map, map_len, req->deadline_ms, req->repeat, answer_request);
	if (c) {
		c->serial = p->serial;
		c->answered = answered;
		CRASH_POINT(HB_BEFORE_CALL);
		return 0;
	}
	hb_buf_done(&body);
	if (map)
		(void)munmap((void *)(uintptr_t)map, map_len);
	refuse_request(hb, p->serial, -EBUSY, "too many calls to the servers at once");
	return 0;
}

void
hb_call_cancel(struct hb *hb, uint32_t serial)
{
	struct hb_call *c, *next;

	TAILQ_FOREACH_SAFE (c, &hb->calls, link, next)
		if (serial != 0 && c->serial == serial) {
			free_call(hb, c);
			return;
		}
}
