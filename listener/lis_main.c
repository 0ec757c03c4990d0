// SPDX-License-Identifier: Apache-2.0
/* lis_main.c: the listener, from its constant, and its loop. It answers requests for the node's
 * health and metrics on the TCP socket that the launcher bound, and exists only if the
 * configuration has an address. Runs in: listener. Asked by: anyone on the network, supervisor. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/config_map.h"
#include "common/ipc.h"
#include "common/proc_many.h"
#include "common/tls.h"
#include "listener/lis.h"
#include "listener/lis_filter.h"

#define HANG_S    60
#define EVENTS    256 /* in one turn; then the supervisor's messages are read */
#define FINISH_MS 700 /* the launcher waits for a second */

static struct lis lis;

static const struct proc_spec listener;

int
lis_watch(struct lis *l, int op, int fd, uint32_t events, struct lis_source *source)
{
	struct epoll_event ev = { .events = events, .data.ptr = source };

	return epoll_ctl(l->epoll_fd, op, fd, &ev) < 0 ? -errno : 0;
}

static int
open_loop(void *state, const struct proc_args *args, struct err *e)
{
	struct lis *l = state;
	const struct agent_config *config = config_map(FD_CONFIG, e);

	if (!config)
		return -EINVAL;
	l->files = config->files_of[IPC_LISTENER];
	(void)munmap((void *)(uintptr_t)config, sizeof *config);
	(void)close(FD_CONFIG);
	lis_lines_init(l);
	TAILQ_INIT(&l->relays);
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0)
		return err_set(e, -errno, "make the loop of connections");
	return l->files & ~(1u << FILE_HEALTH_TOKEN) ? tls_load(e) : 0;
}

static int
handle_message(void *state, struct ipc_packet *p, struct err *e)
{
	struct lis *l = state;
	uint32_t link;
	int fd;

	l->now_ms = clock_ms();
	switch (p->type) {
	case LIS_SERVE_EV:
		if (l->serves)
			return err_say(e, -EPROTO, "LIS_SERVE_EV came twice");
		l->serves = true;
		l->relays_max = ((const struct lis_serve_ev *)p->msg)->api_links;
		return lis_doors_serve(l) ? 0 : err_say(e, -EINVAL, "the listener has no socket");
	case LIS_LINK_EV:
		fd = p->fds[0];
		p->fds[0] = -1;
		link = ((const struct lis_link_ev *)p->msg)->link;
		if (!lis_relay_on_link(l, link, fd))
			lis_line_on_link(l, link, fd);
		return 0;
	case LIS_PROVEN_EV:
		lis_relay_prove(l, ((const struct lis_proven_ev *)p->msg)->link);
		return 0;
	default:
		return err_say(e, -EPROTO, "%s has no handler", ipc_msg_info(p->type)->name);
	}
}

static void
on_event(struct lis *l, struct lis_source *source, uint32_t events)
{
	switch (source->kind) {
	case LIS_DOOR:
		lis_door_accept(l, container_of(source, struct lis_door, source));
		break;
	case LIS_CONN:
		lis_conn_ready(l, container_of(source, struct lis_conn, source), events);
		break;
	case LIS_LINE:
		lis_line_ready(l, container_of(source, struct lis_line, source));
		break;
	case LIS_RELAY:
		lis_relay_ready(l, container_of(source, struct lis_relay, source), events);
		break;
	}
}

/* One event at a time, because each may free the owner of another. */
static int
handle_events(void *state, const struct proc_turn *turn, struct err *e)
{
	struct lis *l = state;
	struct epoll_event ev;

	l->now_ms = clock_ms();
	for (int i = 0; i < EVENTS && epoll_wait(l->epoll_fd, &ev, 1, 0) == 1; i++)
		on_event(l, ev.data.ptr, ev.events);
	return 1;
}

static int
prepare_turn(void *state, struct proc_turn *turn, struct err *e)
{
	struct lis *l = state;
	uint64_t next, lines;

	l->now_ms = clock_ms();
	lines = lis_lines_tick(l); /* it gives clients deadlines */
	next = lis_doors_tick(l);
	if (lines < next)
		next = lines;
	turn->fds[0] = (struct pollfd){ .fd = l->epoll_fd, .events = POLLIN };
	turn->n = 1;
	if (next != UINT64_MAX)
		turn->timeout_ms = next > l->now_ms ? (int)(next - l->now_ms) : 0;
	return 1;
}

/* The supervisor has ended, perhaps for a new configuration. Clients whose request has come get an
 * answer, and those that are read one read it; new ones wait in the queue for the next listener. */
static void
finish_clients(struct lis *l)
{
	uint64_t end = clock_ms() + FINISH_MS;
	struct epoll_event ev;

	lis_doors_close(l);
	while ((l->now_ms = clock_ms()) < end && lis_doors_finish(l))
		if (epoll_wait(l->epoll_fd, &ev, 1, (int)(end - l->now_ms)) == 1)
			on_event(l, ev.data.ptr, ev.events);
}

static const struct proc_many turns = {
	.spec = &listener,
	.hang_s = HANG_S,
	.prepare = prepare_turn,
	.ready = handle_events,
	.handle = handle_message,
};

static int
run_listener(void *state, const struct proc_args *args)
{
	int code;

	lis_doors_open(state);
	code = proc_serve_many(&turns, state);
	finish_clients(state);
	return code;
}

static const struct proc_spec listener = {
	.name = "listener",
	.peer = IPC_LISTENER,
	.no_new_privs = true,
	.filter = &lis_prog,
	.state = &lis,
	.init = open_loop,
	.run = run_listener,
};

int
main(int argc, char **argv)
{
	proc_many_outlive_sigterm();
	return proc_main(&listener, argc, argv);
}
