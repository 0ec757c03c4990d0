/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h: something that is done inside a running task by a second executor: a command with
 * pipes or a terminal, or new files for the task's secrets. A session ends with the supervisor,
 * with its task, and when it is freed. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_DRIVER_SESSION_H
#define DROVER_SUPERVISOR_DRIVER_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "proto/ipc_records.h"
#include "supervisor/core/sup.h"

struct session;

enum session_item {
	SESSION_NOTHING, /* nothing now: wake() is called when there may be more */
	SESSION_STDOUT,
	SESSION_STDERR,
	SESSION_STDOUT_CLOSED,
	SESSION_STDERR_CLOSED,
	SESSION_EXITED, /* the last item: session_exit_code() */
	SESSION_FAILED, /* the last item: session_error() */
};

/*
 * Tells the owner that session_next() may return something again, or that session_room() has grown.
 * Called from the work loop, never from within a call below. The owner may free the session.
 */
typedef void session_wake(void *arg);

/*
 * Sends the request; takes over spec_fd. Output waits in the kernel until session_next() takes it,
 * so a command whose output nobody takes blocks at a full pipe. Returns NULL with *e (-EBUSY) if
 * there are too many sessions.
 */
struct session *session_new(struct sup *sup, const struct exec_session_start_req *req, int spec_fd,
    session_wake *wake, void *arg, struct err *e);
/* Ends the session: its processes get SIGHUP, and SIGKILL soon after. Ignores NULL. */
void session_free(struct session *s);

/* Returns the next item, with up to max bytes of output in buf. */
enum session_item session_next(struct session *s, void *buf, size_t max, size_t *ret_len);
/* Returns the exit code as a shell does: 128 + n for signal n. *ret_signal is n, or 0. */
int session_exit_code(const struct session *s, int *ret_signal);
/* Returns why the session failed. */
const struct err *session_error(const struct session *s);

/* Queues input. session_room() says how many bytes the owner may pass before it has to wait; more
 * are taken too. */
void session_write(struct session *s, const void *data, size_t len);
size_t session_room(const struct session *s);
/* Ends the input after what was written; on a terminal by the end-of-file character. */
void session_close_input(struct session *s);
void session_resize(struct session *s, unsigned rows, unsigned columns);

#endif
