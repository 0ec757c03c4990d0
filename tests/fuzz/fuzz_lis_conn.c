// SPDX-License-Identifier: Apache-2.0
/* fuzz_lis_conn.c: a client of the listener, at the address of health { } or of the API, and what
 * the supervisor answers by a link. The first byte chooses the address, the second is the size of
 * the pieces that come at once; a line "--" separates the client's bytes from the supervisor's. */
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

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 2, *end, *mark;
	const struct in6_addr from = { 0 };
	struct lis_door *d;
	size_t step, len;
	int ends[2];

	if (size < 3)
		return 0;
	if (supervisor < 0)
		begin();
	d = &lis.doors[data[0] % LISTEN_USES];
	step = (size_t)data[1] * 16 + 1;
	end = text + size - 2;
	mark = memmem(text, size - 2, "\n--\n", 4);
	len = mark ? (size_t)(mark + 1 - text) : size - 2;
	mark = mark ? mark + 4 : end;
	HOLDS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
	lis_conn_new(&lis, d, ends[1], &from, "192.0.2.7:4711");
	for (size_t at = 0; at < len; at += step) {
		(void)send(ends[0], text + at, len - at < step ? len - at : step, MSG_NOSIGNAL);
		run_events();
		give_links(mark, (size_t)(end - mark));
		read_all(ends[0]);
		HOLDS(d->n_conns <= 1 && lis.n_relays <= d->n_conns);
	}
	(void)close(ends[0]);
	run_events();
	lis.now_ms += 100000; /* all deadlines, also of what waits on a line */
	for (int i = 0; i < 4 && d->n_conns > 0; i++) {
		(void)lis_lines_tick(&lis);
		(void)lis_doors_tick(&lis);
		run_events();
		lis.now_ms += 100000;
	}
	HOLDS(d->n_conns == 0 && lis.n_relays == 0 && lis_answers_held() == 0);
	return 0;
}
