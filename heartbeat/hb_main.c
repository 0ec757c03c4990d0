// SPDX-License-Identifier: Apache-2.0
/*
 * hb_main.c: heartbeat's constant and its loop. Runs in: heartbeat. It has the only writable
 * mapping of the lease, so that no other process can keep the node alive. With servers it also has
 * the connections to them and the TLS keys.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/config_map.h"
#include "common/ipc_protobuf.h"
#include "common/lease.h"
#include "common/proc_many.h"
#include "common/tls.h"
#include "heartbeat/hb.h"
#include "heartbeat/hb_beat.h"
#include "heartbeat/hb_call.h"
#include "heartbeat/hb_filter.h"
#include "heartbeat/hb_ipc.h"
#include "heartbeat/hb_link.h"
#include "heartbeat/hb_names.h"
#include "heartbeat/hb_local_filter.h"
#include "heartbeat/hb_relay.h"
#include "heartbeat/hb_resolve.h"
#include "proto/heartbeat.pb-c.h"

#define HANG_S 60

_Static_assert(HB_LINK_POLL_MAX <= PROC_FDS_MAX, "a turn has too few descriptors");

static struct hb hb = { .resolver_fd = -1 };

/* Still as root, so it does only what the filter forbids later. */
static int
open_files(void *state, const struct proc_args *args, struct err *e)
{
	struct hb *h = state;
	int r;

	h->generation = args->generation;
	h->config = config_map(FD_CONFIG, e);
	if (!h->config)
		return -EINVAL;
	if (h->config->n_servers > 0 && h->config->tls_rpc && tls_load(e) < 0)
		return -ENOENT;
	r = hb_resolve_start(h->config, args, &h->resolver_fd, e);
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
handle_message(void *state, struct ipc_packet *p, struct err *e)
{
	struct hb *h = state;

	switch (p->type) {
	case HB_BEAT_REP:
		hb_beat_on_rep(h, p);
		return 0;
	case HB_CALL_REQ:
	case HB_CALL_BIG_REQ:
		return hb_call_on_req(h, p, hb_beat_on_answer, e);
	case HB_NAMES_REQ:
		hb_names_on_req(h, p->serial);
		return 0;
	case HB_CALL_CANCEL_EV:
		hb_call_cancel(h, ((const HbCallCancelEv *)p->msg)->call);
		return 0;
	case HB_STREAM_ASK_EV:
		return hb_relay_on_ask(h, p->msg, e);
	default:
		return hb_relay_on_event(h, p, e);
	}
}

static uint64_t
earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Runs everything that is due. */
static int
prepare_turn(void *state, struct proc_turn *turn, struct err *e)
{
	struct hb *h = state;
	uint64_t next_ms;
	bool more = false;

	h->now_ms = clock_ms();
	next_ms = hb_beat_tick(h);
	if (h->link) {
		next_ms = earlier(next_ms, hb_link_tick(h->link));
		next_ms = earlier(next_ms, hb_calls_tick(h));
		next_ms = earlier(next_ms, hb_names_tick(h));
		hb_link_flush(h->link);
		more = hb_link_has_more(h->link);
		turn->n = hb_link_poll(h->link, turn->fds);
	}
	if (more || next_ms <= h->now_ms)
		turn->timeout_ms = 0;
	else if (next_ms - h->now_ms < INT_MAX)
		turn->timeout_ms = (int)(next_ms - h->now_ms);
	turn->sends = !STAILQ_EMPTY(&h->ipc.packets);
	return 1;
}

static int
handle_events(void *state, const struct proc_turn *turn, struct err *e)
{
	struct hb *h = state;

	h->now_ms = clock_ms();
	if (turn->sends && hb_ipc_flush(&h->ipc, e) < 0)
		return 0;
	if (h->link)
		hb_link_ready(h->link, turn->fds, turn->n);
	return 1;
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

static const struct proc_spec heartbeat;

static const struct proc_many turns = {
	.spec = &heartbeat,
	.hang_s = HANG_S,
	.prepare = prepare_turn,
	.ready = handle_events,
	.handle = handle_message,
};

static int
run_heartbeat(void *state, const struct proc_args *args)
{
	struct hb *h = state;
	struct err e = { 0 };

	h->now_ms = clock_ms();
	TAILQ_INIT(&h->calls);
	hb_ipc_init(&h->ipc);
	hb_beat_init(h);
	if (h->config->n_servers > 0 && hb_link_new(h, &link_ops, h->resolver_fd, &e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	return proc_serve_many(&turns, h);
}

static const struct proc_spec heartbeat = {
	.name = "heartbeat",
	.peer = IPC_HEARTBEAT,
	.codec = &ipc_protobuf,
	.no_new_privs = true,
	.filter = &hb_prog,
	.child = &hb_resolve_child,
	.state = &hb,
	.init = open_files,
	.run = run_heartbeat,
};

/* Without servers: the filter allows no new sockets, and there is no resolver. */
static const struct proc_spec heartbeat_local = {
	.name = "heartbeat",
	.peer = IPC_HEARTBEAT,
	.codec = &ipc_protobuf,
	.no_new_privs = true,
	.filter = &hb_local_prog,
	.state = &hb,
	.init = open_files,
	.run = run_heartbeat,
};

int
main(int argc, char **argv)
{
	/* With at most one argument it only prints its description and has no descriptors. */
	const struct agent_config *config = argc > 2 ? config_map(FD_CONFIG, NULL) : NULL;

	proc_many_outlive_sigterm();
	return proc_main(
	    config && config->n_servers == 0 ? &heartbeat_local : &heartbeat, argc, argv);
}
