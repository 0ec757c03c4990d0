// SPDX-License-Identifier: Apache-2.0
/* task_socket.c: accepts the connections of tasks. Runs in: supervisor. Asked by: tasks. */
#include "supervisor/http/task_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/http/http_origin.h"
#include "supervisor/http/http_req.h"

#define ALL_MAX    400 /* connections of all tasks; the rest of http.c's are the operators' */
#define ONE_MAX    32  /* of one task */
#define FULL       (ALL_MAX * 7 / 8)
#define AGAIN_USEC 200000 /* until a socket that waits for a connection to end is tried again */

bool
task_sockets_are_full(const struct api *api)
{
	return api->tasks.n_connections >= FULL;
}

/* --- whether a socket accepts connections --- */

static bool
may_accept(const struct task_socket *s)
{
	unsigned left = ALL_MAX - s->sup->api->tasks.n_connections;
	unsigned own = left / 4 < ONE_MAX ? left / 4 : ONE_MAX;

	return left > 0 && s->n_connections < (own ?: 1) &&
	       !(s->gate && task_gate_is_closed(s->gate));
}

static void
watch(struct task_socket *s, bool on)
{
	struct epoll_event ev = { .events = on ? EPOLLIN : 0, .data.ptr = s };

	s->waits = !on;
	(void)epoll_ctl(s->sup->api->tasks.epoll_fd, EPOLL_CTL_MOD, s->fd, &ev);
}

static void on_again(void *arg);

static void
try_again_soon(struct sup *sup)
{
	struct task_sockets *all = &sup->api->tasks;

	if (!sup_timer_is_set(&all->again))
		sup_timer_set(sup, &all->again, CLOCK_MONOTONIC, AGAIN_USEC, on_again, sup);
}

static void
on_again(void *arg)
{
	struct sup *sup = arg;
	bool some_wait = false;
	struct task_socket *s;

	LIST_FOREACH (s, &sup->api->tasks.list, link) {
		if (s->waits && may_accept(s))
			watch(s, true);
		some_wait |= s->waits;
	}
	if (some_wait)
		try_again_soon(sup);
}

static void
accept_one(struct task_socket *s)
{
	const struct http_origin at = { .family = AF_UNSPEC, .task = s };
	struct sup *sup = s->sup;
	int fd = -1;

	if (may_accept(s)) {
		fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED))
			return;
	}
	if (fd < 0) { /* also if descriptors or memory are short */
		watch(s, false);
		try_again_soon(sup);
		return;
	}
	/* Takes over fd, also on failure. http.c counts the connection. */
	(void)MHD_add_connection(sup->api->mhd, fd, (const struct sockaddr *)&at, sizeof at);
	http_run(sup);
}

static int
on_ready(sd_event_source *source, int epoll_fd, uint32_t events, void *userdata)
{
	struct epoll_event ev;

	/* One at a time, because it may close others; the kernel reports each in its turn. */
	if (epoll_wait(epoll_fd, &ev, 1, 0) == 1)
		accept_one(ev.data.ptr);
	return 0;
}

/* --- connections --- */

static void
free_unused(struct task_socket *s)
{
	if (s->open || s->n_connections > 0)
		return;
	task_gate_free(s->gate);
	free(s->name);
	free(s);
}

const struct api_task *
task_socket_joined(struct task_socket *s)
{
	s->n_connections++;
	s->sup->api->tasks.n_connections++;
	return &s->task;
}

void
task_socket_left(struct task_socket *s)
{
	s->n_connections--;
	s->sup->api->tasks.n_connections--;
	free_unused(s);
}

/* --- the sockets of all tasks --- */

/* An executor is not trusted. It cannot change the socket's flags after its drop of privileges. */
static int
check_socket(int fd)
{
	int domain = 0, type = 0, listens = 0, flags = fcntl(fd, F_GETFL);
	socklen_t len = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0)
		return -errno;
	if (domain != AF_UNIX || type != SOCK_STREAM || flags < 0 || !(flags & O_NONBLOCK))
		return -EPROTO;
	return listens ? 0 : -ENOTCONN;
}

struct task_socket *
task_socket_open(struct sup *sup, int fd, const struct id *alloc, const char *task, struct err *e)
{
	cleanup_close int taken = fd;
	struct task_socket *s;
	struct epoll_event ev = { .events = EPOLLIN };
	int r = check_socket(fd);

	if (r == -ENOTCONN)
		(void)err_say(e, r, "the task could not make secrets/api.sock");
	else if (r < 0)
		(void)err_set(e, r, "serve secrets/api.sock");
	if (r < 0)
		return NULL;
	s = mem_new(struct task_socket);
	ev.data.ptr = s;
	if (epoll_ctl(sup->api->tasks.epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		(void)err_set(e, -errno, "serve secrets/api.sock");
		free(s);
		return NULL;
	}
	*s = (struct task_socket){ .sup = sup,
		.name = mem_strdup(task),
		.task.alloc = *alloc,
		.fd = steal_fd(&taken),
		.open = true };
	s->task.name = s->name;
	LIST_INSERT_HEAD(&sup->api->tasks.list, s, link);
	return s;
}

static void
stop_listening(struct task_socket *s)
{
	if (s->fd < 0)
		return;
	(void)epoll_ctl(s->sup->api->tasks.epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
	close_p(&s->fd);
	LIST_REMOVE(s, link);
}

void
task_socket_close(struct task_socket *s)
{
	if (!s)
		return;
	stop_listening(s);
	s->open = false;
	free_unused(s);
}

int
task_sockets_init(struct sup *sup)
{
	struct task_sockets *all = &sup->api->tasks;
	int r;

	all->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (all->epoll_fd < 0)
		return -errno;
	r = sd_event_add_io(sup->event, &all->io, all->epoll_fd, EPOLLIN, on_ready, sup);
	return r < 0 ? r : 0;
}

void
task_sockets_free(struct sup *sup)
{
	struct task_sockets *all = &sup->api->tasks;

	while (!LIST_EMPTY(&all->list))
		stop_listening(LIST_FIRST(&all->list));
	sup_timer_cancel(&all->again);
	(void)sd_event_source_disable_unref(all->io);
	close_p(&all->epoll_fd);
}
