// SPDX-License-Identifier: Apache-2.0
/* run_watch.c: many executors' sockets as one source of the work loop. Runs in: supervisor. */
#include "supervisor/driver/run_watch.h"

#include <errno.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"

#define BATCH 64 /* then the helpers and the control socket have their turn */

static int epoll_fd = -1;
static sd_event_source *source;

static int
on_some_ready(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct epoll_event events[BATCH];
	int n = epoll_wait(epoll_fd, events, BATCH, 0);

	for (int i = 0; i < n; i++) {
		struct run_watch *w = events[i].data.ptr;

		if (w->fd >= 0) /* one before it may have removed it */
			w->ready(w);
	}
	return 0;
}

static int
make_epoll(struct sup *sup)
{
	int r;

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		return -errno;
	r = sd_event_add_io(sup->event, &source, epoll_fd, EPOLLIN, on_some_ready, sup);
	if (r < 0)
		close_p(&epoll_fd);
	return r < 0 ? r : 0;
}

int
run_watch_add(struct sup *sup, struct run_watch *w, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = w };
	int r = epoll_fd >= 0 ? 0 : make_epoll(sup);

	if (r < 0)
		return r;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	w->fd = fd;
	return 0;
}

void
run_watch_remove(struct run_watch *w)
{
	if (w->fd >= 0)
		(void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
	w->fd = -1;
}

void
run_watch_free(void)
{
	source = sd_event_source_disable_unref(source);
	close_p(&epoll_fd);
}
