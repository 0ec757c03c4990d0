// SPDX-License-Identifier: Apache-2.0
/*
 * hb_main.c: heartbeat's constant and its loop. Runs in: heartbeat. It has the only writable
 * mapping of the lease, so that no other process can keep the node alive. With servers it also has
 * the connections to them and the TLS keys.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/ipc_protobuf.h"
#include "common/clock.h"
#include "common/config_map.h"
#include "common/lease.h"
#include "common/proc.h"
#include "common/tls.h"
#include "heartbeat/hb.h"
#include "heartbeat/hb_beat.h"
#include "heartbeat/hb_call.h"
#include "heartbeat/hb_filter.h"
#include "heartbeat/hb_ipc.h"
#include "heartbeat/hb_link.h"
#include "heartbeat/hb_local_filter.h"
#include "heartbeat/hb_relay.h"
#include "heartbeat/hb_resolve.h"
#include "proto/heartbeat.pb-c.h"

#define HANG_S 60 /* a turn that takes longer ends the process, which is then restarted */

static struct hb hb;
static int resolver_fd = -1;

static const struct proc_spec heartbeat;

/* Still as root, so it does only what the filter forbids later. */
static int
prepare(void *state, const struct proc_args *args, struct err *e)
{
	struct hb *h = state;
	int r;

	h->generation = args->generation;
	h->config = config_map(FD_CONFIG, e);
	if (!h->config)
		return -EINVAL;
	if (h->config->n_servers > 0 && h->config->tls_rpc && tls_load(e) < 0)
		return -ENOENT;
	r = hb_resolve_start(h->config, args, &resolver_fd, e);
	if (r < 0)
		return r;
	/* Maps the page and closes its descriptor, with which the file could be extended or passed
	 * on. After the resolver was forked, which must not inherit the page. */
	h->lease = lease_map(FD_SPECIAL);
	if (!h->lease || dup3(STDIN_FILENO, FD_SPECIAL, O_CLOEXEC) < 0)
		return err_set(e, -errno, "map the lease");
	return 0;
}

static int
dispatch(struct hb *h, struct ipc_packet *p, struct err *e)
{
	switch (p->type) {
	case IPC_HELLO_REQ:
		return proc_answer_hello(&heartbeat, p, e);
	case HB_BEAT_REP:
		hb_beat_on_rep(h, p);
		return 0;
	case HB_CALL_REQ:
	case HB_CALL_BIG_REQ:
		return hb_call_on_req(h, p, hb_beat_on_answer, e);
	case HB_CALL_CANCEL_EV:
		hb_call_cancel(h, ((const HbCallCancelEv *)p->msg)->call);
		return 0;
	case HB_STREAM_ASK_EV:
		return hb_relay_on_ask(h, p->msg, e);
	default:
		return hb_relay_on_event(h, p, e);
	}
}

/* Handles all packets that are there: a supervisor that was stopped may have sent many. Returns 1
 * to continue, 0 if the supervisor is gone, or -errno with *e. */
static int
on_packets(struct hb *h, struct err *e)
{
	static struct ipc_packet packet;
	int r;

	for (int i = 0; i < 64; i++) {
		r = ipc_recv(FD_IPC, IPC_HEARTBEAT, IPC_SUPERVISOR, &packet, MSG_DONTWAIT, e);
		if (r == -EAGAIN)
			return 1;
		if (r == 0 || r == -ECONNRESET)
			return 0;
		if (r > 0)
			r = dispatch(h, &packet, e);
		ipc_packet_done(&packet);
		if (r < 0)
			return r;
	}
	return 1;
}

static uint64_t
earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Runs everything that is due. Returns the timeout for poll(). */
static int
tick(struct hb *h)
{
	uint64_t next_ms = hb_beat_tick(h);

	if (h->link) {
		next_ms = earlier(next_ms, hb_link_tick(h->link));
		next_ms = earlier(next_ms, hb_calls_tick(h));
		hb_link_flush(h->link);
		if (hb_link_has_more(h->link))
			return 0;
	}
	if (next_ms == UINT64_MAX)
		return HANG_S * 1000 / 2;
	if (next_ms <= h->now_ms)
		return 0;
	next_ms -= h->now_ms;
	return next_ms < HANG_S * 1000 / 2 ? (int)next_ms : HANG_S * 1000 / 2;
}

/* Returns 1 to continue, 0 at the end, or -errno with *e. */
static int
turn(struct hb *h, struct err *e)
{
	struct pollfd fds[2 + HB_LINK_POLL_MAX] = { { .fd = FD_LINK, .events = POLLIN },
		{ .fd = FD_IPC, .events = POLLIN } };
	size_t n = 0;
	int timeout, r = 1;

	h->now_ms = clock_ms();
	timeout = tick(h);
	if (h->ipc.first)
		fds[1].events |= POLLOUT;
	if (h->link)
		n = hb_link_poll(h->link, fds + 2);
	(void)alarm(HANG_S);
	if (poll(fds, 2 + n, timeout) < 0)
		return errno == EINTR ? 1 : err_set(e, -errno, "poll");
	h->now_ms = clock_ms();
	if (fds[0].revents) /* nothing is ever sent on the link: any event is its end */
		return 0;
	if (fds[1].revents & POLLOUT)
		r = hb_ipc_flush(&h->ipc, e) < 0 ? 0 : 1;
	if (r > 0 && (fds[1].revents & ~POLLOUT))
		r = on_packets(h, e);
	if (r > 0 && h->link)
		hb_link_ready(h->link, fds + 2, n);
	return r;
}

static bool
uses_conn(const struct hb *h, const struct hb_conn *conn)
{
	return hb_calls_any(h, conn) || hb_relays_any(h, conn);
}

static void
on_room(struct hb *h, struct hb_conn *conn)
{
	hb_relays_on_room(h, conn);
	hb_calls_on_room(h, conn);
}

static void
lose_conn(struct hb *h, struct hb_conn *conn, const char *why)
{
	hb_calls_lose(h, conn, why);
	hb_relays_lose(h, conn);
}

static const struct hb_link_ops link_ops = {
	.open = hb_relay_open,
	.uses = uses_conn,
	.room = on_room,
	.move = hb_calls_move,
	.lose = lose_conn,
	.server = hb_beat_on_server,
};

static int
run(void *state, const struct proc_args *args)
{
	struct hb *h = state;
	struct err e = { 0 };
	int r = 1;

	(void)args;
	h->now_ms = clock_ms();
	hb_ipc_init(&h->ipc);
	hb_beat_init(h);
	if (h->config->n_servers > 0)
		r = hb_link_new(h, &link_ops, resolver_fd, &e) < 0 ? -EINVAL : 1;
	while (r > 0)
		r = turn(h, &e);
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		log_error("%s", e.msg);
	return r < 0;
}

static const struct proc_spec heartbeat = {
	.name = "heartbeat",
	.peer = IPC_HEARTBEAT,
	.codec = &ipc_protobuf,
	.no_new_privs = true,
	.filter = &hb_prog,
	.child = &hb_resolve_child,
	.state = &hb,
	.init = prepare,
	.run = run,
};

/* Without servers: the filter allows no new sockets, and there is no resolver. */
static const struct proc_spec heartbeat_local = {
	.name = "heartbeat",
	.peer = IPC_HEARTBEAT,
	.codec = &ipc_protobuf,
	.no_new_privs = true,
	.filter = &hb_local_prog,
	.state = &hb,
	.init = prepare,
	.run = run,
};

int
main(int argc, char **argv)
{
	/* With at most one argument it only prints its description and has no descriptors. */
	const struct agent_config *config = argc > 2 ? config_map(FD_CONFIG, NULL) : NULL;

	return proc_main(
	    config && config->n_servers == 0 ? &heartbeat_local : &heartbeat, argc, argv);
}
