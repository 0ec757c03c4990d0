/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_socket.h: the sockets by which tasks reach the API: `api.sock` in each task's secrets. The
 * task's executor keeps the listening socket while it runs, so that clients wait in its queue while
 * there is no supervisor. Runs in: supervisor. Asked by: tasks.
 *
 * All tasks share connections and memory that operators do not need. A task may have a quarter of
 * the connections that are left; where it may have no more, its clients wait in its queue.
 */
#ifndef DROVER_SUPERVISOR_HTTP_TASK_SOCKET_H
#define DROVER_SUPERVISOR_HTTP_TASK_SOCKET_H

#include "common/err.h"
#include "common/list.h"
#include "supervisor/http/api_backend.h"

struct api;
struct api_req;
struct sup;
struct task_gate;

/* The socket of a task; its members are for the files of this directory. */
struct task_socket {
	struct sup *sup;
	struct api_task task;
	char *name;             /* the task's */
	struct task_gate *gate; /* what task_gate.c knows of its tokens; NULL: no request yet */
	LIST_ENTRY(task_socket) link;
	int fd; /* -1: closed */
	unsigned short n_connections, n_streams;
	bool waits; /* accepts none for now */
	bool open;  /* task_socket_close() was not called */
};

/* Serves the listening socket fd of a task; takes it over. NULL with *e if it cannot be served. The
 * caller calls task_socket_close(), at the latest after api_free(). */
struct task_socket *task_socket_open(
    struct sup *sup, int fd, const struct id *alloc, const char *task, struct err *e);
/* Accepts no further connection; those that are open end by themselves. NULL is accepted. */
void task_socket_close(struct task_socket *s);

/* For http.c. Counts a connection, until _left(), which may free the socket. Returns the task. */
const struct api_task *task_socket_joined(struct task_socket *s);
void task_socket_left(struct task_socket *s);
/* Returns true if connections of tasks have to make room for others. */
bool task_sockets_are_full(const struct api *api);
/* Returns 0 or -errno. */
int task_sockets_init(struct sup *sup);
void task_sockets_free(struct sup *sup);

/* task_gate.c: finds out whether the request's token is valid for this task; then calls go_on(),
 * now or later, or answers. */
void task_gate_check(struct api_req *req, struct task_socket *s, void (*go_on)(struct api_req *));
void task_gate_free(struct task_gate *g);
/* Returns true if so many requests of the task were refused that it has to wait. */
bool task_gate_is_closed(struct task_gate *g);

#endif
