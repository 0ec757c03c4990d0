// SPDX-License-Identifier: Apache-2.0
/* proc_many.c: the loop of a helper that works on many requests at once. Runs in: csi-helper,
 * heartbeat, check-helper, listener. */
#include "common/proc_many.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PACKETS_PER_TURN 64 /* a supervisor that was stopped may have sent many */

/* Returns 1, 0 if the supervisor is gone, or -errno with *e. */
static int
receive_packets(const struct proc_many *m, void *state, struct err *e)
{
	static struct ipc_packet packet;
	int r;

	for (int i = 0; i < PACKETS_PER_TURN; i++) {
		r = ipc_recv(FD_IPC, m->spec->peer, IPC_SUPERVISOR, &packet, MSG_DONTWAIT, e);
		if (r == -EAGAIN)
			return 1;
		if (r <= 0)
			return r;
		r = packet.type == IPC_HELLO_REQ ? proc_answer_hello(m->spec, &packet, e)
						 : m->handle(state, &packet, e);
		/* Messages contain secrets of volumes, headers of checks, and tokens. */
		explicit_bzero(packet.arena, packet.arena_used);
		ipc_packet_done(&packet);
		if (r < 0)
			return r;
	}
	return 1;
}

static int
run_turn(const struct proc_many *m, void *state, struct err *e)
{
	struct proc_turn t = { .timeout_ms = -1 };
	const int limit_ms = (int)m->hang_s * 1000 / 2;
	struct pollfd *link, *ipc;
	int r;

	r = m->prepare(state, &t, e);
	if (r <= 0)
		return r;
	link = &t.fds[t.n];
	ipc = link + 1;
	*link = (struct pollfd){ .fd = FD_LINK, .events = POLLIN };
	*ipc = (struct pollfd){ .fd = FD_IPC, .events = POLLIN };
	if (t.sends)
		ipc->events |= POLLOUT;
	if (limit_ms > 0) {
		(void)alarm(m->hang_s);
		if (t.timeout_ms < 0 || t.timeout_ms > limit_ms)
			t.timeout_ms = limit_ms;
	}
	if (poll(t.fds, t.n + 2, t.timeout_ms) < 0)
		return errno == EINTR ? 1 : err_set(e, -errno, "poll");
	if (link->revents) /* nothing is ever sent on a helper's link: any event is its end */
		return 0;
	t.sends = ipc->revents & POLLOUT;
	r = m->ready(state, &t, e);
	return r > 0 && (ipc->revents & ~POLLOUT) ? receive_packets(m, state, e) : r;
}

int
proc_serve_many(const struct proc_many *m, void *state)
{
	struct err e = { 0 };
	int r;

	do
		r = run_turn(m, state, &e);
	while (r > 0);
	if (r == 0 || r == -EPIPE || r == -ECONNRESET)
		return 0;
	log_error("%s", e.msg);
	return 1;
}
