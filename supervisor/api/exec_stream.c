// SPDX-License-Identifier: Apache-2.0
/* exec_stream.c: runs a command inside a task and exchanges Nomad's frames. Runs in: supervisor. */
#include "supervisor/api/exec_stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/task_session.h"
#include "supervisor/core/sup_turn.h"

#define CHUNK_MAX 8192

static void
on_wake(void *arg)
{
	struct exec_stream *es = arg;

	es->wake(es);
}

/* Copies the command: the action's, or the one of the request. Returns 0, or an HTTP status with
 * *e.
 */
static int
take_command(
    const struct sup_alloc *sa, const struct exec_wish *w, struct strings *ret, struct err *e)
{
	const struct task *task = alloc_task(sa, w->task);
	const struct task_action *action = NULL;

	if (*str(w->action) && !task)
		return err_say(e, -EINVAL, "task %.128s not found in allocation %.64s", w->task,
			   w->alloc_text),
		       400;
	if (*str(w->action) && !(action = task_action_of(task, w->action)))
		return err_say(e, -EINVAL, "action %.128s not found in task %.128s", w->action,
			   w->task),
		       400;
	if (action)
		strings_add(ret, str(action->command));
	for (size_t i = 0; action && i < action->args.n; i++)
		strings_add(ret, str(action->args.v[i]));
	for (size_t i = 0; !action && i < w->n_command; i++)
		strings_add(ret, w->command[i]);
	return 0;
}

/* Checks the request, in the order and with the texts that clients know. Returns 0 with the task,
 * or an HTTP status with *e. */
static int
check_wish(struct sup *sup, const struct exec_wish *w, struct strings *command,
    struct task_runner **ret, struct err *e)
{
	const struct sup_alloc *sa = w->alloc ? alloc_find(sup, w->alloc) : NULL;
	int status;

	if (!w->alloc)
		return err_say(e, -EINVAL, "must provide a valid alloc id"), 400;
	if (!sa)
		return err_say(e, -ENOENT, "Unknown allocation \"%.64s\"", str(w->alloc_text)), 404;
	if (!*str(w->task))
		return err_say(e, -EINVAL, "must provide task name"), 400;
	if (*str(w->job) && !str_eq(sa->a.job_id, w->job))
		return err_say(e, -EINVAL, "job %.128s does not have allocation %.64s", w->job,
			   w->alloc_text),
		       400;
	status = take_command(sa, w, command, e);
	if (status != 0)
		return status;
	if (command->n == 0 || !command->v[0][0])
		return err_say(e, -EINVAL, "command is not present"), 400;
	if (!alloc_task(sa, w->task))
		return err_say(e, -EINVAL, "unknown task name \"%.128s\"", w->task), 400;
	*ret = alloc_find_task(sa, w->task);
	if (*ret && ((*ret)->phase < TASK_RUNNING))
		return err_say(e, -ESRCH, "task \"%s\" not started yet.", w->task), 404;
	if (!*ret || !task_is_running(*ret))
		return err_say(e, -ESRCH, "task \"%s\" is not running.", w->task), 404;
	return 0;
}

int
exec_stream_open(
    struct sup *sup, struct exec_stream *es, const struct exec_wish *wish, struct err *e)
{
	cleanup_done(strings) struct strings command = { 0 };
	struct task_runner *tr = NULL;
	const char *why;
	int status;

	es->sup = sup;
	if (sup->config->disable_remote_exec) {
		(void)err_say(e, -EACCES,
		    "Permission denied: this node's configuration has client { "
		    "disable_remote_exec = true }");
		return 403;
	}
	status = check_wish(sup, wish, &command, &tr, e);
	if (status != 0)
		return status;
	/* Its start would wait for the commit. */
	if (turn_is_stuck(sup, &why))
		return err_say(e, -ENOSPC, "nothing can be started now: %s", why), 507;
	es->tty = wish->tty;
	es->name = mem_strdup(command.v[0]);
	es->session = task_exec(tr, command.v, command.n, wish->tty, on_wake, es, e);
	if (es->session)
		return 0;
	return e->code == -EBUSY ? 503 : e->code == -E2BIG || e->code == -EINVAL ? 400 : 500;
}

void
exec_stream_done(struct exec_stream *es)
{
	if (es->far)
		es->far->done(es);
	es->far = NULL;
	session_free(es->session);
	es->session = NULL;
	free_p(&es->name);
}

static void
put_text(struct text *frame, const char *text)
{
	text_append(frame, text, strlen(text));
}

static void
add_data(struct text *frame, const char *stream, const void *data, size_t len)
{
	char base64[BASE64_SIZE(CHUNK_MAX)];

	put_text(frame, "{\"");
	put_text(frame, stream);
	put_text(frame, "\":{\"data\":\"");
	text_append(frame, base64, base64_encode(data, len, base64));
	put_text(frame, "\"}}");
}

static void
add_exit(struct text *frame, int code, int signo)
{
	char json[96];
	int n = 0;

	json[0] = '\0';
	if (code)
		n = snprintf(json, sizeof json, "\"exit_code\":%d", code);
	if (signo)
		(void)snprintf(json + n, sizeof json - (size_t)n, ",\"signal\":%d", signo);
	put_text(frame, "{\"exited\":true,\"result\":{");
	put_text(frame, json);
	put_text(frame, "}}");
}

/* A command that cannot be run is reported as a shell does; any other error fails the session. */
static int
end_failed(struct exec_stream *es, struct text *frame)
{
	const struct err *why = session_error(es->session);
	int signo, code = session_exit_code(es->session, &signo);
	char line[2 * ERR_MSG_SIZE];
	int n;

	if (code == 0) {
		es->error = *why;
		es->status = why->code == -ESRCH || why->code == -ENOENT ? 404 : 500;
		return -1;
	}
	n = snprintf(
	    line, sizeof line, "drover: %.200s: %s%s\n", es->name, why->msg, es->tty ? "\r" : "");
	add_data(frame, es->tty ? "stdout" : "stderr", line, (size_t)n);
	es->reported = true;
	return 1;
}

int
exec_stream_next(struct exec_stream *es, struct text *frame)
{
	enum session_item item = SESSION_EXITED;
	char data[CHUNK_MAX];
	size_t len = 0;
	int signo, code;

	if (es->far)
		return es->far->next(es, frame);
	if (!es->session)
		return -1;
	if (!es->reported)
		item = session_next(es->session, data, sizeof data, &len);
	switch (item) {
	case SESSION_NOTHING:
		return 0;
	case SESSION_STDOUT:
	case SESSION_STDERR:
		add_data(frame, item == SESSION_STDOUT ? "stdout" : "stderr", data, len);
		return 1;
	case SESSION_STDOUT_CLOSED:
		put_text(frame, "{\"stdout\":{\"close\":true}}");
		return 1;
	case SESSION_STDERR_CLOSED:
		put_text(frame, "{\"stderr\":{\"close\":true}}");
		return 1;
	case SESSION_FAILED:
		return end_failed(es, frame);
	case SESSION_EXITED:
		break;
	}
	code = session_exit_code(es->session, &signo);
	add_exit(frame, code, signo);
	session_free(es->session);
	es->session = NULL;
	return 1;
}

void
exec_stream_input(struct exec_stream *es, const void *data, size_t len)
{
	if (es->far)
		es->far->input(es, data, len);
	else if (es->session)
		session_write(es->session, data, len);
}

void
exec_stream_input_end(struct exec_stream *es)
{
	if (es->far)
		es->far->input_end(es);
	else if (es->session)
		session_close_input(es->session);
}

void
exec_stream_resize(struct exec_stream *es, long rows, long columns)
{
	if (es->far && rows > 0 && columns > 0)
		es->far->resize(es, rows, columns);
	else if (es->session && rows > 0 && columns > 0)
		session_resize(es->session, rows < 65536 ? (unsigned)rows : 65535,
		    columns < 65536 ? (unsigned)columns : 65535);
}

void
exec_stream_beat(struct exec_stream *es)
{
	if (es->far)
		es->far->beat(es);
}

bool
exec_stream_has_room(const struct exec_stream *es)
{
	if (es->far)
		return es->far->has_room(es);
	return !es->session || session_room(es->session) > 0;
}
