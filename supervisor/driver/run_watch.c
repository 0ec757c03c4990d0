// SPDX-License-Identifier: Apache-2.0
/* run_watch.c: the sockets of all executors as one source of the work loop. Runs in: supervisor. */
#include "supervisor/driver/run_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/mem.h"

#define BATCH 64 /* ready sockets that are handled before other sources of the work loop */

struct run_poll {
	int epoll_fd; /* -1: no socket has been watched yet */
	sd_event_source *source;
};

void
run_poll_new(struct sup *sup)
{
	sup->run_poll = mem_new(struct run_poll);
	sup->run_poll->epoll_fd = -1;
}

void
run_poll_free(struct sup *sup)
{
	struct run_poll *p = sup->run_poll;

	sd_event_source_disable_unref(p->source);
	close_p(&p->epoll_fd);
	free(p);
	sup->run_poll = NULL;
}

static int
on_some_ready(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct epoll_event events[BATCH];
	int n = epoll_wait(fd, events, BATCH, 0);

	for (int i = 0; i < n; i++) {
		struct run_watch *w = events[i].data.ptr;

		if (w->fd >= 0) /* an earlier ready() may have removed it */
			w->ready(w);
	}
	return 0;
}

static int
make_epoll(struct sup *sup)
{
	struct run_poll *p = sup->run_poll;
	int r;

	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll_fd < 0)
		return -errno;
	r = sd_event_add_io(sup->event, &p->source, p->epoll_fd, EPOLLIN, on_some_ready, NULL);
	if (r < 0)
		close_p(&p->epoll_fd);
	return r < 0 ? r : 0;
}

int
run_watch_add(struct sup *sup, struct run_watch *w, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = w };
	int r = sup->run_poll->epoll_fd >= 0 ? 0 : make_epoll(sup);

	if (r < 0)
		return r;
	if (epoll_ctl(sup->run_poll->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	w->fd = fd;
	return 0;
}

void
run_watch_remove(struct sup *sup, struct run_watch *w)
{
	if (w->fd >= 0)
		(void)epoll_ctl(sup->run_poll->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
	w->fd = -1;
}
