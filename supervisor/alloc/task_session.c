// SPDX-License-Identifier: Apache-2.0
/* task_session.c: runs a command or writes files inside a running task. Runs in: supervisor. */
#include "supervisor/alloc/task_session.h"

#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/alloc/task_start.h"
#include "supervisor/driver/run.h"

#define TERM_DEFAULT "TERM=xterm"

bool
task_is_running(const struct task_runner *tr)
{
	return tr->run && (tr->phase == TASK_RUNNING || tr->phase == TASK_DELAYING ||
			      tr->phase == TASK_STOPPING);
}

/* spec has the entries that this kind of session needs. The rest of the request is as for a start
 * of the task. */
static struct session *
begin_session(struct task_runner *tr, enum exec_session_kind kind, bool tty,
    struct spec_writer *spec, session_wake *wake, void *arg, struct err *e)
{
	struct exec_session_start_req req = { 0 };
	cleanup_close int fd = -1;
	int r;

	r = task_start_again(tr, spec, kind == EXEC_SESSION_COMMAND, &req.start, e);
	if (r >= 0)
		r = fd = task_start_spec(tr, spec, e);
	spec_writer_done(spec);
	if (r < 0)
		return NULL;
	req.kind = kind;
	req.start.tty = tty;
	return session_new(tr->ar->sup, &req, steal_fd(&fd), wake, arg, e);
}

struct session *
task_exec(struct task_runner *tr, char *const *command, size_t n, bool tty, session_wake *wake,
    void *arg, struct err *e)
{
	struct spec_writer spec = { 0 };

	if (!task_is_running(tr)) {
		(void)err_say(e, -ESRCH, "task \"%s\" is not running.", tr->task->name);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		spec_add_str(&spec, i == 0 ? SPEC_COMMAND : SPEC_ARG, command[i]);
	if (tty)
		spec_add_str(&spec, SPEC_ENV, TERM_DEFAULT);
	return begin_session(tr, EXEC_SESSION_COMMAND, tty, &spec, wake, arg, e);
}

/* --- files --- */

struct task_files {
	struct sup *sup;
	struct session *session;
	task_files_cb *cb;
	void *arg;
};

void
task_files_forget(struct task_files *t)
{
	if (!t)
		return;
	session_free(t->session);
	free(t);
}

static void
on_files(void *arg)
{
	struct task_files *t = arg;
	enum session_item item;
	struct err e = { 0 };
	char none[1];
	size_t len;
	int r, signo;

	do
		item = session_next(t->session, none, sizeof none, &len);
	while (item != SESSION_NOTHING && item != SESSION_EXITED && item != SESSION_FAILED);
	if (item == SESSION_NOTHING)
		return;
	if (item == SESSION_FAILED)
		e = *session_error(t->session);
	else if (session_exit_code(t->session, &signo) != 0)
		(void)err_say(
		    &e, -EIO, "write the task's files: the writer ended by signal %d", signo);
	r = e.code;
	t->cb(t->sup, t->arg, r, &e);
	task_files_forget(t);
}

struct task_files *
task_files_replace(struct task_runner *tr, const struct task_file *files, size_t n,
    task_files_cb *cb, void *arg, struct err *e)
{
	cleanup_free struct task_files *t = NULL;
	struct spec_writer spec = { 0 };

	if (!task_is_running(tr)) {
		(void)err_say(e, -ESRCH, "task \"%s\" is not running.", tr->task->name);
		return NULL;
	}
	t = mem_new(struct task_files);
	*t = (struct task_files){ .sup = tr->ar->sup, .cb = cb, .arg = arg };
	for (size_t i = 0; i < n; i++) {
		spec_add_file(&spec, &files[i].at, files[i].data, files[i].len);
	}
	t->session = begin_session(tr, EXEC_SESSION_FILE, false, &spec, on_files, t, e);
	return t->session ? steal_ptr(&t) : NULL;
}
