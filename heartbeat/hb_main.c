// SPDX-License-Identifier: Apache-2.0
/*
 * hb_main.c: the heartbeat: once a second it asks the supervisor's work loop for a sign of life and
 * writes the lease. Runs in: heartbeat. It holds the only writable descriptor of the lease, so that
 * no other process can make the node look alive.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/lease.h"
#include "common/proc.h"
#include "heartbeat/hb_filter.h"
#include "proto/heartbeat.pb-c.h"

#define CYCLE_S 1

static struct hb {
	int timer_fd;
	uint64_t cycle;   /* of the question that is out; 0: none yet */
	uint64_t sent_ns; /* CLOCK_BOOTTIME just before it was sent; 0: it is answered, or could not
			     be sent */
} hb;

static const struct proc_spec heartbeat;

/* Made before the filter, started by it: the first beat comes at once. */
static int
open_timer(void *state, const struct proc_args *args, struct err *e)
{
	const struct itimerspec when = { .it_value.tv_nsec = 1, .it_interval.tv_sec = CYCLE_S };
	struct hb *h = state;

	(void)args;
	h->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (h->timer_fd < 0 || timerfd_settime(h->timer_fd, 0, &when, NULL) < 0)
		return err_set(e, -errno, "make the heartbeat's timer");
	return 0;
}

/*
 * The time is taken before the send: a lease must not reach further than the supervisor was seen
 * alive. A full socket is a supervisor that does not read; there is nothing to repeat, the next
 * cycle asks again.
 */
static int
send_beat(struct hb *h, struct err *e)
{
	HbBeatReq req = HB_BEAT_REQ__INIT;
	uint64_t now = boottime_ns(), expirations;
	int r;

	if (read(h->timer_fd, &expirations, sizeof expirations) < 0)
		return errno == EAGAIN ? 0 : err_set(e, -errno, "read the heartbeat's timer");
	req.cycle = ++h->cycle;
	r = ipc_send(FD_IPC, IPC_HEARTBEAT, IPC_SUPERVISOR, HB_BEAT_REQ, (uint32_t)h->cycle,
	    &req.base, NULL, 0, MSG_DONTWAIT, e);
	h->sent_ns = r == 0 ? now : 0;
	return r == -EAGAIN ? 0 : r;
}

/* Only an answer to the question that is out counts, and only once. */
static void
on_beat(struct hb *h, const HbBeatRep *rep)
{
	int r;

	if (rep->cycle != h->cycle || h->sent_ns == 0)
		return;
	CRASH_POINT(HB_BEFORE_BEAT);
	r = lease_write_ok(FD_SPECIAL, h->sent_ns);
	CRASH_POINT(HB_AFTER_BEAT);
	h->sent_ns = 0;
	if (r < 0)
		log_error("write the lease: %s", strerrordesc_np(-r));
}

/* 1 go on, 0 the supervisor has gone, -errno with *e. */
static int
on_packet(struct hb *h, struct err *e)
{
	static struct ipc_packet packet;
	int r = ipc_recv(FD_IPC, IPC_HEARTBEAT, IPC_SUPERVISOR, &packet, MSG_DONTWAIT, e);

	if (r == -EAGAIN)
		return 1;
	if (r == 0 || r == -ECONNRESET)
		return 0;
	if (r > 0 && packet.type == IPC_HELLO_REQ)
		r = proc_answer_hello(&heartbeat, &packet, e);
	else if (r > 0)
		on_beat(h, (const HbBeatRep *)(const void *)packet.msg);
	ipc_packet_done(&packet);
	return r < 0 ? r : 1;
}

static int
run(void *state, const struct proc_args *args)
{
	struct hb *h = state;
	struct pollfd fds[] = {
		{ .fd = FD_LINK, .events = POLLIN },
		{ .fd = FD_IPC, .events = POLLIN },
		{ .fd = h->timer_fd, .events = POLLIN },
	};
	struct err e = { 0 };
	int r = 1;

	(void)args;
	while (r > 0 && poll(fds, ELEMENTSOF(fds), -1) >= 0) {
		if (fds[0].revents) /* the link carries nothing: it is its end */
			return 0;
		if (fds[2].revents && (r = send_beat(h, &e)) == 0)
			r = 1;
		if (r > 0 && fds[1].revents)
			r = on_packet(h, &e);
	}
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		log_error("%s", e.msg);
	return r < 0;
}

static const struct proc_spec heartbeat = {
	.name = "heartbeat",
	.peer = IPC_HEARTBEAT,
	.no_new_privs = true,
	.filter = &hb_prog,
	.state = &hb,
	.init = open_timer,
	.run = run,
};

int
main(int argc, char **argv)
{
	return proc_main(&heartbeat, argc, argv);
}
