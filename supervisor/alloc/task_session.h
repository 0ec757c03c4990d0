/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_session.h: what is done inside a task that runs, with the task's own settings: a command, or
 * new contents of files in its secrets. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_SESSION_H
#define DROVER_SUPERVISOR_ALLOC_TASK_SESSION_H

#include "supervisor/alloc/alloc_state.h"
#include "supervisor/driver/session.h"

/* Is there a process of the task's to join? */
bool task_is_running(const struct task_runner *tr);

/*
 * command[0] is looked up as the task's own is. NULL with *e: -ESRCH the task does not run, -EBUSY
 * too many sessions, or what is wrong with the task's settings. The session is the caller's.
 */
struct session *task_exec(struct task_runner *tr, char *const *command, size_t n, bool tty,
    session_wake *wake, void *arg, struct err *e);

struct task_file {
	const char *name; /* one component */
	const void *data; /* may hold any byte */
	size_t len;
};

struct task_files;

/* 0, or negative with *e: -ESRCH it did not run any more. Exactly once, never from within the call
 * below. */
typedef void task_files_cb(struct sup *sup, void *arg, int r, const struct err *e);

/*
 * Puts the files in the place of those in the task's secrets, each by rename, owned by the task's
 * user, mode 0600: who reads sees old contents or new ones. A session of kind file: what
 * is written is charged to the task. All are copied. NULL with *e as for task_exec().
 */
struct task_files *task_files_replace(struct task_runner *tr, const struct task_file *files,
    size_t n, task_files_cb *cb, void *arg, struct err *e);
/* The callback is not called any more; what was begun may happen. NULL is ignored. */
void task_files_forget(struct task_files *t);

#endif
