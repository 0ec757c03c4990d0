// SPDX-License-Identifier: Apache-2.0
/* hold_stop.c: asks every executor to stop its task, and waits until all have ended. Runs in:
 * holder, as drover. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"
#include "holder/hold.h"
#include "proto/executor.h"

#define NAME_SIZE 64 /* a run's id and ".sock" are 38 */
#define ASK_MS    5000
#define AGAIN_MS  20

struct asked {
	char name[NAME_SIZE]; /* empty: the executor has ended */
	int fd;               /* connection on which the stop was requested; -1: not yet */
};

/* Connects and requests the stop. Returns the connection; -EAGAIN if the executor's queue is full
 * (it may accept later); -ECONNREFUSED or -ENOENT if the executor has ended. */
static int
ask_stop(int dir, const char *name)
{
	const struct exe_stop stop = { .head = { EXE_PROTO_VERSION, EXE_STOP, sizeof stop } };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	cleanup_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	(void)snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/%s", dir, name);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0)
		return -errno;
	r = fd_send_msg(fd, &stop, sizeof stop, NULL, 0, MSG_DONTWAIT);
	return r < 0 ? r : steal_fd(&fd);
}

/* Returns how many executors must still be asked later. */
static size_t
ask_all(int dir, struct asked *tasks, size_t n)
{
	size_t later = 0;

	for (struct asked *t = tasks; t < tasks + n; t++) {
		if (t->fd >= 0 || !t->name[0])
			continue;
		t->fd = ask_stop(dir, t->name);
		later += t->fd == -EAGAIN;
		if (t->fd >= 0 || t->fd == -EAGAIN)
			continue;
		if (t->fd != -ECONNREFUSED && t->fd != -ENOENT)
			log_warn("%s: cannot ask the task to stop: %s", t->name,
			    strerrordesc_np(-t->fd));
		t->name[0] = '\0';
	}
	return later;
}

/* Returns NULL after an error, or if no task has ever run. */
static DIR *
open_sockets(const char *runtime_dir)
{
	char path[PATH_MAX];
	DIR *d;

	(void)snprintf(path, sizeof path, "%s/x", runtime_dir);
	d = opendir(path);
	if (!d && errno != ENOENT)
		log_error(
		    "open %s: %s; no task can be asked to stop", path, strerrordesc_np(errno));
	return d;
}

/* Lists the tasks that have a socket; the caller frees *ret. */
static size_t
list(DIR *d, struct asked **ret)
{
	size_t n = 0, room = 0;
	struct dirent *entry;

	*ret = NULL;
	while (d && (entry = readdir(d))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= NAME_SIZE)
			continue;
		if (n == room) {
			struct asked *more = reallocarray(*ret, 2 * room + 64, sizeof *more);

			if (!more) {
				int fd = ask_stop(dirfd(d), entry->d_name);

				log_error("out of memory: cannot wait for the task of %s%s",
				    entry->d_name, fd < 0 ? " or ask it to stop" : "");
				close_p(&fd);
				continue;
			}
			*ret = more;
			room = 2 * room + 64;
		}
		(void)strcpy((*ret)[n].name, entry->d_name);
		(*ret)[n++].fd = -1;
	}
	return n;
}

static void
wait_end(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char buf[EXE_MSG_MAX];

	while (poll(&p, 1, -1) == 1 && recv(fd, buf, sizeof buf, 0) > 0)
		;
	(void)close(fd);
}

/* An executor that is stopped or hangs must not delay the requests to the others. */
void
hold_stop_all(const char *runtime_dir)
{
	cleanup_dir DIR *d = open_sockets(runtime_dir);
	const struct timespec pause = { .tv_nsec = AGAIN_MS * 1000000L };
	const uint64_t end = clock_ms() + ASK_MS;
	size_t n, asked = 0;
	struct asked *tasks;

	n = list(d, &tasks);
	while (n > 0 && ask_all(dirfd(d), tasks, n) > 0 && clock_ms() < end)
		(void)nanosleep(&pause, NULL);
	for (size_t i = 0; i < n; i++) {
		asked += tasks[i].fd >= 0;
		if (tasks[i].fd < 0 && tasks[i].name[0])
			log_warn("%s: its executor accepts no connection, so the task cannot be "
				 "asked to stop",
			    tasks[i].name);
	}
	log_info("%zu tasks asked to stop", asked);
	for (size_t i = 0; i < n; i++)
		if (tasks[i].fd >= 0)
			wait_end(tasks[i].fd);
	free(tasks);
}
