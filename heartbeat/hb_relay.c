// SPDX-License-Identifier: Apache-2.0
/* hb_relay.c: streams opened by servers or by the supervisor. Runs in: heartbeat. */
#include "heartbeat/hb_relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "heartbeat/hb_ipc.h"
#include "heartbeat/hb_link.h"
#include "heartbeat/hb_rpc.h"
#include "proto/heartbeat.pb-c.h"

#define WINDOW    (256u * 1024) /* unconfirmed bytes per direction: heartbeat.proto */
#define UP_MAX    48000         /* bytes in one HB_STREAM_DATA_EV */
#define QUEUE_MAX 256           /* unread packets beyond which no stream is accepted */
#define ROOM_MIN  (64u * 1024)  /* sent bytes to confirm at once; fewer when `out` is empty */
#define ASKED     (1ull << 63)  /* bit in the numbers of streams that the supervisor opens */
#define ASKED_MAX 100           /* streams of the supervisor at a time */
/* Streams of servers at a time on all connections: twice the limit of one, so that those of an old
 * connection leave enough for the new one. */
#define TAKEN_MAX (2 * HB_YAMUX_INBOUND_MAX)

/*
 * What the server sends next:
 *   MODE      its first byte, then HEAD or OPENER
 *   HEAD      the head of a request, then ARGUMENT; after its answer HEAD again
 *   OPENER    the method of a streaming request; if the supervisor accepts it, OBJECTS
 *   OBJECTS   any number of objects
 *   WAIT      nothing: the supervisor has to answer first
 *   ACCEPT    whether it accepts the supervisor's method, then OBJECTS
 */
enum relay_state {
	RELAY_MODE,
	RELAY_HEAD,
	RELAY_ARGUMENT,
	RELAY_OPENER,
	RELAY_OBJECTS,
	RELAY_WAIT,
	RELAY_ACCEPT
};

struct hb_relay {
	LIST_ENTRY(hb_relay) link;
	uint64_t id; /* for the supervisor; 0 before it knows the stream */
	struct hb_conn *conn;
	struct hb_stream *stream;
	enum relay_state state;
	bool streaming;
	bool accepted; /* the supervisor has sent the head of the answer */
	bool closing;  /* the stream is closed when `out` is empty */
	char method[HB_RPC_METHOD_MAX];
	uint64_t seq;
	struct hb_buf in; /* from the server, bounded by the stream's window */
	struct hb_rpc_scan scan;
	struct hb_buf head;
	size_t up;         /* bytes sent to the supervisor that it has not confirmed */
	struct hb_buf out; /* from the supervisor, bounded by its window */
	size_t room; /* bytes sent to the server that were not yet confirmed to the supervisor */
	size_t own;  /* bytes of `out` that heartbeat added (heads), which are in no window */
};

static const struct hb_stream_ops stream_ops;

static void advance(struct hb *hb, struct hb_relay *r);
static void send_out(struct hb *hb, struct hb_relay *r);

static void
free_relay(struct hb_relay *r)
{
	LIST_REMOVE(r, link);
	hb_buf_done(&r->in);
	hb_buf_done(&r->head);
	hb_buf_done(&r->out);
	free(r);
}

static void
tell_failure(struct hb *hb, uint64_t id, const char *error)
{
	HbStreamEndEv ev = HB_STREAM_END_EV__INIT;

	ev.stream = id;
	ev.gone = true;
	ev.error = (char *)(uintptr_t)error;
	hb_ipc_tell(hb, HB_STREAM_END_EV, 0, &ev.base, -1);
}

static void
tell_end(struct hb *hb, struct hb_relay *r, bool gone)
{
	HbStreamEndEv ev = HB_STREAM_END_EV__INIT;

	if (r->id == 0)
		return;
	ev.stream = r->id;
	ev.gone = gone;
	hb_ipc_tell(hb, HB_STREAM_END_EV, 0, &ev.base, -1);
}

/* Closes the stream on this side. */
static void
end_relay(struct hb *hb, struct hb_relay *r)
{
	tell_end(hb, r, true);
	hb_stream_close(r->stream);
	free_relay(r);
}

/* --- from the server --- */

static struct hb_relay *
add_relay(struct hb *hb, struct hb_conn *conn, struct hb_stream *s)
{
	struct hb_relay *r = mem_new(struct hb_relay);

	r->conn = conn;
	r->stream = s;
	s->user = r;
	s->ops = &stream_ops;
	LIST_INSERT_HEAD(&hb->relays, r, link);
	return r;
}

/* Returns the number of streams that the supervisor (asked) or servers have opened. */
static unsigned
count_relays(const struct hb *hb, bool asked)
{
	const struct hb_relay *r;
	unsigned n = 0;

	LIST_FOREACH (r, &hb->relays, link)
		n += r->stream->id % 2 == asked;
	return n;
}

bool
hb_relay_open(struct hb *hb, struct hb_conn *conn, struct hb_stream *s)
{
	/* Bounds memory: a server could open and reset streams while the supervisor is stopped. */
	if (hb->ipc.n >= QUEUE_MAX || count_relays(hb, false) >= TAKEN_MAX)
		return false;
	(void)add_relay(hb, conn, s);
	return true;
}

/* Announces a server's stream and its method to the supervisor. */
static void
tell_open(struct hb *hb, struct hb_relay *r)
{
	HbStreamOpenEv ev = HB_STREAM_OPEN_EV__INIT;

	r->id = ((uint64_t)hb->generation << 32) + ++hb->last_relay;
	r->accepted = false;
	ev.stream = r->id;
	ev.method = r->method;
	ev.streaming = r->streaming;
	hb_ipc_tell(hb, HB_STREAM_OPEN_EV, 0, &ev.base, -1);
}

static void
take_in(struct hb_relay *r, size_t n)
{
	hb_buf_drop(&r->in, n);
	hb_stream_took(r->stream, n);
}

static int
take_mode(struct hb_relay *r)
{
	uint8_t mode = r->in.data[0];

	if (mode != HB_RPC_NOMAD && mode != HB_RPC_STREAMING)
		return -EPROTO;
	r->streaming = mode == HB_RPC_STREAMING;
	r->state = r->streaming ? RELAY_OPENER : RELAY_HEAD;
	take_in(r, 1);
	return 0;
}

/* Returns 1 and sets *ret when the head is complete, 0 if more bytes are needed, or -errno. */
static int
gather_head(struct hb_relay *r, struct hb_rpc_head *ret)
{
	bool done = false;
	ssize_t n = hb_rpc_scan(&r->scan, r->in.data, r->in.len, &done);

	if (n < 0 || (size_t)n > HB_RPC_HEAD_MAX - r->head.len)
		return -EPROTO;
	hb_buf_add(&r->head, r->in.data, (size_t)n);
	take_in(r, (size_t)n);
	if (!done)
		return 0;
	if (hb_rpc_get_head(r->head.data, r->head.len, ret) < 0)
		return -EPROTO;
	hb_buf_done(&r->head);
	r->scan = (struct hb_rpc_scan){ 0 };
	return 1;
}

static int
take_head(struct hb *hb, struct hb_relay *r)
{
	static struct hb_rpc_head head;
	int code = gather_head(r, &head);

	if (code <= 0)
		return code;
	if (!head.method[0])
		return -EPROTO;
	(void)strcpy(r->method, head.method);
	r->seq = head.seq;
	r->state = r->streaming ? RELAY_WAIT : RELAY_ARGUMENT;
	tell_open(hb, r);
	return 0;
}

/* Returns 1 if the server rejects the method, so that the stream has ended. */
static int
take_accept(struct hb *hb, struct hb_relay *r)
{
	static struct hb_rpc_head head;
	int code = gather_head(r, &head);

	if (code <= 0)
		return code;
	if (head.error[0]) {
		tell_failure(hb, r->id, head.error);
		hb_stream_close(r->stream);
		free_relay(r);
		return 1;
	}
	r->state = RELAY_OBJECTS;
	send_out(hb, r); /* keeps r: it is not closing */
	return 0;
}

/* Passes one piece of an object on to the supervisor, as far as its window allows. */
static int
take_object(struct hb *hb, struct hb_relay *r)
{
	HbStreamDataEv ev = HB_STREAM_DATA_EV__INIT;
	size_t len = r->in.len < UP_MAX ? r->in.len : UP_MAX;
	bool done = false;
	ssize_t n;

	if (len > WINDOW - r->up)
		len = WINDOW - r->up;
	n = hb_rpc_scan(&r->scan, r->in.data, len, &done);
	if (n < 0)
		return -EPROTO;
	ev.stream = r->id;
	ev.data = (ProtobufCBinaryData){ (size_t)n, r->in.data };
	ev.last = done;
	hb_ipc_tell(hb, HB_STREAM_DATA_EV, 0, &ev.base, -1);
	r->up += (size_t)n;
	take_in(r, (size_t)n);
	if (!done)
		return 0;
	r->scan = (struct hb_rpc_scan){ 0 };
	if (r->state == RELAY_ARGUMENT)
		r->state = RELAY_WAIT;
	return 0;
}

static bool
can_go_on(const struct hb_relay *r)
{
	if (r->in.len == 0 || r->closing || r->state == RELAY_WAIT)
		return false;
	return (r->state != RELAY_ARGUMENT && r->state != RELAY_OBJECTS) || r->up < WINDOW;
}

/* Handles received bytes as far as possible; an invalid message ends the stream. */
static void
advance(struct hb *hb, struct hb_relay *r)
{
	while (can_go_on(r)) {
		int code = r->state == RELAY_MODE     ? take_mode(r)
			   : r->state == RELAY_ACCEPT ? take_accept(hb, r)
			   : r->state == RELAY_HEAD || r->state == RELAY_OPENER
			       ? take_head(hb, r)
			       : take_object(hb, r);

		if (code > 0)
			return;
		if (code < 0) {
			log_warn("%s sent an invalid %s on a stream", r->conn->name,
			    r->id & ASKED ? "answer" : "request");
			end_relay(hb, r);
			return;
		}
	}
	/* The server has sent FIN and all its bytes are handled. */
	if (!r->stream->ended || r->in.len > 0 || r->closing)
		return;
	if (r->state == RELAY_OBJECTS || (r->streaming && r->state == RELAY_WAIT))
		tell_end(hb, r, false);
	else if (r->state != RELAY_WAIT)
		end_relay(hb, r);
}

static void
on_data(struct hb_stream *s, const uint8_t *data, size_t len)
{
	struct hb *hb = s->session->user;
	struct hb_relay *r = s->user;

	hb_buf_add(&r->in, data, len);
	advance(hb, r);
}

static void
on_fin(struct hb_stream *s)
{
	advance(s->session->user, s->user);
}

static void
lose_relay(struct hb *hb, struct hb_relay *r)
{
	tell_end(hb, r, true);
	free_relay(r);
}

static void
on_reset(struct hb_stream *s)
{
	lose_relay(s->session->user, s->user);
}

static void
on_window(struct hb_stream *s)
{
	send_out(s->session->user, s->user);
}

static const struct hb_stream_ops stream_ops = { on_data, on_fin, on_reset, on_window };

void
hb_relays_lose(struct hb *hb, struct hb_conn *conn)
{
	struct hb_relay *r, *next;

	LIST_FOREACH_SAFE (r, &hb->relays, link, next)
		if (r->conn == conn)
			lose_relay(hb, r);
}

bool
hb_relays_any(const struct hb *hb, const struct hb_conn *conn)
{
	const struct hb_relay *r;

	LIST_FOREACH (r, &hb->relays, link)
		if (r->conn == conn)
			return true;
	return false;
}

/* --- to the server --- */

static void
tell_room(struct hb *hb, struct hb_relay *r)
{
	HbStreamRoomEv ev = HB_STREAM_ROOM_EV__INIT;

	if (r->id == 0 || r->room == 0 || (r->room < ROOM_MIN && r->out.len > 0))
		return;
	ev.stream = r->id;
	ev.bytes = (uint32_t)r->room;
	r->room = 0;
	hb_ipc_tell(hb, HB_STREAM_ROOM_EV, 0, &ev.base, -1);
}

static void
send_out(struct hb *hb, struct hb_relay *r)
{
	size_t may = r->state == RELAY_ACCEPT ? r->own : r->out.len;
	size_t n = hb_stream_write(r->stream, r->out.data, may);
	size_t own = n < r->own ? n : r->own;

	hb_buf_drop(&r->out, n);
	r->own -= own;
	r->room += n - own;
	if (!r->closing) {
		tell_room(hb, r);
		return;
	}
	if (r->out.len > 0)
		return;
	hb_stream_close(r->stream);
	free_relay(r);
}

void
hb_relays_on_room(struct hb *hb, struct hb_conn *conn)
{
	struct hb_relay *r, *next;

	LIST_FOREACH_SAFE (r, &hb->relays, link, next)
		if (r->conn == conn && r->out.len > 0)
			send_out(hb, r);
}

/* --- from the supervisor --- */

static struct hb_relay *
find_relay(struct hb *hb, uint64_t id)
{
	struct hb_relay *r;

	LIST_FOREACH (r, &hb->relays, link)
		if (id != 0 && r->id == id)
			return r;
	return NULL;
}

static int
on_accept(struct hb *hb, struct hb_relay *r, const HbStreamAcceptEv *ev, struct err *e)
{
	size_t before = r->out.len;

	if (r->accepted)
		return err_say(
		    e, -EPROTO, "stream %llu has been answered already", (unsigned long long)r->id);
	if (r->streaming)
		hb_rpc_put_accept(&r->out, ev->error);
	else
		hb_rpc_put_answer(&r->out, r->method, r->seq, ev->error);
	r->accepted = true;
	r->own += r->out.len - before;
	if (r->streaming && !ev->error[0])
		r->state = RELAY_OBJECTS;
	send_out(hb, r);
	if (find_relay(hb, ev->stream) == r)
		advance(hb, r);
	return 0;
}

static int
on_write(struct hb *hb, struct hb_relay *r, const HbStreamWriteEv *ev, struct err *e)
{
	if (!r->accepted || r->closing || ev->data.len > WINDOW ||
	    r->out.len - r->own + r->room > WINDOW - ev->data.len)
		return err_say(e, -EPROTO, "%zu bytes for stream %llu are more than its window",
		    ev->data.len, (unsigned long long)r->id);
	hb_buf_add(&r->out, ev->data.data, ev->data.len);
	send_out(hb, r);
	return 0;
}

/* A streaming answer ends the stream; on any other stream the next request gets a new number. */
static void
on_close(struct hb *hb, struct hb_relay *r, const HbStreamCloseEv *ev)
{
	/* A server that has not read the first byte of a stream would close the whole connection at
	 * a reset. */
	if (ev->reset && r->state != RELAY_ACCEPT) {
		hb_stream_reset(r->stream);
		free_relay(r);
		return;
	}
	r->id = 0;
	r->room = 0;
	if (r->state == RELAY_ACCEPT) /* the rest waits until the server has accepted the method */
		r->out.len = r->own;
	if (r->streaming || !r->accepted || r->state != RELAY_WAIT) {
		r->closing = true;
		send_out(hb, r);
		return;
	}
	r->own = r->out.len; /* the rest of the answer no longer counts in a window */
	r->state = RELAY_HEAD;
	advance(hb, r);
}

static void
on_read(struct hb *hb, struct hb_relay *r, const HbStreamReadEv *ev)
{
	r->up -= ev->bytes < r->up ? ev->bytes : r->up;
	advance(hb, r);
}

/* Returns NULL with the reason in *ret_why. */
static struct hb_relay *
open_asked(struct hb *hb, const char **ret_why)
{
	struct hb_conn *conn = hb_link_current(hb->link);
	struct hb_stream *s = NULL;

	*ret_why = !conn ? hb_link_why(hb->link) : "too many streams to the servers at once";
	if (conn && count_relays(hb, true) < ASKED_MAX)
		s = hb_stream_open(&conn->yamux, NULL);
	return s ? add_relay(hb, conn, s) : NULL;
}

int
hb_relay_on_ask(struct hb *hb, const HbStreamAskEv *ev, struct err *e)
{
	static const uint8_t mode = HB_RPC_STREAMING;
	const char *why;
	struct hb_relay *r;

	if (!hb->link || !(ev->stream & ASKED) || find_relay(hb, ev->stream) ||
	    strlen(ev->method) >= HB_RPC_METHOD_MAX)
		return err_say(e, -EPROTO, "%s cannot be opened as stream %llu", ev->method,
		    (unsigned long long)ev->stream);
	r = open_asked(hb, &why);
	if (!r) {
		tell_failure(hb, ev->stream, why);
		return 0;
	}
	r->id = ev->stream;
	r->state = RELAY_ACCEPT;
	r->streaming = r->accepted = true;
	(void)strcpy(r->method, ev->method);
	hb_buf_add(&r->out, &mode, 1);
	hb_rpc_put_opener(&r->out, ev->method);
	r->own = r->out.len;
	send_out(hb, r);
	return 0;
}

int
hb_relay_on_event(struct hb *hb, const struct ipc_packet *p, struct err *e)
{
	const void *msg = p->msg;
	uint64_t id = ((const HbStreamCloseEv *)msg)->stream; /* the first field of each */
	struct hb_relay *r = find_relay(hb, id);

	if (!r) /* it ended while this message was on its way */
		return 0;
	switch (p->type) {
	case HB_STREAM_ACCEPT_EV:
		return on_accept(hb, r, msg, e);
	case HB_STREAM_WRITE_EV:
		return on_write(hb, r, msg, e);
	case HB_STREAM_CLOSE_EV:
		on_close(hb, r, msg);
		return 0;
	default:
		on_read(hb, r, msg);
		return 0;
	}
}
