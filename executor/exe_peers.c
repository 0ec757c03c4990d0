// SPDX-License-Identifier: Apache-2.0
/* exe_peers.c: connections of the supervisor. Only user drover and root may connect, and no peer is
 * trusted. Runs in: executor, after its drop. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "executor/exe.h"

#define SHORTAGE_MS 100
#define HANG_UP_MS  2000

void
exe_peer_close(struct exe *x, size_t i)
{
	close_p(&x->peers[i]);
}

static int
send_state(struct exe *x, int fd, enum exe_msg_type type)
{
	const struct exe_record *r = &x->record;
	const int *fds = x->session ? x->above : &x->pidfd;
	size_t n_fds = type == EXE_HELLO && !x->session && x->pid > 0;
	struct exe_hello h = {
		.head = { .version = EXE_PROTO_VERSION, .type = (uint16_t)type, .size = sizeof h },
		.state = r->state,
		.step = r->step,
		.error = r->error,
		.detail = r->detail,
		.executor_pid = r->executor_pid,
		.task_pid = r->task_pid,
		.task_start_ticks = r->task_start_ticks,
		.started_boot_ns = r->started_boot_ns,
		.started_real_ns = r->started_real_ns,
		.lease_ms = x->lease_ms,
		.kill_signal = x->keep.kill_signal,
		.kill_timeout_ms = x->keep.kill_timeout_ms,
	};
	struct stat st;

	while (x->session && type == EXE_HELLO && n_fds < ELEMENTSOF(x->above) && fds[n_fds] >= 0)
		n_fds++;
	memcpy(h.run, r->run, sizeof h.run);
	if (x->lease_fd >= 0 && fstat(x->lease_fd, &st) == 0) {
		h.lease_dev = st.st_dev;
		h.lease_ino = st.st_ino;
	}
	return fd_send_msg(fd, &h, sizeof h, fds, n_fds, MSG_DONTWAIT);
}

/* The socket stays open here, so that clients wait in its queue while there is no supervisor. */
static int
send_api(struct exe *x, int fd)
{
	const struct exe_head head = { EXE_PROTO_VERSION, EXE_API, sizeof head };

	return x->api < 0 ? 0 : fd_send_msg(fd, &head, sizeof head, &x->api, 1, MSG_DONTWAIT);
}

bool
exe_peer_accept(struct exe *x)
{
	cleanup_close int fd = accept4(x->listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer;
	socklen_t len = sizeof peer;
	size_t i = 0;

	/* The machine is short of a resource: the connection stays in the queue, and the task
	 * continues. */
	if (fd < 0 && (errno == ENFILE || errno == EMFILE || errno == ENOMEM || errno == ENOBUFS))
		return poll(NULL, 0, SHORTAGE_MS) == 0;
	if (fd < 0)
		return errno == EAGAIN || errno == ECONNABORTED;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
	    (peer.uid != 0 && peer.uid != x->keep.drover_uid))
		return true;
	while (i < EXE_PEERS_MAX && x->peers[i] >= 0)
		i++;
	if (i == EXE_PEERS_MAX || send_state(x, fd, EXE_HELLO) < 0 || send_api(x, fd) < 0)
		return true;
	x->peers[i] = steal_fd(&fd);
	return true;
}

void
exe_peers_tell_state(struct exe *x)
{
	for (size_t i = 0; i < EXE_PEERS_MAX; i++)
		if (x->peers[i] >= 0 && send_state(x, x->peers[i], EXE_STATE) < 0)
			exe_peer_close(x, i);
}

/* The session has no peer any more. */
static void
hang_up(struct exe *x)
{
	exe_peer_close(x, 0);
	exe_task_stop(x, SIGHUP, HANG_UP_MS);
}

void
exe_peer_greet(struct exe *x)
{
	int r = send_state(x, x->peers[0], EXE_HELLO);

	for (size_t i = 0; i < ELEMENTSOF(x->above); i++)
		close_p(&x->above[i]);
	if (r < 0)
		hang_up(x);
}

unsigned
exe_peers_tell_exited(struct exe *x)
{
	const struct exe_record *r = &x->record;
	struct exe_exited m = {
		.head = { .version = EXE_PROTO_VERSION, .type = EXE_EXITED, .size = sizeof m },
		.flags = r->flags,
		.exit_code = r->exit_code,
		.exit_signal = r->exit_signal,
		.ended_boot_ns = r->ended_boot_ns,
		.ended_real_ns = r->ended_real_ns,
		.lease_limit_ms = r->lease_limit_ms,
		.lease_last_ok_ns = r->lease_last_ok_ns,
		.lease_late_ns = r->lease_late_ns,
	};
	unsigned told = 0;

	memcpy(m.run, r->run, sizeof m.run);
	for (size_t i = 0; i < EXE_PEERS_MAX; i++) {
		if (x->peers[i] < 0)
			continue;
		if (fd_send_msg(x->peers[i], &m, sizeof m, NULL, 0, MSG_DONTWAIT) == 0)
			told++;
		exe_peer_close(x, i);
	}
	return told;
}

/* Refuses a page that others than root may write, or that is on a file system that may hang. */
static bool
is_page(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == 0 &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

static int
set_lease(struct exe *x, const struct exe_request *req, int *page_fd)
{
	if (*page_fd >= 0 && !is_page(*page_fd))
		return -EPERM;
	if (*page_fd >= 0) {
		close_p(&x->lease_fd);
		x->lease_fd = steal_fd(page_fd);
	}
	if (req->signal) {
		x->keep.kill_signal = req->signal;
		x->keep.kill_timeout_ms = req->kill_timeout_ms;
	}
	x->lease_ms = req->value_ms;
	exe_lease_arm(x);
	return 0;
}

bool
exe_peer_read(struct exe *x, size_t i)
{
	uint8_t buf[EXE_MSG_MAX];
	struct exe_request req;
	cleanup_close int fd = -1;
	size_t n_fds = 0;
	ssize_t n = fd_recv_msg(x->peers[i], buf, sizeof buf, &fd, 1, &n_fds, MSG_DONTWAIT);

	if (n == -EAGAIN)
		return false;
	if (n <= 0 || exe_request_parse(buf, (size_t)n, &req) < 0) {
		x->session ? hang_up(x) : exe_peer_close(x, i);
		return true;
	}
	switch (req.type) {
	case EXE_SIGNAL:
		(void)exe_task_signal(x, (int)req.signal);
		break;
	case EXE_STOP:
		x->record.flags |= x->gone ? 0 : EXE_END_STOP;
		exe_task_stop(x, (int)(req.signal ? req.signal : x->keep.kill_signal),
		    req.signal ? req.value_ms : x->keep.kill_timeout_ms);
		break;
	default:
		if (set_lease(x, &req, &fd) < 0)
			exe_peer_close(x, i);
	}
	return true;
}
