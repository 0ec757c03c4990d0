/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_lis.h: a listener without a loop, and the supervisor that answers it, for the fuzz targets
 * of its connections. */
#ifndef DROVER_TESTS_FUZZ_FUZZ_LIS_H
#define DROVER_TESTS_FUZZ_FUZZ_LIS_H

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/ipc.h"
#include "common/proc_fd.h"
#include "listener/lis.h"
#include "tests/fuzz/fuzz.h"

static struct lis lis;
static int supervisor = -1; /* the other end of FD_IPC */

int
lis_watch(struct lis *l, int op, int fd, uint32_t events, struct lis_source *source)
{
	struct epoll_event ev = { .events = events, .data.ptr = source };

	return epoll_ctl(l->epoll_fd, op, fd, &ev) < 0 ? -1 : 0;
}

static void
begin(void)
{
	int ends[2];

	HOLDS(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
	supervisor = fcntl(ends[0], F_DUPFD_CLOEXEC, 100);
	HOLDS(supervisor >= 0 && dup2(ends[1], FD_IPC) == FD_IPC);
	if (ends[0] != FD_IPC)
		(void)close(ends[0]);
	if (ends[1] != FD_IPC)
		(void)close(ends[1]);
	lis.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	lis.relays_max = 4;
	lis.now_ms = 1000;
	TAILQ_INIT(&lis.relays);
	lis_lines_init(&lis);
	for (size_t i = 0; i < LISTEN_USES; i++) {
		lis.doors[i] = (struct lis_door){
			.source.kind = LIS_DOOR, .fd = -1, .is_api = i == LISTEN_API
		};
		TAILQ_INIT(&lis.doors[i].conns);
	}
}

static void
run_events(void)
{
	struct epoll_event ev;

	for (int i = 0; i < 64 && epoll_wait(lis.epoll_fd, &ev, 1, 0) == 1; i++) {
		struct lis_source *source = ev.data.ptr;

		if (source->kind == LIS_CONN)
			lis_conn_ready(
			    &lis, container_of(source, struct lis_conn, source), ev.events);
		else if (source->kind == LIS_LINE)
			lis_line_ready(&lis, container_of(source, struct lis_line, source));
		else
			lis_relay_ready(
			    &lis, container_of(source, struct lis_relay, source), ev.events);
	}
}

/* Answers each wish for a link with one that has these bytes and then ends. */
static void
give_links(const char *answer, size_t len)
{
	char packet[4096];
	ssize_t n;

	while ((n = recv(supervisor, packet, sizeof packet, MSG_DONTWAIT)) > 0) {
		int ends[2];

		HOLDS(
		    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
		(void)send(ends[0], answer, len < 32768 ? len : 32768, MSG_NOSIGNAL);
		if (!lis_relay_on_link(&lis, lis.link, ends[1]))
			lis_line_on_link(&lis, lis.link, ends[1]);
		run_events();
		(void)close(ends[0]);
		run_events();
	}
}

static void
read_all(int fd)
{
	char buf[65536];

	while (recv(fd, buf, sizeof buf, MSG_DONTWAIT) > 0)
		;
}

/* All deadlines pass, also of what waits on a line. */
static void
end_all(const struct lis_door *d)
{
	run_events();
	lis.now_ms += 100000;
	for (int i = 0; i < 4 && d->n_conns > 0; i++) {
		(void)lis_lines_tick(&lis);
		(void)lis_doors_tick(&lis);
		run_events();
		lis.now_ms += 100000;
	}
	HOLDS(d->n_conns == 0 && lis.n_relays == 0 && lis_answers_held() == 0);
}

#endif
