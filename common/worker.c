// SPDX-License-Identifier: Apache-2.0
/* worker.c: runs child processes of a helper. Runs in: mount-helper, file-helper, job-parser,
 * fetcher, and their workers under the same filter. */
#include "common/worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/privs.h"

static _Noreturn void
run_worker(pid_t parent, int sock, const int *fds, size_t n, worker_fn *fn, const void *arg)
{
	struct worker_result res = { .fd = -1 };
	int all[WORKER_FDS_MAX + 1];

	privs_die_with_parent(parent);
	memcpy(all, fds, n * sizeof all[0]);
	all[n] = sock;
	if (fd_pack(all, n + 1, WORKER_FIRST_FD) < 0)
		_exit(1);
	res.r = fn(WORKER_FIRST_FD, arg, &res, &res.e);
	_exit(fd_send_msg(WORKER_FIRST_FD + (int)n, &res, sizeof res, &res.fd, res.fd >= 0, 0) < 0);
}

static struct worker *
free_slot(struct workers *s)
{
	for (size_t i = 0; i < WORKERS_MAX; i++)
		if (s->v[i].pid == 0)
			return &s->v[i];
	return NULL;
}

/* If all slots are taken the helper waits; each worker has a deadline, so this ends. */
static struct worker *
wait_slot(struct workers *s)
{
	struct pollfd fds[WORKERS_MAX];
	struct worker *w;

	while (!(w = free_slot(s))) {
		for (size_t i = 0; i < WORKERS_MAX; i++)
			fds[i] = (struct pollfd){ .fd = s->v[i].sock, .events = POLLIN };
		(void)poll(fds, WORKERS_MAX, workers_timeout(s));
		workers_collect(s);
	}
	return w;
}

int
worker_start(struct workers *s, const struct ipc_packet *req, unsigned timeout_ms, const int *fds,
    size_t n, worker_fn *fn, const void *arg, worker_done *done, const char *what, struct err *e)
{
	pid_t parent = getpid();
	struct worker *w;
	int pair[2];

	if (n > WORKER_FDS_MAX)
		return err_say(e, -EINVAL, "%s: %zu descriptors are too many", what, n);
	if (s->n_stuck >= WORKERS_STUCK)
		return err_say(e, -EBUSY,
		    "cannot %s: %u earlier operations hang in file systems that do not answer, "
		    "even after SIGKILL",
		    what, s->n_stuck);
	w = wait_slot(s);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "%s: make a socket pair", what);
	*w = (struct worker){ .sock = pair[0], .fn = fn, .done = done };
	w->deadline_ms = clock_ms() + timeout_ms;
	w->type = req ? req->type : 0;
	w->serial = req ? req->serial : 0;
	(void)snprintf(w->what, sizeof w->what, "%s", what);
	w->pid = fork();
	if (w->pid == 0)
		run_worker(parent, pair[1], fds, n, fn, arg);
	(void)close(pair[1]);
	if (w->pid > 0)
		return PROC_LATER;
	w->pid = 0;
	(void)close(pair[0]);
	return err_set(e, -errno, "%s: fork", what);
}

/* Frees the slot and answers the request: with an error, or a reply that consists only of a
 * descriptor if the operation has no `done`. */
static void
finish_worker(struct workers *s, struct worker *w, struct worker_result *res)
{
	static const uint8_t zeros[PROC_REP_MAX];
	struct worker ended = *w;
	struct err e = { 0 };

	(void)close(w->sock);
	*w = (struct worker){ .sock = -1 };
	if (res->r >= 0 && ended.done)
		ended.done(s->spec->state, &ended, res);
	else if (ended.type != 0)
		(void)proc_answer(
		    s->spec, ended.type, ended.serial, res->r, zeros, res->fd, &res->e, &e);
	else if (res->r < 0)
		log_warn("%s", res->e.msg);
	close_p(&res->fd);
}

/* Kills an overdue worker. Most die and are reaped; those that do not stay in s->stuck. */
static void
abandon(struct workers *s, struct worker *w)
{
	struct worker_result res = { .fd = -1 };

	(void)kill(w->pid, SIGKILL);
	s->stuck[s->n_stuck++] = w->pid;
	res.r = err_say(&res.e, -ETIMEDOUT,
	    "%s: no answer in time; worker process %d was killed (%u of %d)", w->what, (int)w->pid,
	    s->n_stuck, WORKERS_STUCK);
	finish_worker(s, w, &res);
}

static void
reap_stuck(struct workers *s)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (unsigned i = 0; i < s->n_stuck; i++)
			if (s->stuck[i] == pid)
				s->stuck[i] = s->stuck[--s->n_stuck];
}

void
workers_collect(struct workers *s)
{
	struct worker_result res;
	size_t n_fds;
	ssize_t n;

	for (struct worker *w = s->v; w < s->v + WORKERS_MAX; w++) {
		if (w->pid == 0)
			continue;
		n = fd_recv_msg(w->sock, &res, sizeof res, &res.fd, 1, &n_fds, MSG_DONTWAIT);
		if (n == -EAGAIN && clock_ms() < w->deadline_ms)
			continue;
		if (n == -EAGAIN) {
			abandon(s, w);
			continue;
		}
		if (n != sizeof res) {
			res = (struct worker_result){ .fd = -1 };
			res.r = err_say(
			    &res.e, -EIO, "%s: worker process %d died", w->what, (int)w->pid);
		} else if (n_fds == 0) {
			res.fd = -1;
		}
		finish_worker(s, w, &res);
	}
	reap_stuck(s);
}

int
workers_timeout(const struct workers *s)
{
	uint64_t next = UINT64_MAX, now = clock_ms();

	for (size_t i = 0; i < WORKERS_MAX; i++)
		if (s->v[i].pid > 0 && s->v[i].deadline_ms < next)
			next = s->v[i].deadline_ms;
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)(next - now) + 1;
}

bool
workers_run(const struct workers *s, worker_fn *fn)
{
	for (size_t i = 0; i < WORKERS_MAX; i++)
		if (s->v[i].pid > 0 && s->v[i].fn == fn)
			return true;
	return false;
}
