/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_session.h: runs a command inside a running task, or replaces files in its secrets, with the
 * user, limits and environment of the task. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_SESSION_H
#define DROVER_SUPERVISOR_ALLOC_TASK_SESSION_H

#include "common/spec.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/driver/session.h"

/* Returns true if the task has a process, so that a session can join it. */
bool task_is_running(const struct task_runner *tr);

/*
 * Runs a command; command[0] is looked up as the task's own command is. The caller owns the
 * session. NULL with *e: -ESRCH, the task does not run; -EBUSY, there are too many sessions; or an
 * error in the task's configuration.
 */
struct session *task_exec(struct task_runner *tr, char *const *command, size_t n, bool tty,
    session_wake *wake, void *arg, struct err *e);

struct task_file {
	struct spec_file at;
	const void *data; /* may hold any byte */
	size_t len;
};

struct task_files;

/* The end of task_files_replace(), exactly once, never from within the call. r is 0, or negative
 * with *e: -ESRCH, the task has ended. */
typedef void task_files_cb(struct sup *sup, void *arg, int r, const struct err *e);

/*
 * Replaces files in the task's directories. Each is written as the task's user and then renamed, so
 * that a reader sees either the old or the new contents. The memory counts for the task. The
 * arguments are copied. NULL with *e as for task_exec().
 */
struct task_files *task_files_replace(struct task_runner *tr, const struct task_file *files,
    size_t n, task_files_cb *cb, void *arg, struct err *e);
/* Cancels: the callback is not called, but files may still be replaced. NULL is ignored. */
void task_files_forget(struct task_files *t);

#endif
