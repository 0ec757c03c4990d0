/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h: something done inside a task that runs, by an executor of its own: a
 * command with pipes or a terminal, or new files for its secrets. Nothing of it is kept: it ends
 * with the supervisor, with its task, and when it is freed. Runs in: supervisor.
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
	SESSION_NOTHING, /* just now: wake() comes when there may be more */
	SESSION_STDOUT,
	SESSION_STDERR,
	SESSION_STDOUT_CLOSED,
	SESSION_STDERR_CLOSED,
	SESSION_EXITED, /* the last one: session_exit_code() */
	SESSION_FAILED, /* the last one: session_error() */
};

/*
 * What its owner hears, from the work loop and never from within a call below: session_next() may
 * give something again, or session_room() has become more. The owner may free it there.
 */
typedef void session_wake(void *arg);

/*
 * Sends the request; spec_fd is taken over. Output waits in the kernel until it is asked for, so a
 * session whose owner takes nothing stops at a full pipe. NULL with *e: -EBUSY there are too many,
 * or no memory.
 */
struct session *session_new(struct sup *sup, const struct exec_session_start_req *req, int spec_fd,
    session_wake *wake, void *arg, struct err *e);
/* Its processes get SIGHUP, and SIGKILL soon after. NULL is ignored. */
void session_free(struct session *s);

/* What is next, with up to max bytes of output in buf. */
enum session_item session_next(struct session *s, void *buf, size_t max, size_t *ret_len);
/* As a shell has it: 128 + n for signal n. *ret_signal is 0 then not. */
int session_exit_code(const struct session *s, int *ret_signal);
/* Why there was none: code and sentence. */
const struct err *session_error(const struct session *s);

/* Input: what does not go at once is kept; an owner that stops reading at 0 room keeps it small. */
void session_write(struct session *s, const void *data, size_t len);
size_t session_room(const struct session *s);
/* The end of its input, behind what was written; on a terminal the end-of-file character. */
void session_close_input(struct session *s);
void session_resize(struct session *s, unsigned rows, unsigned columns);

#endif
