// SPDX-License-Identifier: Apache-2.0
/*
 * mnt_child.c: children for what can hang or take long. Runs in: mount-helper, and its children
 * under the same filter.
 *
 * The helper goes on with other requests while a child works. A child sends one struct mnt_result
 * and exits; one that is late is killed, and if even that does not end it (a FUSE daemon that took
 * a request and never answers it) it is abandoned and counted.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/privs.h"
#include "mount-helper/mnt.h"

enum { CHILD_FD = 3, CHILD_SOCK = 4 };

static _Noreturn void
run_child(pid_t parent, int sock, int fd, mnt_work *work, const void *arg)
{
	struct mnt_result res = { .fd = -1 };
	int fds[] = { [0] = fd, [1] = sock };

	privs_die_with_parent(parent);
	if (fd_pack(fds, ELEMENTSOF(fds), CHILD_FD) < 0)
		_exit(1);
	res.r = work(CHILD_FD, arg, &res, &res.e);
	_exit(fd_send_msg(CHILD_SOCK, &res, sizeof res, &res.fd, res.fd >= 0, 0) < 0);
}

static struct mnt_job *
free_slot(struct mnt *m)
{
	for (size_t i = 0; i < MNT_JOBS_MAX; i++)
		if (m->jobs[i].pid == 0)
			return &m->jobs[i];
	return NULL;
}

/* With all slots taken the helper waits: each has a deadline, so this ends. */
static struct mnt_job *
wait_slot(struct mnt *m)
{
	struct pollfd fds[MNT_JOBS_MAX];
	struct mnt_job *j;

	while (!(j = free_slot(m))) {
		for (size_t i = 0; i < MNT_JOBS_MAX; i++)
			fds[i] = (struct pollfd){ .fd = m->jobs[i].sock, .events = POLLIN };
		(void)poll(fds, MNT_JOBS_MAX, mnt_child_timeout(m));
		mnt_child_collect(m);
	}
	return j;
}

int
mnt_child_start(struct mnt *m, const struct ipc_packet *req, unsigned timeout_ms, int fd,
    mnt_work *work, const void *arg, mnt_done *done, const char *what, struct err *e)
{
	pid_t parent = getpid();
	struct mnt_job *j;
	int pair[2];

	if (m->n_stuck >= MNT_STUCK_MAX)
		return err_say(e, -EBUSY,
		    "cannot %s: %u earlier operations hang in file systems that do not answer, "
		    "even after SIGKILL",
		    what, m->n_stuck);
	j = wait_slot(m);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "%s: make a socket pair", what);
	*j = (struct mnt_job){ .sock = pair[0], .work = work, .done = done };
	j->deadline_ms = clock_ms() + timeout_ms;
	j->type = req ? req->type : 0;
	j->serial = req ? req->serial : 0;
	(void)snprintf(j->what, sizeof j->what, "%s", what);
	j->pid = fork();
	if (j->pid == 0)
		run_child(parent, pair[1], fd, work, arg);
	(void)close(pair[1]);
	if (j->pid > 0)
		return PROC_LATER;
	j->pid = 0;
	(void)close(pair[0]);
	return err_set(e, -errno, "%s: fork", what);
}

/* The slot is free afterwards. */
static void
finish(struct mnt *m, struct mnt_job *j, struct mnt_result *res)
{
	struct mnt_job ended = *j;
	struct err e = { 0 };

	(void)close(j->sock);
	*j = (struct mnt_job){ .sock = -1 };
	if (res->r >= 0 && ended.done)
		ended.done(m, &ended, res);
	else if (ended.type != 0)
		(void)proc_answer(
		    &mnt_spec, ended.type, ended.serial, res->r, NULL, -1, &res->e, &e);
	else if (res->r < 0)
		log_warn("%s", res->e.msg);
	close_p(&res->fd);
}

/*
 * A child that is overdue. Most die of the signal and are reaped; what is left in m->stuck does
 * not.
 */
static void
abandon(struct mnt *m, struct mnt_job *j)
{
	struct mnt_result res = { .fd = -1 };

	(void)kill(j->pid, SIGKILL);
	m->stuck[m->n_stuck++] = j->pid;
	res.r = err_say(&res.e, -ETIMEDOUT,
	    "%s: no answer in time; process %d that waits for it was killed (%u of %d)", j->what,
	    (int)j->pid, m->n_stuck, MNT_STUCK_MAX);
	finish(m, j, &res);
}

static void
reap(struct mnt *m)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (unsigned i = 0; i < m->n_stuck; i++)
			if (m->stuck[i] == pid)
				m->stuck[i] = m->stuck[--m->n_stuck];
}

void
mnt_child_collect(void *state)
{
	struct mnt *m = state;
	struct mnt_result res;
	size_t n_fds;
	ssize_t n;

	for (struct mnt_job *j = m->jobs; j < m->jobs + MNT_JOBS_MAX; j++) {
		if (j->pid == 0)
			continue;
		n = fd_recv_msg(j->sock, &res, sizeof res, &res.fd, 1, &n_fds, MSG_DONTWAIT);
		if (n == -EAGAIN && clock_ms() < j->deadline_ms)
			continue;
		if (n == -EAGAIN) {
			abandon(m, j);
			continue;
		}
		if (n != sizeof res) {
			res = (struct mnt_result){ .fd = -1 };
			res.r = err_say(&res.e, -EIO, "%s: process %d that was to do it died",
			    j->what, (int)j->pid);
		} else if (n_fds == 0) {
			res.fd = -1;
		}
		finish(m, j, &res);
	}
	reap(m);
	mnt_trash_empty(m);
}

int
mnt_child_timeout(void *state)
{
	const struct mnt *m = state;
	uint64_t next = UINT64_MAX, now = clock_ms();

	for (size_t i = 0; i < MNT_JOBS_MAX; i++)
		if (m->jobs[i].pid > 0 && m->jobs[i].deadline_ms < next)
			next = m->jobs[i].deadline_ms;
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)(next - now) + 1;
}
