// SPDX-License-Identifier: Apache-2.0
/* link_stream.c: streams between this node and servers: one per request of a server, and those that
 * this node opens. Their methods, answers, frames and flow control. Runs in: supervisor. */
#include "supervisor/cluster/link/link_stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "proto/heartbeat.pb-c.h"
#include "supervisor/core/sup_child.h"

#define STREAMS_MAX 256           /* heartbeat has its own, lower limit */
#define WINDOW      (256u * 1024) /* bytes; heartbeat.proto */
#define WRITE_MAX   32768         /* bytes of one HB_STREAM_WRITE_EV */
#define ERROR_MAX   4096          /* bytes of an error text */
#define ASKED       (1ull << 63)  /* bit in the numbers of streams that this node opens */
#define ASKED_MAX   80            /* heartbeat's limit is higher */

struct bytes {
	uint8_t *data;
	size_t len, size;
};

struct link_stream {
	LIST_ENTRY(link_stream) link;
	uint64_t id;
	const struct link_method *method; /* NULL: unknown method */
	char *unknown; /* name of an unknown method, or of a stream that this node opened */
	bool streaming;
	bool asked;     /* this node opened it */
	bool called;    /* the argument came and the method was called */
	bool closing;   /* to be closed as soon as `out` is empty */
	bool held;      /* input goes to `kept`: each object preceded by its length as a size_t */
	bool paused;    /* paused by its owner */
	uint32_t taken; /* bytes not yet acknowledged to the server */
	struct bytes in, out, kept;
	size_t room; /* bytes that the server accepts now */
	const struct link_stream_ops *ops;
	void *arg;
};

/* Reasons why a stream is reset. */
#define TOO_LARGE "a frame of the server is larger than the limit"
#define NO_MEMORY "out of memory for a frame of the server"

static const struct link_stream_ops no_ops;

/* Returns false if there is no memory: a server chooses how much it sends. */
static bool
bytes_add(struct bytes *b, const void *data, size_t len)
{
	if (len > b->size - b->len) {
		size_t size = b->len + len + b->size / 2;
		uint8_t *grown = realloc(b->data, size);

		if (!grown)
			return false;
		b->data = grown;
		b->size = size;
	}
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	return true;
}

static void
bytes_drop(struct bytes *b, size_t n)
{
	b->len -= n;
	if (b->len)
		memmove(b->data, b->data + n, b->len);
}

static struct link_stream *
find_stream(const struct sup *sup, uint64_t id)
{
	struct link_stream *s;

	LIST_FOREACH (s, &link_of(sup)->streams, link)
		if (s->id == id)
			break;
	return s;
}

static void
free_stream(struct link *l, struct link_stream *s)
{
	LIST_REMOVE(s, link);
	if (s->asked)
		l->n_asked--;
	else
		l->n_opened--;
	free(s->in.data);
	free(s->out.data);
	free(s->kept.data);
	free(s->unknown);
	free(s);
}

static void
tell_accept(struct sup *sup, uint64_t id, const char *error)
{
	HbStreamAcceptEv ev = HB_STREAM_ACCEPT_EV__INIT;
	char text[ERROR_MAX];

	(void)snprintf(text, sizeof text, "%s", error ? error : "");
	ev.stream = id;
	ev.error = text;
	child_tell(sup, IPC_HEARTBEAT, HB_STREAM_ACCEPT_EV, &ev.base);
}

static void
tell_close(struct sup *sup, uint64_t id, bool reset)
{
	HbStreamCloseEv ev = HB_STREAM_CLOSE_EV__INIT;

	ev.stream = id;
	ev.reset = reset;
	child_tell(sup, IPC_HEARTBEAT, HB_STREAM_CLOSE_EV, &ev.base);
}

static void
tell_write(struct sup *sup, struct link_stream *s, const uint8_t *data, size_t len)
{
	HbStreamWriteEv ev = HB_STREAM_WRITE_EV__INIT;

	for (size_t n; len > 0; data += n, len -= n) {
		n = len < WRITE_MAX ? len : WRITE_MAX;
		ev.stream = s->id;
		ev.data = (ProtobufCBinaryData){ n, (uint8_t *)(uintptr_t)data };
		child_tell(sup, IPC_HEARTBEAT, HB_STREAM_WRITE_EV, &ev.base);
		s->room -= n;
	}
}

/* Sends as much as there is room for; ends the stream if it was closing and all is sent. Returns
 * true if the stream is gone. */
static bool
flush_out(struct sup *sup, struct link_stream *s)
{
	size_t n = s->out.len < s->room ? s->out.len : s->room;

	tell_write(sup, s, s->out.data, n);
	bytes_drop(&s->out, n);
	if (!s->closing || s->out.len > 0)
		return false;
	tell_close(sup, s->id, false);
	free_stream(link_of(sup), s);
	return true;
}

static void
write_out(struct sup *sup, struct link_stream *s, const void *data, size_t len)
{
	size_t n = s->out.len > 0 ? 0 : len < s->room ? len : s->room;

	tell_write(sup, s, data, n);
	if (!bytes_add(&s->out, (const uint8_t *)data + n, len - n))
		mem_exhausted();
}

/* Ends the stream and reports it to its owner. why: the error for a stream that this node opened;
 * NULL: a normal end. */
static void
lose_stream(struct sup *sup, struct link_stream *s, const char *why)
{
	const struct link_stream_ops *ops = s->ops;
	bool asked = s->asked;
	void *arg = s->arg;
	uint64_t id = s->id;

	free_stream(link_of(sup), s);
	if (asked && ops->on_end)
		ops->on_end(sup, arg, id, why);
	if (!asked && ops->on_gone)
		ops->on_gone(sup, arg, id);
}

static int
on_open(struct sup *sup, const HbStreamOpenEv *ev)
{
	struct link *l = link_of(sup);
	const struct link_method *m = l->methods;
	char error[ERROR_MAX];
	struct link_stream *s;

	if ((ev->stream & ASKED) || find_stream(sup, ev->stream) || l->n_opened == STREAMS_MAX)
		return -EPROTO;
	while (m->name && (strcmp(m->name, ev->method) != 0 || m->streaming != ev->streaming))
		m++;
	if (ev->streaming && !m->name) {
		(void)snprintf(error, sizeof error, "Unknown rpc method: \"%s\"", ev->method);
		tell_accept(sup, ev->stream, error);
		tell_close(sup, ev->stream, false);
		return 0;
	}
	s = mem_new(struct link_stream);
	s->id = ev->stream;
	s->method = m->name ? m : NULL;
	s->unknown = m->name ? NULL : mem_strdup(ev->method);
	s->streaming = ev->streaming;
	s->room = WINDOW;
	s->ops = &no_ops;
	LIST_INSERT_HEAD(&l->streams, s, link);
	l->n_opened++;
	if (s->streaming)
		tell_accept(sup, s->id, NULL);
	return 0;
}

/* The error texts of Go's net/rpc. */
static void
refuse_unknown(struct sup *sup, struct link_stream *s)
{
	const char *dot = strrchr(s->unknown, '.');
	char error[ERROR_MAX];

	(void)snprintf(error, sizeof error, "rpc: %s %s",
	    dot ? "can't find method" : "service/method request ill-formed:", s->unknown);
	link_answer(sup, s->id, error, NULL, 0);
}

static unsigned
object_max(const struct link_stream *s)
{
	return s->asked ? LINK_FRAME_MAX : LINK_OBJECT_MAX;
}

/* Resets a stream whose input cannot be accepted: a server that still writes must not wait for its
 * window. */
static void
refuse_input(struct sup *sup, struct link_stream *s, const char *why)
{
	log_warn("a stream of a server for %s is reset: %s",
	    s->method ? s->method->name : s->unknown, why);
	tell_close(sup, s->id, true);
	lose_stream(sup, s, why);
}

static void
keep_object(struct sup *sup, struct link_stream *s, const struct bytes *in)
{
	if (s->kept.len + sizeof in->len + in->len > LINK_OBJECT_MAX)
		refuse_input(sup, s, TOO_LARGE);
	else if (!bytes_add(&s->kept, &in->len, sizeof in->len) ||
		 !bytes_add(&s->kept, in->data, in->len))
		refuse_input(sup, s, NO_MEMORY);
}

/* Extends the server's window. */
static void
tell_taken(struct sup *sup, struct link_stream *s)
{
	HbStreamReadEv took = HB_STREAM_READ_EV__INIT;

	if (s->taken == 0)
		return;
	took.stream = s->id;
	took.bytes = s->taken;
	s->taken = 0;
	child_tell(sup, IPC_HEARTBEAT, HB_STREAM_READ_EV, &took.base);
}

/* Passes on one complete object. The callee may end the stream. */
static void
deliver_object(struct sup *sup, struct link_stream *s)
{
	struct bytes in = s->in;

	s->in = (struct bytes){ 0 };
	if (!s->called) {
		s->called = true;
		if (s->method)
			link_of(sup)->gate(sup, s->method, s->id, in.data, in.len);
		else
			refuse_unknown(sup, s);
	} else if (s->held) {
		keep_object(sup, s, &in);
	} else if (s->ops->on_input) {
		s->ops->on_input(sup, s->arg, s->id, in.data, in.len);
	}
	free(in.data);
}

static void
on_data(struct sup *sup, const HbStreamDataEv *ev)
{
	struct link_stream *s = find_stream(sup, ev->stream);

	if (!s && (ev->stream & ASKED)) /* the stream belonged to an earlier heartbeat process and
					   is no longer used */
		tell_close(sup, ev->stream, true);
	if (!s || s->closing)
		return;
	if (s->in.len + ev->data.len > object_max(s)) {
		refuse_input(sup, s, TOO_LARGE);
		return;
	}
	if (!bytes_add(&s->in, ev->data.data, ev->data.len)) {
		refuse_input(sup, s, NO_MEMORY);
		return;
	}
	s->taken += (uint32_t)ev->data.len;
	/* The window is not extended for partial objects either: most objects come in several
	 * pieces, and the server would never be slowed down. */
	if (!s->paused && !s->held)
		tell_taken(sup, s);
	if (ev->last)
		deliver_object(sup, s);
}

/* For a streaming method the end of input means that the server's user has left; for others the
 * answer is still wanted. */
static void
on_end(struct sup *sup, const HbStreamEndEv *ev)
{
	struct link_stream *s = find_stream(sup, ev->stream);
	const char *why = NULL;

	if (!s || (!ev->gone && !s->streaming))
		return;
	if (!ev->gone && s->closing)
		return;
	if (!ev->gone)
		tell_close(sup, s->id, s->asked && s->room < WINDOW);
	if (ev->gone || s->in.len > 0)
		why = ev->error[0] ? ev->error : "the connection to the server was lost";
	lose_stream(sup, s, why);
}

static void
on_room(struct sup *sup, const HbStreamRoomEv *ev)
{
	struct link_stream *s = find_stream(sup, ev->stream);

	if (!s)
		return;
	s->room += ev->bytes;
	if (s->room > WINDOW)
		s->room = WINDOW;
	if (flush_out(sup, s))
		return;
	if (s->out.len == 0 && !s->closing && s->ops->on_room)
		s->ops->on_room(sup, s->arg, s->id);
}

int
link_streams_event(struct sup *sup, const struct ipc_packet *p)
{
	const void *msg = p->msg;

	switch (p->type) {
	case HB_STREAM_OPEN_EV:
		return on_open(sup, msg);
	case HB_STREAM_DATA_EV:
		on_data(sup, msg);
		return 0;
	case HB_STREAM_END_EV:
		on_end(sup, msg);
		return 0;
	case HB_STREAM_ROOM_EV:
		on_room(sup, msg);
		return 0;
	default:
		return -EPROTO;
	}
}

void
link_streams_lose(struct sup *sup)
{
	while (!LIST_EMPTY(&link_of(sup)->streams))
		lose_stream(
		    sup, LIST_FIRST(&link_of(sup)->streams), "the heartbeat process has ended");
}

void
link_streams_free(struct link *l)
{
	while (!LIST_EMPTY(&l->streams))
		free_stream(l, LIST_FIRST(&l->streams));
}

/* Functions of link.h. */

uint64_t
link_stream_ask(struct sup *sup, const char *method, const void *body, size_t len,
    const struct link_stream_ops *ops, void *arg)
{
	HbStreamAskEv ev = HB_STREAM_ASK_EV__INIT;
	struct link *l = link_of(sup);
	struct link_stream *s;

	if (l->n_asked == ASKED_MAX)
		return 0;
	s = mem_new(struct link_stream);
	s->unknown = mem_strdup(method);
	s->id = ASKED | ++l->last_asked;
	s->asked = s->streaming = s->called = true;
	s->room = WINDOW;
	s->ops = ops;
	s->arg = arg;
	LIST_INSERT_HEAD(&l->streams, s, link);
	l->n_asked++;
	ev.stream = s->id;
	ev.method = s->unknown;
	child_tell(sup, IPC_HEARTBEAT, HB_STREAM_ASK_EV, &ev.base);
	write_out(sup, s, body, len);
	return s->id;
}

void
link_stream_hold(struct sup *sup, uint64_t stream)
{
	struct link_stream *s = find_stream(sup, stream);

	if (s)
		s->held = true;
}

void
link_stream_go_on(struct sup *sup, uint64_t stream)
{
	struct link_stream *s = find_stream(sup, stream);
	struct bytes kept;
	size_t len;

	if (!s || !s->held)
		return;
	s->held = false;
	kept = s->kept;
	s->kept = (struct bytes){ 0 };
	/* The stream may end during the loop. */
	for (size_t at = 0; at < kept.len && (s = find_stream(sup, stream)); at += len) {
		memcpy(&len, kept.data + at, sizeof len);
		at += sizeof len;
		if (s->ops->on_input)
			s->ops->on_input(sup, s->arg, stream, kept.data + at, len);
	}
	free(kept.data);
	s = find_stream(sup, stream);
	if (s && !s->paused)
		tell_taken(sup, s);
}

void
link_stream_watch(struct sup *sup, uint64_t stream, const struct link_stream_ops *ops, void *arg)
{
	struct link_stream *s = find_stream(sup, stream);

	if (!s)
		return;
	s->ops = ops ? ops : &no_ops;
	s->arg = arg;
}

void
link_answer(struct sup *sup, uint64_t stream, const char *error, const void *body, size_t len)
{
	struct link_stream *s = find_stream(sup, stream);

	if (!s || s->closing)
		return;
	tell_accept(sup, stream, error);
	if (!error)
		write_out(sup, s, body, len);
	link_stream_close(sup, stream);
}

void
link_stream_write(struct sup *sup, uint64_t stream, const void *data, size_t len)
{
	struct link_stream *s = find_stream(sup, stream);

	if (s && !s->closing)
		write_out(sup, s, data, len);
}

size_t
link_stream_room(struct sup *sup, uint64_t stream)
{
	const struct link_stream *s = find_stream(sup, stream);

	return s && !s->closing && s->out.len == 0 ? s->room : 0;
}

void
link_stream_pause(struct sup *sup, uint64_t stream, bool pause)
{
	struct link_stream *s = find_stream(sup, stream);

	if (!s || s->paused == pause)
		return;
	s->paused = pause;
	if (!pause)
		tell_taken(sup, s);
}

void
link_stream_close(struct sup *sup, uint64_t stream)
{
	struct link_stream *s = find_stream(sup, stream);

	if (!s)
		return;
	if (s->asked) { /* unsent bytes are useless and would delay the end */
		/* A server that waits for its window would not see a plain end, so the stream is
		 * reset. */
		tell_close(sup, s->id, s->out.len > 0 || s->room < WINDOW || s->paused);
		free_stream(link_of(sup), s);
		return;
	}
	s->closing = true;
	s->ops = &no_ops;
	(void)flush_out(sup, s);
}
