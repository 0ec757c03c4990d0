// SPDX-License-Identifier: Apache-2.0
/* sup_child.c: calls to helpers, and recovery when one dies. Runs in: supervisor. */
#include "supervisor/core/sup_child.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/ipc_protobuf.h"
#include "common/list.h"
#include "common/log.h"
#include "common/mem.h"
#include "proto/csi_helper.pb-c.h"
#include "proto/csi_limits.h"
#include "proto/heartbeat.pb-c.h"
#include "supervisor/core/changed.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_turn.h"

#define TRIES_MAX   3
#define CHECK_USEC  1000000 /* interval of deadline checks while calls are unanswered */
#define USEC_PER_MS 1000
/* The serial number of the HELLO to each new helper; a ping has a number like other calls. */
#define HELLO_SERIAL 0
#define PING_MS      30000 /* a blocking helper may have a request before it */

struct call {
	TAILQ_ENTRY(call) link;
	uint32_t serial;
	unsigned type, flags, tries;
	int fd;
	uint64_t timeout_usec, deadline_usec; /* CLOCK_MONOTONIC; set when the call is sent */
	call_cb *cb;                          /* NULL: cancelled, or a message without answer */
	void *arg;
	size_t len;
	uint8_t packet[];
};

TAILQ_HEAD(call_list, call);

/* A call is staged in its turn, ready once the turn is committed, and sent when the socket accepts
 * it; it is removed with its answer. */
struct child {
	struct sup *sup;
	enum ipc_peer peer;
	int fd; /* -1 between a helper's death and the launcher's new socket */
	sd_event_source *io, *timer;
	struct call_list staged, ready, sent;
	struct deferred commit;
	child_event_cb *event; /* NULL: it sends no messages by itself */
	child_beat_cb *beat;   /* for heartbeat; NULL: answers have no body */
	uint32_t serial, generation, pid;
	uint32_t losses; /* how often it ended without being let go; the last time: */
	int64_t lost_ns;
	struct child_counts counts;
};

struct children {
	struct child of[IPC_PEERS];
	struct ipc_packet in;        /* the packet that is being handled */
	uint8_t out[IPC_PACKET_MAX]; /* a request that is being encoded */
};

static const enum ipc_peer helpers[] = { IPC_EXEC_HELPER, IPC_MOUNT_HELPER, IPC_CSI_HELPER,
	IPC_HEARTBEAT, IPC_CHECK_HELPER, IPC_FILE_HELPER, IPC_JOB_PARSER, IPC_FETCHER,
	IPC_TEMPLATE_RENDERER, IPC_LISTENER, IPC_IMAGE_FETCHER, IPC_IMAGE_UNPACKER,
	IPC_NETWORK_HELPER };

/* Removes and returns the first call; NULL if there is none. */
static struct call *
pop_call(struct call_list *l)
{
	struct call *c = TAILQ_FIRST(l);

	if (c)
		TAILQ_REMOVE(l, c, link);
	return c;
}

static struct call *
take_call(struct call_list *l, uint32_t serial)
{
	struct call *c;

	TAILQ_FOREACH (c, l, link) {
		if (c->serial != serial)
			continue;
		TAILQ_REMOVE(l, c, link);
		return c;
	}
	return NULL;
}

static void
call_free(struct call *c)
{
	close_p(&c->fd);
	free(c);
}

/* Calls of this helper run concurrently, so a late one does not mean that the helper hangs. */
static bool
is_concurrent(const struct child *ch)
{
	return ch->peer == IPC_CSI_HELPER || ch->peer == IPC_HEARTBEAT ||
	       ch->peer == IPC_CHECK_HELPER || ch->peer == IPC_JOB_PARSER ||
	       ch->peer == IPC_FETCHER || ch->peer == IPC_TEMPLATE_RENDERER ||
	       ch->peer == IPC_LISTENER || ch->peer == IPC_IMAGE_FETCHER ||
	       ch->peer == IPC_IMAGE_UNPACKER || ch->peer == IPC_NETWORK_HELPER;
}

/* A helper that is started on demand gets no HELLO before it has work, because a message would
 * start it. */
static bool
is_on_demand(const struct child *ch)
{
	return ch->peer == IPC_CSI_HELPER || ch->peer == IPC_CHECK_HELPER ||
	       ch->peer == IPC_JOB_PARSER || ch->peer == IPC_FETCHER ||
	       ch->peer == IPC_TEMPLATE_RENDERER || ch->peer == IPC_LISTENER ||
	       ch->peer == IPC_IMAGE_FETCHER || ch->peer == IPC_IMAGE_UNPACKER ||
	       ch->peer == IPC_NETWORK_HELPER;
}

static void
call_end(struct sup *sup, struct call *c, int r, const void *rep, int fd, const struct err *e)
{
	if (c->cb)
		c->cb(sup, c->arg, r, rep, fd, e);
	else
		close_p(&fd);
	call_free(c);
	changed_mark(sup, CHANGED_WORK);
}

static void
call_fail(struct child *ch, struct call *c, int code, const char *why)
{
	struct err e = { 0 };

	ch->counts.failures++;
	(void)err_say(
	    &e, code, "%s: %s %s", ipc_msg_info(c->type)->name, ipc_peer_name(ch->peer), why);
	call_end(ch->sup, c, code, NULL, -1, &e);
}

static void
hang_up(struct child *ch)
{
	ch->io = sd_event_source_disable_unref(ch->io);
	close_p(&ch->fd);
	ch->pid = 0;
}

/* The helper has died or is not trusted any more. Calls that may be repeated wait for its
 * successor. */
static void
cut_off(struct child *ch, const char *why)
{
	struct call_list sent = TAILQ_HEAD_INITIALIZER(sent);
	struct call_list again = TAILQ_HEAD_INITIALIZER(again);
	struct call *c;

	if (ch->fd < 0)
		return;
	journal_warn(
	    JOURNAL_HELPER, NULL, "%s %s; waiting for a new one", ipc_peer_name(ch->peer), why);
	ch->losses++;
	ch->lost_ns = clock_real_ns();
	hang_up(ch);
	TAILQ_CONCAT(&sent, &ch->sent, link);
	while ((c = pop_call(&sent))) {
		if ((c->flags & CALL_REPEAT) && c->tries < TRIES_MAX && c->cb)
			TAILQ_INSERT_TAIL(&again, c, link);
		else
			call_fail(ch, c, -ECONNRESET, why);
	}
	/* Repeated calls go before unsent ones, so that the order of the turns is kept. */
	TAILQ_CONCAT(&again, &ch->ready, link);
	TAILQ_CONCAT(&ch->ready, &again, link);
	if (ch->event)
		(void)ch->event(ch->sup, NULL);
}

/* Calls to servers may block for minutes; the timer is set to the next deadline, not earlier. */
static uint64_t
next_deadline(const struct child *ch)
{
	uint64_t next = UINT64_MAX;
	const struct call *c;

	TAILQ_FOREACH (c, &ch->sent, link)
		if (c->deadline_usec < next)
			next = c->deadline_usec;
	return next;
}

static void
arm_timer(struct child *ch)
{
	uint64_t now;

	(void)sd_event_now(ch->sup->event, CLOCK_MONOTONIC, &now);
	(void)sd_event_source_set_time(
	    ch->timer, ch->peer == IPC_HEARTBEAT ? next_deadline(ch) : now + CHECK_USEC);
	(void)sd_event_source_set_enabled(
	    ch->timer, TAILQ_EMPTY(&ch->sent) ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

/* A call that was cancelled before it was sent is not sent. */
static bool
is_to_be_sent(const struct call *c)
{
	return c->cb || (c->flags & CALL_TELL);
}

static void
count_sent(struct child *ch, const struct call *c)
{
	if (!is_to_be_sent(c))
		return;
	ch->counts.packets_out++;
	ch->counts.bytes_out += c->len;
}

static void
send_ready(struct child *ch)
{
	struct call *c;
	uint64_t now;
	int r;

	if (ch->fd < 0)
		return;
	(void)sd_event_now(ch->sup->event, CLOCK_MONOTONIC, &now);
	while ((c = TAILQ_FIRST(&ch->ready))) {
		if (c->len == 0) {
			TAILQ_REMOVE(&ch->ready, c, link);
			call_fail(ch, c, -EMSGSIZE,
			    "cannot take this request: it is larger than a message may be");
			continue;
		}
		r = is_to_be_sent(c)
			? fd_send_msg(ch->fd, c->packet, c->len, &c->fd, c->fd >= 0, MSG_DONTWAIT)
			: 0;
		if (r == -EAGAIN) {
			(void)sd_event_source_set_io_events(ch->io, EPOLLIN | EPOLLOUT);
			break;
		}
		if (r < 0) {
			cut_off(ch, "does not read");
			return;
		}
		TAILQ_REMOVE(&ch->ready, c, link);
		count_sent(ch, c);
		if (!c->cb) {
			call_free(c);
			continue;
		}
		c->tries++;
		c->deadline_usec = now + c->timeout_usec;
		if (!(c->flags & CALL_REPEAT))
			close_p(&c->fd);
		TAILQ_INSERT_TAIL(&ch->sent, c, link);
	}
	if (TAILQ_EMPTY(&ch->ready))
		(void)sd_event_source_set_io_events(ch->io, EPOLLIN);
	arm_timer(ch);
}

static void
on_committed(struct sup *sup, struct deferred *d)
{
	struct child *ch = container_of(d, struct child, commit);

	TAILQ_CONCAT(&ch->ready, &ch->staged, link);
	send_ready(ch);
}

static int
on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct child *ch = userdata;
	struct call *c;
	uint64_t now;

	(void)sd_event_now(ch->sup->event, CLOCK_MONOTONIC, &now);
	TAILQ_FOREACH (c, &ch->sent, link) {
		if (c->deadline_usec > now)
			continue;
		TAILQ_REMOVE(&ch->sent, c, link);
		call_fail(ch, c, -ETIMEDOUT, "did not answer in time");
		/* A blocking helper that misses its deadline is treated as lost. */
		if (!is_concurrent(ch))
			cut_off(ch, "hangs");
		break;
	}
	arm_timer(ch);
	return 0;
}

static int
on_hello_rep(struct child *ch, const struct ipc_hello_rep *rep)
{
	if (strcmp(rep->name, ipc_peer_name(ch->peer)) != 0)
		return -EPROTO;
	ch->pid = rep->pid;
	log_debug("%s runs as pid %u", rep->name, rep->pid);
	return 0;
}

/* The work loop answers a beat, after the commit: the answer proves that the loop works. */
struct beat {
	struct deferred send;
	struct child *ch;
	uint64_t cycle;
	uint32_t serial;
};

static void
send_beat(struct sup *sup, struct deferred *d)
{
	struct beat *b = container_of(d, struct beat, send);
	HbBeatRep rep = HB_BEAT_REP__INIT;

	rep.cycle = b->cycle;
	if (b->ch->beat)
		b->ch->beat(sup, &rep.body.data, &rep.body.len);
	if (b->ch->fd >= 0)
		(void)ipc_send(b->ch->fd, IPC_SUPERVISOR, IPC_HEARTBEAT, HB_BEAT_REP, b->serial,
		    &rep, NULL, 0, MSG_DONTWAIT, NULL);
	free(b);
}

static void
on_beat(struct child *ch, const struct ipc_packet *p)
{
	struct beat *b = mem_new(struct beat);

	*b = (struct beat){ .send.run = send_beat,
		.ch = ch,
		.cycle = ((const HbBeatReq *)p->msg)->cycle,
		.serial = p->serial };
	turn_defer(ch->sup, &b->send);
}

/* If the body is too large for a packet, HB_CALL_REP becomes HB_CALL_BIG_REP, and CSI_CALL_REP
 * becomes CSI_CALL_BIG_REP. */
static bool
is_answer(unsigned type, unsigned request)
{
	if (request == HB_CALL_REQ || request == HB_CALL_BIG_REQ)
		return type == HB_CALL_REP || type == HB_CALL_BIG_REP || type == IPC_ERROR_REP;
	if (request == CSI_CALL_REQ)
		return type == CSI_CALL_REP || type == CSI_CALL_BIG_REP || type == IPC_ERROR_REP;
	return type == request + 1 || type == IPC_ERROR_REP;
}

static bool
is_event(unsigned type)
{
	const char *name = ipc_msg_info(type)->name;

	return strcmp(name + strlen(name) - 3, "_EV") == 0;
}

/* Ends a call with the answer in a memfd. -EPROTO if it is not valid. */
static int
end_with_memfd(struct child *ch, struct call *c, int fd)
{
	struct err e = { 0 };
	ProtobufCMessage *rep =
	    ipc_protobuf_take(&csi_call_rep__descriptor, fd, CSI_REP_BYTES_MAX, &e);

	if (!rep) {
		call_fail(ch, c, -EPROTO, "sent an answer that cannot be read");
		log_error("%s", e.msg);
		return -EPROTO;
	}
	call_end(ch->sup, c, 0, rep, -1, NULL);
	protobuf_c_message_free_unpacked(rep, NULL);
	return 0;
}

static void
count_answer(struct child *ch, const struct call *c, bool failed)
{
	const uint64_t sent_usec = c->deadline_usec - c->timeout_usec;
	uint64_t now;

	(void)sd_event_now(ch->sup->event, CLOCK_MONOTONIC, &now);
	ch->counts.failures += failed;
	histogram_add(&ch->counts.round_trip, now > sent_usec ? now - sent_usec : 0);
}

/* Handles one packet of a helper. -EPROTO if it violates the protocol. */
static int
on_packet(struct child *ch, struct ipc_packet *p)
{
	struct err e = { 0 };
	struct call *c;
	int fd = -1;

	if (ch->peer == IPC_HEARTBEAT)
		changed_mark(ch->sup, CHANGED_LEASE);
	if (p->type == HB_BEAT_REQ) {
		on_beat(ch, p);
		return 0;
	}
	if (p->type == IPC_HELLO_REP && p->serial == HELLO_SERIAL)
		return on_hello_rep(ch, p->msg);
	if (is_event(p->type))
		return ch->event ? ch->event(ch->sup, p) : -EPROTO;
	c = take_call(&ch->sent, p->serial);
	if (!c || !is_answer(p->type, c->type)) {
		if (c)
			call_fail(ch, c, -EPROTO, "sent an answer of the wrong type");
		/* The late answer of a call that timed out or was cancelled is dropped. */
		return !c && is_concurrent(ch) ? 0 : -EPROTO;
	}
	if (p->type == CSI_CALL_BIG_REP) {
		count_answer(ch, c, false);
		return end_with_memfd(ch, c, p->fds[0]);
	}
	count_answer(ch, c, p->type == IPC_ERROR_REP);
	if (p->n_fds > 0)
		fd = steal_fd(&p->fds[0]);
	if (p->type == IPC_ERROR_REP) {
		const struct ipc_error_rep *rep = p->msg;

		(void)err_say(&e, rep->code < 0 ? rep->code : -EIO, "%s", rep->text);
		call_end(ch->sup, c, e.code, NULL, -1, &e);
		return 0;
	}
	call_end(ch->sup, c, 0, p->msg, fd, NULL);
	return 0;
}

static int
on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct child *ch = userdata;
	struct ipc_packet *packet = &ch->sup->children->in;
	struct err e = { 0 };
	int r;

	if (revents & EPOLLOUT)
		send_ready(ch);
	if (ch->fd < 0 || !(revents & ~(uint32_t)EPOLLOUT))
		return 0;
	r = ipc_recv(ch->fd, IPC_SUPERVISOR, ch->peer, packet, MSG_DONTWAIT, &e);
	if (r == -EAGAIN)
		return 0;
	if (r > 0) {
		ch->counts.packets_in++;
		r = on_packet(ch, packet);
		ipc_packet_done(packet);
		if (r >= 0)
			return 0;
		cut_off(ch, "broke the protocol");
	} else if (r == -EPROTO) {
		log_error("%s", e.msg);
		cut_off(ch, "broke the protocol");
	} else {
		cut_off(ch, "has ended");
	}
	return 0;
}

static void
say_hello(struct child *ch)
{
	struct ipc_hello_req hello;
	struct err e = { 0 };

	(void)IPC_TEXT_SET(hello.build, ch->sup->args.build);
	if (ipc_send(ch->fd, IPC_SUPERVISOR, ch->peer, IPC_HELLO_REQ, HELLO_SERIAL, &hello, NULL, 0,
		MSG_DONTWAIT, &e) < 0)
		log_warn("%s", e.msg);
}

/* Takes over fd. The first packet starts the helper. */
static int
attach(struct child *ch, int fd, struct err *e)
{
	int r = fd_set_nonblock(fd, true);

	if (r >= 0)
		r = sd_event_add_io(ch->sup->event, &ch->io, fd, EPOLLIN, on_io, ch);
	if (r < 0) {
		close_p(&fd);
		return err_set(e, r, "take up %s", ipc_peer_name(ch->peer));
	}
	ch->fd = fd;
	ch->generation++;
	if (!is_on_demand(ch) || !TAILQ_EMPTY(&ch->ready) || !TAILQ_EMPTY(&ch->staged))
		say_hello(ch);
	send_ready(ch);
	return 0;
}

static int
on_link(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct sup *sup = userdata;
	struct proc_link link;
	struct err e = { 0 };
	int end = -1;
	size_t n = 0;
	ssize_t len;

	len = fd_recv_msg(fd, &link, sizeof link, &end, 1, &n, MSG_DONTWAIT);
	if (len == -EAGAIN)
		return 0;
	if (len == 0 || len == -ECONNRESET) {
		log_info("the launcher has ended, so the supervisor ends");
		sup->exiting = true;
		return sd_event_source_set_enabled(source, SD_EVENT_OFF);
	}
	if (len != sizeof link || n != 1 || link.helper >= IPC_PEERS ||
	    sup->children->of[link.helper].sup == NULL) {
		close_p(&end);
		log_error("the launcher sent a message that is not a new helper's socket");
		return 0;
	}
	cut_off(&sup->children->of[link.helper], "was replaced");
	if (attach(&sup->children->of[link.helper], end, &e) < 0)
		log_error("%s", e.msg);
	return 0;
}

int
children_new(struct sup *sup, struct err *e)
{
	static const int fds[IPC_PEERS] = {
		[IPC_EXEC_HELPER] = FD_SUP_EXEC,
		[IPC_MOUNT_HELPER] = FD_SUP_MOUNT,
		[IPC_CSI_HELPER] = FD_SUP_CSI,
		[IPC_HEARTBEAT] = FD_SUP_HEARTBEAT,
		[IPC_CHECK_HELPER] = FD_SUP_CHECK,
		[IPC_FILE_HELPER] = FD_SUP_FILE,
		[IPC_JOB_PARSER] = FD_SUP_PARSER,
		[IPC_FETCHER] = FD_SUP_FETCHER,
		[IPC_TEMPLATE_RENDERER] = FD_SUP_RENDERER,
		[IPC_LISTENER] = FD_SUP_LISTENER,
		[IPC_IMAGE_FETCHER] = FD_SUP_IMAGE_FETCHER,
		[IPC_IMAGE_UNPACKER] = FD_SUP_IMAGE_UNPACKER,
		[IPC_NETWORK_HELPER] = FD_SUP_NETWORK,
	};
	int r;

	sup->children = mem_new(struct children);
	r = sd_event_add_io(sup->event, NULL, FD_LINK, EPOLLIN, on_link, sup);
	if (r < 0)
		return err_set(e, r, "listen to the launcher");
	for (size_t i = 0; i < ELEMENTSOF(helpers); i++) {
		struct child *ch = &sup->children->of[helpers[i]];

		*ch = (struct child){
			.sup = sup, .peer = helpers[i], .fd = -1, .commit.run = on_committed
		};
		TAILQ_INIT(&ch->staged);
		TAILQ_INIT(&ch->ready);
		TAILQ_INIT(&ch->sent);
		r = sd_event_add_time(sup->event, &ch->timer, CLOCK_MONOTONIC, 0, 0, on_timer, ch);
		if (r < 0)
			return err_set(e, r, "watch the helpers");
		(void)sd_event_source_set_enabled(ch->timer, SD_EVENT_OFF);
		r = attach(ch, fds[helpers[i]], e);
		if (r < 0)
			return r;
	}
	return 0;
}

void
children_free(struct sup *sup)
{
	if (!sup->children)
		return;
	for (size_t i = 0; i < ELEMENTSOF(helpers); i++) {
		struct child *ch = &sup->children->of[helpers[i]];
		struct call_list *lists[] = { &ch->staged, &ch->ready, &ch->sent };
		struct call *c;

		ch->io = sd_event_source_disable_unref(ch->io);
		ch->timer = sd_event_source_disable_unref(ch->timer);
		close_p(&ch->fd);
		for (size_t l = 0; l < ELEMENTSOF(lists); l++)
			while (ch->sup && (c = pop_call(lists[l])))
				call_free(c);
	}
	free_p(&sup->children);
}

/* Encodes a request. If it is too large for a packet and its type permits, *ret_fd becomes a memfd
 * with the message. */
static ssize_t
encode_call(const struct child *ch, unsigned type, const void *msg, uint8_t *packet, int *ret_fd,
    struct err *e)
{
	ssize_t len = ipc_encode(IPC_SUPERVISOR, ch->peer, type, ch->serial, msg, packet, e);
	CsiCallBigReq big = CSI_CALL_BIG_REQ__INIT;
	const CsiCallReq *call = msg;
	int fd;

	if (len != -EMSGSIZE || type != CSI_CALL_REQ)
		return len;
	big.timeout_ms = call->timeout_ms;
	fd = ipc_protobuf_put(&call->base, CSI_REQ_BYTES_MAX, e);
	if (fd < 0)
		return len;
	*ret_fd = fd;
	return ipc_encode(IPC_SUPERVISOR, ch->peer, CSI_CALL_BIG_REQ, ch->serial, &big, packet, e);
}

uint64_t
child_call(struct sup *sup, enum ipc_peer to, unsigned type, const void *msg, int fd,
    unsigned timeout_ms, unsigned flags, call_cb *cb, void *arg)
{
	uint8_t *packet = sup->children->out;
	struct child *ch = &sup->children->of[to];
	struct err e = { 0 };
	struct call *c;
	ssize_t len;

	if (++ch->serial == HELLO_SERIAL)
		ch->serial++;
	len = encode_call(ch, type, msg, packet, &fd, &e);
	if (len == -EMSGSIZE) { /* the size depends on an operator's input, so this is no bug:
				   send_ready() fails the call */
		log_error("%s", e.msg);
	} else if (len < 0) {
		log_error("%s", e.msg);
		abort();
	}
	c = mem_zeroed(1, sizeof *c + (len > 0 ? (size_t)len : 0));
	c->serial = ch->serial;
	c->type = type;
	c->flags = flags;
	c->fd = fd;
	c->timeout_usec = (uint64_t)timeout_ms * USEC_PER_MS;
	c->cb = cb;
	c->arg = arg;
	if (len > 0) {
		c->len = (size_t)len;
		memcpy(c->packet, packet, c->len);
	}
	if (is_on_demand(ch) && !ch->pid && ch->fd >= 0 && !child_busy(sup, to))
		say_hello(ch);
	TAILQ_INSERT_TAIL(&ch->staged, c, link);
	turn_defer(sup, &ch->commit);
	return (uint64_t)to << 32 | c->serial;
}

uint64_t
child_ping(struct sup *sup, enum ipc_peer to, call_cb *cb, void *arg)
{
	struct ipc_hello_req hello;

	(void)IPC_TEXT_SET(hello.build, sup->args.build);
	return child_call(sup, to, IPC_HELLO_REQ, &hello, -1, PING_MS, CALL_REPEAT, cb, arg);
}

void
child_tell(struct sup *sup, enum ipc_peer to, unsigned type, const void *msg)
{
	(void)child_call(sup, to, type, msg, -1, 0, CALL_TELL, NULL, NULL);
}

void
child_listen(struct sup *sup, enum ipc_peer from, child_event_cb *cb)
{
	sup->children->of[from].event = cb;
}

void
child_answer_beats(struct sup *sup, child_beat_cb *cb)
{
	sup->children->of[IPC_HEARTBEAT].beat = cb;
}

void
child_call_cancel(struct sup *sup, uint64_t call)
{
	struct child *ch = &sup->children->of[call >> 32];
	struct call_list *lists[] = { &ch->staged, &ch->ready, &ch->sent };
	struct call *c;

	if (call == 0)
		return;
	for (size_t l = 0; l < ELEMENTSOF(lists); l++)
		TAILQ_FOREACH (c, lists[l], link)
			if (c->serial == (uint32_t)call)
				c->cb = NULL;
}

void *
child_call_drop(struct sup *sup, uint64_t call)
{
	struct child *ch = &sup->children->of[call >> 32];
	struct call_list *lists[] = { &ch->staged, &ch->ready, &ch->sent };
	struct call *c = NULL;
	void *arg;

	for (size_t l = 0; l < ELEMENTSOF(lists) && !c; l++)
		c = take_call(lists[l], (uint32_t)call);
	if (!c)
		return NULL;
	arg = c->arg;
	call_free(c);
	return arg;
}

bool
child_busy(struct sup *sup, enum ipc_peer to)
{
	const struct child *ch = &sup->children->of[to];

	return !TAILQ_EMPTY(&ch->staged) || !TAILQ_EMPTY(&ch->ready) || !TAILQ_EMPTY(&ch->sent);
}

/* The helper sees EOF and exits, and the launcher makes a new pair; calls that are made in the
 * meantime wait for it. */
void
child_let_go(struct sup *sup, enum ipc_peer who)
{
	struct child *ch = &sup->children->of[who];

	if (ch->pid && !child_busy(sup, who))
		hang_up(ch);
}

uint32_t
child_generation(struct sup *sup, enum ipc_peer to)
{
	return sup->children->of[to].generation;
}

uint32_t
child_pid(struct sup *sup, enum ipc_peer to)
{
	return sup->children->of[to].pid;
}

uint32_t
child_losses(struct sup *sup, enum ipc_peer to, int64_t *ret_last_ns)
{
	*ret_last_ns = sup->children->of[to].lost_ns;
	return sup->children->of[to].losses;
}

static unsigned
count_calls(const struct call_list *l)
{
	const struct call *c;
	unsigned n = 0;

	TAILQ_FOREACH (c, l, link)
		n++;
	return n;
}

const struct child_counts *
child_counts(const struct sup *sup, enum ipc_peer to, unsigned *ret_waiting, unsigned *ret_sent)
{
	const struct child *ch = &sup->children->of[to];

	if (!ch->sup)
		return NULL;
	*ret_waiting = count_calls(&ch->staged) + count_calls(&ch->ready);
	*ret_sent = count_calls(&ch->sent);
	return &ch->counts;
}
