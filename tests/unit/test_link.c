// SPDX-License-Identifier: Apache-2.0
/* test_link.c: calls to servers, and the streams that they open, as heartbeat sees both. Runs in:
 * unit tests. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "proto/heartbeat.pb-c.h"
#include "supervisor/cluster/link/link.h"
#include "supervisor/core/sup_child.h"
#include "tests/unit/unit.h"

#define WINDOW   (256u * 1024)
#define SAID_MAX 600

/* --- replaces sup_child.c: keeps messages to heartbeat --- */

static struct said {
	unsigned type;
	uint64_t stream; /* of a stream's event; for a cancel, the call */
	char text[200];  /* an error, or a call's method */
	size_t len;      /* of the data */
	bool reset;
	int fd;
} said[SAID_MAX];
static size_t n_said;

static struct {
	call_cb *cb;
	void *arg;
	unsigned timeout_ms, flags;
	bool repeat;
} call;
static child_event_cb *tell_link;
static child_beat_cb *answer_beat;

static struct said *
keep(unsigned type)
{
	ck_assert_uint_lt(n_said, SAID_MAX);
	said[n_said] = (struct said){ .type = type, .fd = -1 };
	return &said[n_said++];
}

void
child_tell(struct sup *sup, enum ipc_peer to, unsigned type, const void *msg)
{
	struct said *s = keep(type);

	ck_assert_int_eq(to, IPC_HEARTBEAT);
	switch (type) {
	case HB_STREAM_ACCEPT_EV:
		s->stream = ((const HbStreamAcceptEv *)msg)->stream;
		(void)snprintf(
		    s->text, sizeof s->text, "%s", ((const HbStreamAcceptEv *)msg)->error);
		return;
	case HB_STREAM_WRITE_EV:
		s->stream = ((const HbStreamWriteEv *)msg)->stream;
		s->len = ((const HbStreamWriteEv *)msg)->data.len;
		return;
	case HB_STREAM_READ_EV:
		s->stream = ((const HbStreamReadEv *)msg)->stream;
		s->len = ((const HbStreamReadEv *)msg)->bytes;
		return;
	case HB_STREAM_CLOSE_EV:
		s->stream = ((const HbStreamCloseEv *)msg)->stream;
		s->reset = ((const HbStreamCloseEv *)msg)->reset;
		return;
	case HB_STREAM_ASK_EV:
		s->stream = ((const HbStreamAskEv *)msg)->stream;
		(void)snprintf(s->text, sizeof s->text, "%s", ((const HbStreamAskEv *)msg)->method);
		return;
	case HB_CALL_CANCEL_EV:
		s->stream = ((const HbCallCancelEv *)msg)->call;
		return;
	default:
		ck_abort_msg("message %u", type);
	}
}

uint64_t
child_call(struct sup *sup, enum ipc_peer to, unsigned type, const void *msg, int fd,
    unsigned timeout_ms, unsigned flags, call_cb *cb, void *arg)
{
	const HbCallReq *req = (const HbCallReq *)msg;
	struct said *s = keep(type);

	ck_assert_int_eq(to, IPC_HEARTBEAT);
	(void)snprintf(s->text, sizeof s->text, "%s", req->method);
	s->len = req->body.len;
	s->fd = fd;
	call.cb = cb;
	call.arg = arg;
	call.timeout_ms = timeout_ms;
	call.flags = flags;
	call.repeat = req->repeat;
	return 7;
}

void *
child_call_drop(struct sup *sup, uint64_t number)
{
	return number == 7 ? call.arg : NULL;
}

void
child_listen(struct sup *sup, enum ipc_peer from, child_event_cb *cb)
{
	tell_link = cb;
}

void
child_answer_beats(struct sup *sup, child_beat_cb *cb)
{
	answer_beat = cb;
}

/* --- the user of the link --- */

static struct sup sup;
static struct link_source src = { .base.sup = &sup };
static char server[64], why_server[64];
static struct {
	unsigned calls, inputs, rooms, gone, ended;
	char why[64]; /* the reason of the end; "well" if there was no error */
	uint64_t stream;
	size_t len, n_input;
	char body[16];
} seen;
static struct {
	unsigned times;
	int r;
	size_t len;
	char text[ERR_MSG_SIZE];
} answer;

static void
on_server(struct sup *s, const char *name, const char *why)
{
	(void)snprintf(server, sizeof server, "%s", name);
	(void)snprintf(why_server, sizeof why_server, "%s", why);
}

static size_t beat_len;

static void
on_beat(struct sup *s, const void **ret_body, size_t *ret_len)
{
	*ret_body = "beat";
	*ret_len = beat_len;
}

static void
on_answer(struct sup *s, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	answer.times++;
	answer.r = r;
	answer.len = len;
	if (r < 0)
		(void)snprintf(answer.text, sizeof answer.text, "%s", e->msg);
	else
		(void)snprintf(answer.text, sizeof answer.text, "%.*s", len < 100 ? (int)len : 0,
		    (const char *)body);
}

static void
on_input(struct sup *s, void *arg, uint64_t stream, const void *body, size_t len)
{
	seen.inputs++;
	seen.n_input = len;
}

static void
on_room(struct sup *s, void *arg, uint64_t stream)
{
	seen.rooms++;
}

static void
on_gone(struct sup *s, void *arg, uint64_t stream)
{
	ck_assert_ptr_eq(arg, &seen);
	ck_assert_uint_eq(stream, seen.stream);
	seen.gone++;
}

static void
on_end(struct sup *s, void *arg, uint64_t stream, const char *error)
{
	ck_assert_ptr_eq(arg, &seen);
	seen.ended++;
	(void)snprintf(seen.why, sizeof seen.why, "%s", error ? error : "well");
}

static const struct link_stream_ops ops = { on_input, on_room, on_gone, on_end };

static void
serve(struct sup *s, uint64_t stream, const void *body, size_t len)
{
	seen.calls++;
	seen.stream = stream;
	seen.len = len;
	memcpy(seen.body, body, len < sizeof seen.body ? len : sizeof seen.body);
	link_stream_watch(s, stream, &ops, &seen);
}

static const struct link_events events = { on_beat, on_answer, on_server };
static const struct link_method methods[] = {
	{ "A.Unary", false, serve, ACL_OPEN },
	{ "A.Stream", true, serve, ACL_OPEN },
	{ 0 },
};

static bool holds;

static void
gate(struct sup *s, const struct link_method *method, uint64_t stream, const void *body, size_t len)
{
	if (holds)
		link_stream_hold(s, stream);
	method->fn(s, stream, body, len);
}

static void
begin(void)
{
	sup.source = &src.base;
	n_said = 0;
	holds = false;
	memset(&seen, 0, sizeof seen);
	memset(&answer, 0, sizeof answer);
	link_new(&src, &events, methods, gate);
}

static void
end(void)
{
	link_free(&src);
	ck_assert_ptr_null(tell_link);
}

/* --- messages of heartbeat --- */

static int
say(unsigned type, void *msg)
{
	static struct ipc_packet p;

	p.type = type;
	p.msg = msg;
	p.n_fds = 0;
	return tell_link(&sup, &p);
}

static int
open_stream(uint64_t stream, const char *method, bool streaming)
{
	HbStreamOpenEv ev = HB_STREAM_OPEN_EV__INIT;

	ev.stream = stream;
	ev.method = (char *)(uintptr_t)method;
	ev.streaming = streaming;
	return say(HB_STREAM_OPEN_EV, &ev.base);
}

static void
give(uint64_t stream, const void *data, size_t len, bool last)
{
	HbStreamDataEv ev = HB_STREAM_DATA_EV__INIT;

	ev.stream = stream;
	ev.data = (ProtobufCBinaryData){ len, (uint8_t *)(uintptr_t)data };
	ev.last = last;
	ck_assert_int_eq(say(HB_STREAM_DATA_EV, &ev.base), 0);
}

static void
give_failure(uint64_t stream, bool gone, const char *error)
{
	HbStreamEndEv ev = HB_STREAM_END_EV__INIT;

	ev.stream = stream;
	ev.gone = gone;
	ev.error = (char *)(uintptr_t)error;
	ck_assert_int_eq(say(HB_STREAM_END_EV, &ev.base), 0);
}

static void
give_end(uint64_t stream, bool gone)
{
	give_failure(stream, gone, "");
}

static void
give_room(uint64_t stream, uint32_t bytes)
{
	HbStreamRoomEv ev = HB_STREAM_ROOM_EV__INIT;

	ev.stream = stream;
	ev.bytes = bytes;
	ck_assert_int_eq(say(HB_STREAM_ROOM_EV, &ev.base), 0);
}

/* Returns all bytes written on the stream since the last call. No message exceeds the size of a
 * packet. */
static size_t
written(uint64_t stream)
{
	size_t len = 0, left = 0;

	for (size_t i = 0; i < n_said; i++) {
		if (said[i].type != HB_STREAM_WRITE_EV || said[i].stream != stream) {
			said[left++] = said[i];
			continue;
		}
		ck_assert_uint_le(said[i].len, 32768);
		len += said[i].len;
	}
	n_said = left;
	return len;
}

static void
expect(size_t at, unsigned type, uint64_t stream)
{
	ck_assert_uint_lt(at, n_said);
	ck_assert_uint_eq(said[at].type, type);
	ck_assert_uint_eq(said[at].stream, stream);
}

/* --- streams --- */

START_TEST(unknown_methods_are_refused_in_their_own_way)
{
	ck_assert_int_eq(open_stream(1, "B.None", true), 0);
	expect(0, HB_STREAM_ACCEPT_EV, 1);
	ck_assert_str_eq(said[0].text, "Unknown rpc method: \"B.None\"");
	expect(1, HB_STREAM_CLOSE_EV, 1);
	ck_assert_uint_eq(n_said, 2);
	/* A stream that is not streaming has sent its argument first. A method of the other kind is
	 * unknown too. */
	ck_assert_int_eq(open_stream(2, "A.Stream", false), 0);
	ck_assert_uint_eq(n_said, 2);
	give(2, "x", 1, true);
	expect(2, HB_STREAM_READ_EV, 2);
	expect(3, HB_STREAM_ACCEPT_EV, 2);
	ck_assert_str_eq(said[3].text, "rpc: can't find method A.Stream");
	expect(4, HB_STREAM_CLOSE_EV, 2);
	ck_assert_int_eq(open_stream(3, "nodot", false), 0);
	give(3, "x", 1, true);
	ck_assert_str_eq(said[6].text, "rpc: service/method request ill-formed: nodot");
	ck_assert_uint_eq(seen.calls, 0);
}
END_TEST

START_TEST(an_argument_comes_in_pieces_and_is_called_with_once)
{
	size_t told = 0;

	ck_assert_int_eq(open_stream(5, "A.Unary", false), 0);
	give(5, "ab", 2, false);
	give(5, "", 0, false);
	ck_assert_uint_eq(seen.calls, 0);
	give(5, "cde", 3, true);
	ck_assert_uint_eq(seen.calls, 1);
	ck_assert_uint_eq(seen.len, 5);
	ck_assert_int_eq(memcmp(seen.body, "abcde", 5), 0);
	/* Every consumed byte is confirmed. */
	for (size_t i = 0; i < n_said; i++)
		told += said[i].type == HB_STREAM_READ_EV ? said[i].len : 0;
	ck_assert_uint_eq(told, 5);
	give(5, "more", 4, true);
	ck_assert_uint_eq(seen.inputs, 1);
	ck_assert_uint_eq(seen.n_input, 4);
	link_answer(&sup, 5, NULL, "yes", 3);
	ck_assert_uint_eq(written(5), 3);
	expect(n_said - 1, HB_STREAM_CLOSE_EV, 5);
	/* The stream has ended: events for it, and calls on it, have no effect. */
	sup.source = &src.base;
	n_said = 0;
	give(5, "late", 4, true);
	give_room(5, 3);
	give_end(5, true);
	link_answer(&sup, 5, "late", NULL, 0);
	link_stream_write(&sup, 5, "late", 4);
	link_stream_close(&sup, 5);
	ck_assert_uint_eq(link_stream_room(&sup, 5), 0);
	ck_assert_uint_eq(n_said + seen.gone, 0);
}
END_TEST

START_TEST(a_large_answer_waits_for_room_and_closes_behind_its_last_byte)
{
	const size_t len = 2 * WINDOW + 100500;
	cleanup_free char *body = calloc(1, len);

	ck_assert_int_eq(open_stream(1, "A.Unary", false), 0);
	give(1, "x", 1, true);
	link_answer(&sup, 1, NULL, body, len);
	ck_assert_uint_eq(written(1), WINDOW);
	give_room(1, 100000);
	ck_assert_uint_eq(written(1), 100000);
	ck_assert_uint_ne(said[n_said - 1].type, HB_STREAM_CLOSE_EV);
	/* A window larger than ever used counts as the full window. */
	give_room(1, UINT32_MAX);
	ck_assert_uint_eq(written(1), WINDOW);
	ck_assert_uint_ne(said[n_said - 1].type, HB_STREAM_CLOSE_EV);
	give_room(1, WINDOW);
	ck_assert_uint_eq(written(1), len - 2 * WINDOW - 100000);
	expect(n_said - 1, HB_STREAM_CLOSE_EV, 1);
	ck_assert_uint_eq(seen.rooms, 0);
}
END_TEST

START_TEST(frames_leave_as_there_is_room)
{
	static const char frames[WINDOW];

	ck_assert_int_eq(open_stream(1, "A.Stream", true), 0);
	expect(0, HB_STREAM_ACCEPT_EV, 1);
	give(1, "x", 1, true);
	ck_assert_uint_eq(link_stream_room(&sup, 1), WINDOW);
	link_stream_write(&sup, 1, frames, WINDOW - 1);
	ck_assert_uint_eq(link_stream_room(&sup, 1), 1);
	link_stream_write(&sup, 1, frames, 10);
	ck_assert_uint_eq(written(1), WINDOW);
	/* Nine bytes are pending: no more fit before those are sent. */
	ck_assert_uint_eq(link_stream_room(&sup, 1), 0);
	give_room(1, 5);
	ck_assert_uint_eq(written(1), 5);
	ck_assert_uint_eq(seen.rooms, 0);
	give_room(1, 5);
	ck_assert_uint_eq(written(1), 4);
	ck_assert_uint_eq(seen.rooms, 1);
	ck_assert_uint_eq(link_stream_room(&sup, 1), 1);
}
END_TEST

START_TEST(who_goes_away_is_told_to_who_serves)
{
	/* The end of the input ends a stream, but not an answer that is awaited. */
	ck_assert_int_eq(open_stream(1, "A.Unary", false), 0);
	give(1, "x", 1, true);
	give_end(1, false);
	ck_assert_uint_eq(seen.gone, 0);
	link_answer(&sup, 1, NULL, "y", 1);
	ck_assert_uint_eq(written(1), 1);
	ck_assert_int_eq(open_stream(2, "A.Stream", true), 0);
	give(2, "x", 1, true);
	sup.source = &src.base;
	n_said = 0;
	give_end(2, false);
	ck_assert_uint_eq(seen.gone, 1);
	expect(0, HB_STREAM_CLOSE_EV, 2);
	ck_assert(!said[0].reset);
	/* heartbeat has removed a stream that is gone. */
	ck_assert_int_eq(open_stream(3, "A.Stream", true), 0);
	give(3, "x", 1, true);
	sup.source = &src.base;
	n_said = 0;
	give_end(3, true);
	ck_assert_uint_eq(seen.gone, 2);
	ck_assert_uint_eq(n_said, 0);
}
END_TEST

START_TEST(what_comes_before_the_gate_opens_is_kept)
{
	static const char part[60000];

	holds = true;
	ck_assert_int_eq(open_stream(1, "A.Stream", true), 0);
	give(1, "x", 1, true);
	give(1, "ab", 2, true);
	give(1, "", 0, true);
	give(1, "cde", 3, true);
	ck_assert_uint_eq(seen.inputs, 0);
	/* The server is held back too: only the argument was consumed. */
	ck_assert_uint_eq(n_said, 2);
	expect(1, HB_STREAM_READ_EV, 1);
	link_stream_go_on(&sup, 1);
	ck_assert_uint_eq(seen.inputs, 3);
	ck_assert_uint_eq(seen.n_input, 3);
	expect(2, HB_STREAM_READ_EV, 1);
	ck_assert_uint_eq(said[2].len, 5);
	link_stream_go_on(&sup, 1);
	give(1, "f", 1, true);
	ck_assert_uint_eq(seen.inputs, 4);
	/* Consumes only part of it. */
	link_stream_hold(&sup, 1);
	for (size_t len = 0; len < LINK_OBJECT_MAX && seen.gone == 0; len += sizeof part)
		give(1, part, sizeof part, true);
	ck_assert_uint_eq(seen.gone, 1);
	ck_assert_uint_eq(seen.inputs, 4);
}
END_TEST

START_TEST(too_much_is_cut_off)
{
	static const char part[60000];

	ck_assert_int_eq(open_stream(1, "A.Stream", true), 0);
	give(1, "x", 1, true);
	for (size_t len = 0; len + sizeof part <= LINK_OBJECT_MAX; len += sizeof part)
		give(1, part, sizeof part, false);
	ck_assert_uint_eq(seen.gone, 0);
	give(1, part, sizeof part, false);
	ck_assert_uint_eq(seen.gone, 1);
	expect(n_said - 1, HB_STREAM_CLOSE_EV, 1);
	ck_assert(said[n_said - 1].reset);
}
END_TEST

START_TEST(nonsense_of_heartbeat_is_a_broken_protocol)
{
	HbBeatReq other = HB_BEAT_REQ__INIT;

	ck_assert_int_eq(open_stream(1, "A.Unary", false), 0);
	ck_assert_int_eq(open_stream(1, "A.Unary", false), -EPROTO);
	for (uint64_t i = 2; i <= 256; i++)
		ck_assert_int_eq(open_stream(i, "A.Unary", false), 0);
	ck_assert_int_eq(open_stream(257, "A.Unary", false), -EPROTO);
	ck_assert_int_eq(say(HB_BEAT_REQ, &other.base), -EPROTO);
}
END_TEST

START_TEST(a_stream_that_is_asked_for)
{
	uint64_t id = link_stream_ask(&sup, "B.Stream", "argument", 8, &ops, &seen);
	ck_assert_uint_ne(id, 0);
	expect(0, HB_STREAM_ASK_EV, id);
	ck_assert_str_eq(said[0].text, "B.Stream");
	ck_assert_uint_eq(written(id), 8);
	ck_assert_uint_ne(link_stream_ask(&sup, "B.Stream", "", 0, &ops, &seen), id);
	sup.source = &src.base;
	n_said = 0;
	give(id, "fra", 3, false);
	give(id, "me", 2, true);
	ck_assert_uint_eq(seen.inputs, 1);
	ck_assert_uint_eq(seen.n_input, 5);
	link_stream_write(&sup, id, "more", 4);
	ck_assert_uint_eq(written(id), 4);
	give_room(id, 12);
	ck_assert_uint_eq(seen.rooms, 1);
	sup.source = &src.base;
	n_said = 0;
	give_end(id, false);
	ck_assert_uint_eq(seen.ended, 1);
	ck_assert_str_eq(seen.why, "well");
	expect(0, HB_STREAM_CLOSE_EV, id);
	ck_assert(!said[0].reset);
	give(id, "late", 4, true);
	ck_assert_uint_eq(seen.inputs, 1);
}
END_TEST

static const struct {
	bool gone, cut;
	const char *error, *why;
} bad_ends[] = {
	{ true, false, "Unknown rpc method: \"B.Stream\"", "Unknown rpc method: \"B.Stream\"" },
	{ true, false, "", "the connection to the server was lost" },
	{ false, true, "", "the connection to the server was lost" }, /* in the middle of a frame */
};

START_TEST(why_there_is_nothing_of_a_stream)
{
	uint64_t id = link_stream_ask(&sup, "B.Stream", "x", 1, &ops, &seen);
	if (bad_ends[_i].cut)
		give(id, "fra", 3, false);
	sup.source = &src.base;
	n_said = 0;
	give_failure(id, bad_ends[_i].gone, bad_ends[_i].error);
	ck_assert_uint_eq(seen.ended, 1);
	ck_assert_str_eq(seen.why, bad_ends[_i].why);
	/* Data that the server has not accepted would delay a plain end. */
	ck_assert_uint_eq(n_said, !bad_ends[_i].gone);
	ck_assert(bad_ends[_i].gone || said[0].reset);
}
END_TEST

START_TEST(who_asked_for_a_stream_leaves)
{
	uint64_t id = link_stream_ask(&sup, "B.Stream", "x", 1, &ops, &seen);
	give_room(id, 1);
	sup.source = &src.base;
	n_said = 0;
	link_stream_close(&sup, id);
	expect(0, HB_STREAM_CLOSE_EV, id);
	ck_assert(!said[0].reset);
	id = link_stream_ask(&sup, "B.Stream", "x", 1, &ops, &seen);
	sup.source = &src.base;
	n_said = 0;
	link_stream_close(&sup, id);
	expect(0, HB_STREAM_CLOSE_EV, id);
	ck_assert(said[0].reset);
	give_end(id, true);
	ck_assert_uint_eq(seen.ended, 0);
}
END_TEST

START_TEST(streams_that_are_asked_for_are_bounded)
{
	uint64_t id = 0;
	unsigned n = 0;

	while (n < 200 && (id = link_stream_ask(&sup, "B.Stream", "", 0, &ops, &seen))) {
		n_said = 0;
		n++;
	}
	ck_assert_uint_eq(id, 0);
	ck_assert_uint_eq(n, 80);
	ck_assert_int_eq(
	    open_stream(1, "A.Stream", true), 0); /* streams of servers have a limit of their own */
	ck_assert_int_eq(open_stream(1ull << 63 | 500, "A.Stream", true), -EPROTO);
}
END_TEST

START_TEST(a_frame_that_is_too_large)
{
	static uint8_t piece[32768];
	uint64_t id = link_stream_ask(&sup, "B.Stream", "", 0, &ops, &seen);
	for (size_t len = 0; len <= LINK_FRAME_MAX && !seen.ended; len += sizeof piece) {
		n_said = 0;
		give(id, piece, sizeof piece, false);
	}
	ck_assert_uint_eq(seen.ended, 1);
	expect(n_said - 1, HB_STREAM_CLOSE_EV, id);
	ck_assert(said[n_said - 1].reset);
}
END_TEST

START_TEST(all_streams_end_with_heartbeat)
{
	HbServerEv ev = HB_SERVER_EV__INIT;
	char name[] = "10.0.0.1:4647", other[] = "10.0.0.2:4647", *known[] = { name, other };

	ev.server = name;
	ev.known = known;
	ev.n_known = 2;
	ck_assert_int_eq(say(HB_SERVER_EV, &ev.base), 0);
	ck_assert_str_eq(server, name);
	ck_assert_str_eq(link_server(&sup), name);
	ck_assert_str_eq(link_server_known(&sup, 1), other);
	ck_assert_ptr_null(link_server_known(&sup, 2));
	ck_assert_int_eq(open_stream(1, "A.Stream", true), 0);
	give(1, "x", 1, true);
	sup.source = &src.base;
	n_said = 0;
	ck_assert_int_eq(tell_link(&sup, NULL), 0);
	ck_assert_uint_eq(seen.gone, 1);
	ck_assert_uint_eq(n_said, 0);
	ck_assert_str_eq(server, "");
	ck_assert_str_eq(why_server, "the heartbeat process has ended");
}
END_TEST

/* --- calls --- */

static void
end_call(int r, const char *error, const char *body, int fd)
{
	HbCallRep rep = HB_CALL_REP__INIT;
	struct err e = { 0 };

	rep.error = (char *)(uintptr_t)error;
	rep.body = (ProtobufCBinaryData){ strlen(body), (uint8_t *)(uintptr_t)body };
	if (r < 0)
		(void)err_say(&e, r, "no server");
	call.cb(&sup, call.arg, r, r < 0 ? NULL : &rep.base, fd, r < 0 ? &e : NULL);
}

START_TEST(a_call_has_one_end)
{
	ck_assert_uint_eq(
	    link_call(&sup, "Node.Register", "body", 4, 3000, LINK_REPEAT, on_answer, NULL), 7);
	ck_assert_uint_eq(said[0].type, HB_CALL_REQ);
	ck_assert_str_eq(said[0].text, "Node.Register");
	ck_assert_uint_eq(said[0].len, 4);
	ck_assert_int_eq(call.repeat && call.flags == CALL_REPEAT, 1);
	ck_assert_uint_gt(call.timeout_ms, 3000);
	end_call(0, "", "fine", -1);
	ck_assert_int_eq(answer.r, 0);
	ck_assert_str_eq(answer.text, "fine");
	(void)link_call(&sup, "Node.Register", "body", 4, 3000, 0, on_answer, NULL);
	ck_assert_int_eq(call.repeat || call.flags, 0);
	end_call(0, "node not found", "", -1);
	ck_assert_int_eq(answer.r, -EREMOTEIO);
	ck_assert_str_eq(answer.text, "node not found");
	(void)link_call(&sup, "Node.Register", "body", 4, 3000, 0, on_answer, NULL);
	end_call(-ENETUNREACH, "", "", -1);
	ck_assert_int_eq(answer.r, -ENETUNREACH);
	ck_assert_str_eq(answer.text, "no server");
	ck_assert_uint_eq(answer.times, 3);
}
END_TEST

START_TEST(large_bodies_travel_in_memory)
{
	const size_t len = 100000;
	cleanup_free char *body = calloc(1, len);

	(void)link_call(&sup, "Job.Register", body, len, 3000, 0, on_answer, NULL);
	ck_assert_uint_eq(said[0].type, HB_CALL_BIG_REQ);
	ck_assert_uint_eq(said[0].len, 0);
	ck_assert_int_ge(said[0].fd, 0);
	/* The same body comes back: the callback gets all of it, and no descriptor stays open. */
	end_call(0, "", "", said[0].fd);
	ck_assert_int_eq(answer.r, 0);
	ck_assert_uint_eq(answer.len, len);
	ck_assert_int_eq(fcntl(said[0].fd, F_GETFD), -1);
	/* A body that is not in sealed memory is not read. */
	(void)link_call(&sup, "Job.Register", "x", 1, 3000, 0, on_answer, NULL);
	end_call(0, "", "", memfd_create("open", MFD_CLOEXEC));
	ck_assert_int_lt(answer.r, 0);
}
END_TEST

START_TEST(a_cancelled_call_has_none)
{
	uint64_t number = link_call(&sup, "A.B", "x", 1, 3000, 0, on_answer, NULL);

	sup.source = &src.base;
	n_said = 0;
	link_cancel(&sup, number);
	expect(0, HB_CALL_CANCEL_EV, number);
	link_cancel(&sup, number + 1);
	link_cancel(&sup, 0);
	ck_assert_uint_eq(n_said, 1);
	ck_assert_uint_eq(answer.times, 0);
}
END_TEST

START_TEST(beats)
{
	HbBeatDoneEv ev = HB_BEAT_DONE_EV__INIT;
	uint8_t *data;
	size_t len;

	beat_len = 4;
	answer_beat(&sup, &data, &len);
	ck_assert_uint_eq(len, 4);
	/* A body that is too large for a packet is an error. */
	beat_len = LINK_BEAT_MAX + 1;
	answer_beat(&sup, &data, &len);
	ck_assert_uint_eq(len, 0);
	ev.body = (ProtobufCBinaryData){ 2, (uint8_t *)(uintptr_t) "ok" };
	ck_assert_int_eq(say(HB_BEAT_DONE_EV, &ev.base), 0);
	ck_assert_str_eq(answer.text, "ok");
	ev.code = -EREMOTEIO;
	ev.error = (char *)(uintptr_t) "Permission denied";
	ck_assert_int_eq(say(HB_BEAT_DONE_EV, &ev.base), 0);
	ck_assert_int_eq(answer.r, -EREMOTEIO);
	ck_assert_str_eq(answer.text, "Permission denied");
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, unknown_methods_are_refused_in_their_own_way);
	tcase_add_test(tc, an_argument_comes_in_pieces_and_is_called_with_once);
	tcase_add_test(tc, a_large_answer_waits_for_room_and_closes_behind_its_last_byte);
	tcase_add_test(tc, frames_leave_as_there_is_room);
	tcase_add_test(tc, who_goes_away_is_told_to_who_serves);
	tcase_add_test(tc, what_comes_before_the_gate_opens_is_kept);
	tcase_add_test(tc, too_much_is_cut_off);
	tcase_add_test(tc, nonsense_of_heartbeat_is_a_broken_protocol);
	tcase_add_test(tc, a_stream_that_is_asked_for);
	tcase_add_loop_test(tc, why_there_is_nothing_of_a_stream, 0, ELEMENTSOF(bad_ends));
	tcase_add_test(tc, who_asked_for_a_stream_leaves);
	tcase_add_test(tc, streams_that_are_asked_for_are_bounded);
	tcase_add_test(tc, a_frame_that_is_too_large);
	tcase_add_test(tc, all_streams_end_with_heartbeat);
	tcase_add_test(tc, a_call_has_one_end);
	tcase_add_test(tc, large_bodies_travel_in_memory);
	tcase_add_test(tc, a_cancelled_call_has_none);
	tcase_add_test(tc, beats);
}

int
main(void)
{
	return unit_run("link", add);
}
