// SPDX-License-Identifier: Apache-2.0
/* run_link.c: the connection of one run with its executor. Runs in: supervisor. */
#include "supervisor/driver/run_link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/log.h"
#include "supervisor/driver/lease_page.h"

#define RETRY_USEC  20000 /* until the next connect() */
#define RETRIES_MAX 250   /* 5 s in which an executor may be too busy to accept */

static void send_orders(struct sup *sup, struct deferred *d);
static void on_ready(struct run_watch *w);

void
run_link_init(struct run_link *l, struct sup *sup, const struct run_link_ops *ops,
    const struct id *run, const char *task)
{
	*l = (struct run_link){ .ops = ops,
		.sup = sup,
		.run = run,
		.task = task,
		.fd = -1,
		.watch = { .fd = -1, .ready = on_ready },
		.send = { .run = send_orders } };
}

void
run_link_close(struct run_link *l)
{
	run_watch_remove(l->sup, &l->watch);
	sup_timer_cancel(&l->retry);
	close_p(&l->fd);
	l->greeted = false;
}

void
run_link_free(struct run_link *l)
{
	run_link_close(l);
	turn_forget_deferred(l->sup, &l->send);
}

/* Returns true if the executor's limit or way to kill is not the job's any more. Executors of
 * version 1 have no field for the way to kill. */
static bool
own_stop_differs(const struct run_link *l)
{
	const struct run_own_stop *job = &l->own_stop, *exe = &l->exe_own_stop;

	return job->limit_ms != exe->limit_ms ||
	       (exe->kill_signal != 0 && (job->kill_signal != exe->kill_signal ||
					     job->kill_timeout_ms != exe->kill_timeout_ms));
}

/*
 * Sends the executor the current lease page, if it reads another one (it would stop its task
 * although beats arrive), and the job's limit and way to kill, if they have changed.
 */
static void
renew_own_stop(struct run_link *l)
{
	const struct exe_lease m = { .head = { EXE_PROTO_VERSION, EXE_LEASE, sizeof m },
		.limit_ms = l->own_stop.limit_ms,
		.kill_signal = l->own_stop.kill_signal,
		.kill_timeout_ms = l->own_stop.kill_timeout_ms };
	cleanup_close int fd = -1;
	struct stat st = { .st_dev = l->exe_lease_dev, .st_ino = l->exe_lease_ino };
	struct err e = { 0 };
	bool page;

	if (l->own_stop.limit_ms != 0) {
		fd = lease_page_open(l->sup, &st, &e);
		if (fd < 0) {
			log_warn("%s", e.msg);
			return;
		}
	}
	page = st.st_dev != l->exe_lease_dev || st.st_ino != l->exe_lease_ino;
	if (!page && !own_stop_differs(l))
		return;
	if (fd_send_msg(l->fd, &m, sizeof m, &fd, page, MSG_DONTWAIT) < 0) {
		log_warn(
		    "task %s: its lease could not be renewed: its executor does not read", l->task);
		return;
	}
	l->exe_own_stop = l->own_stop;
	l->exe_lease_dev = st.st_dev;
	l->exe_lease_ino = st.st_ino;
}

static void
on_hello(struct run_link *l, const struct exe_hello *h)
{
	if (h->state == EXE_RUNNING || h->state == EXE_STOPPING) {
		l->exe_own_stop = (struct run_own_stop){ .limit_ms = h->lease_ms,
			.kill_signal = h->kill_signal,
			.kill_timeout_ms = h->kill_timeout_ms };
		l->exe_lease_dev = h->lease_dev;
		l->exe_lease_ino = h->lease_ino;
		l->greeted = true;
		renew_own_stop(l);
	}
	l->ops->hello(l, h);
	if (l->fd >= 0 && (l->want_stop || l->signals))
		turn_defer(l->sup, &l->send);
}

static void
on_ready(struct run_watch *w)
{
	union exe_from m;
	struct run_link *l = container_of(w, struct run_link, watch);
	cleanup_close int fd = -1;
	size_t n = 0;
	ssize_t len;

	memset(&m, 0, sizeof m);
	len = fd_recv_msg(l->fd, &m, sizeof m, &fd, 1, &n, MSG_DONTWAIT);
	if (len == -EAGAIN)
		return;
	if (len < (ssize_t)sizeof m.head) {
		run_link_close(l);
		l->ops->gone(l);
		return;
	}
	if ((m.head.type == EXE_HELLO || m.head.type == EXE_STATE) &&
	    (size_t)len >= EXE_HELLO_V1_SIZE)
		on_hello(l, &m.hello);
	else if (m.head.type == EXE_EXITED && (size_t)len >= sizeof m.exited)
		l->ops->exited(l, &m.exited);
	else if (m.head.type == EXE_API)
		l->ops->api(l, &fd);
	/* Other messages are those of a newer executor and are ignored: the end is in its record.
	 */
}

static void
on_retry(void *arg)
{
	struct run_link *l = arg;

	run_link_connect(l);
}

static void
retry_soon(struct run_link *l)
{
	if (l->retries++ >= RETRIES_MAX)
		l->ops->stuck(l);
	else
		sup_timer_set(l->sup, &l->retry, CLOCK_MONOTONIC, RETRY_USEC, on_retry, l);
}

/* connect() succeeds exactly while the run has an executor or is being given one. */
void
run_link_connect(struct run_link *l)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	cleanup_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char hex[ID_HEX_SIZE];

	id_to_hex(l->run, hex);
	(void)snprintf(
	    sa.sun_path, sizeof sa.sun_path, "/proc/self/fd/%d/%s.sock", l->sup->sock_dir_fd, hex);
	if (fd < 0) {
		retry_soon(l);
		return;
	}
	if (connect(fd, (struct sockaddr *)&sa, sizeof sa) < 0) {
		if (errno == EAGAIN || errno == EINTR)
			retry_soon(l);
		else
			l->ops->gone(l);
		return;
	}
	if (run_watch_add(l->sup, &l->watch, fd) < 0) {
		retry_soon(l);
		return;
	}
	l->fd = steal_fd(&fd);
}

/* Sends what was requested in the turn: signals and the stop. */
static void
send_orders(struct sup *sup, struct deferred *d)
{
	struct run_link *l = container_of(d, struct run_link, send);

	if (l->fd < 0)
		return;
	if (l->greeted)
		renew_own_stop(l);
	for (uint32_t signo = 1; l->signals; signo++, l->signals >>= 1) {
		const struct exe_signal m = { .head = { EXE_PROTO_VERSION, EXE_SIGNAL, sizeof m },
			.signal = signo };

		if (l->signals & 1)
			(void)fd_send_msg(l->fd, &m, sizeof m, NULL, 0, MSG_DONTWAIT);
	}
	if (l->want_stop && !l->stop_sent) {
		const struct exe_stop m = { .head = { EXE_PROTO_VERSION, EXE_STOP, sizeof m },
			.signal = (uint32_t)l->stop_signal,
			.timeout_ms = l->stop_timeout_ms };

		l->stop_sent = fd_send_msg(l->fd, &m, sizeof m, NULL, 0, MSG_DONTWAIT) == 0;
	}
}

void
run_link_stop(struct run_link *l, int signo, uint64_t timeout_ms)
{
	l->want_stop = true;
	l->stop_sent = false;
	l->stop_signal = signo;
	l->stop_timeout_ms = timeout_ms;
	turn_defer(l->sup, &l->send);
}

void
run_link_set_own_stop(struct run_link *l, const struct run_own_stop *wanted)
{
	l->own_stop = *wanted;
	turn_defer(l->sup, &l->send);
}

void
run_link_signal(struct run_link *l, int signo)
{
	l->signals |= 1ULL << (signo - 1);
	turn_defer(l->sup, &l->send);
}
