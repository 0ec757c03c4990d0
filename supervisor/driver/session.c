// SPDX-License-Identifier: Apache-2.0
/* session.c: the messages with a session's executor, and the session's pipes or pty. Runs in:
 * supervisor. */
#include "supervisor/driver/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "proto/executor.h"
#include "supervisor/driver/run_text.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_timer.h"

#define SESSIONS_MAX 64
#define INPUT_MAX    (64 * 1024)
#define REST_MAX     (1024 * 1024) /* output that is read after the end: no pipe holds more */
#define BEGIN_USEC   30000000
#define END_OF_FILE  4 /* ^D */

enum { IN, OUT, ERR, STREAMS };

struct session {
	struct sup *sup;
	session_wake *wake;
	void *arg;
	uint64_t call;
	bool tty;
	int spec;               /* what the session was asked for, until it has begun; or -1 */
	int sock, fds[STREAMS]; /* -1: not open yet, or closed */
	sd_event_source *sock_source, *sources[STREAMS], *soon;
	struct sup_timer late;
	char *in;
	size_t in_len;
	bool close_in; /* close the input once `in` is empty */
	bool stderr_next;
	bool begun, over, close_reported[STREAMS], end_reported;
	size_t rest;            /* output that may still be read after the end */
	unsigned rows, columns; /* 0: unknown */
	int exit_code, exit_signal;
	struct err error; /* code 0: none */
};

static void
close_stream(struct session *s, int i)
{
	s->sources[i] = sd_event_source_disable_unref(s->sources[i]);
	close_p(&s->fds[i]);
}

static void
disconnect(struct session *s)
{
	s->sock_source = sd_event_source_disable_unref(s->sock_source);
	sup_timer_cancel(&s->late);
	close_p(&s->sock);
}

static int
on_soon(sd_event_source *source, void *userdata)
{
	struct session *s = userdata;

	s->wake(s->arg);
	return 0;
}

/* Calls the owner from the work loop, because it may be within one of its own calls now. */
static void
wake_soon(struct session *s)
{
	if (!s->soon && sd_event_add_defer(s->sup->event, &s->soon, on_soon, s) < 0)
		return;
	(void)sd_event_source_set_enabled(s->soon, SD_EVENT_ONESHOT);
}

/* The output that is in the pipes is still read, without a wait for more. */
static void
end_session(struct session *s)
{
	s->over = true;
	s->rest = REST_MAX;
	disconnect(s);
	close_stream(s, IN);
	wake_soon(s);
}

static void
fail_session(struct session *s, int code, const char *sentence)
{
	(void)err_say(&s->error, code, "%s", sentence);
	end_session(s);
}

static int
on_writable(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct session *s = userdata;
	ssize_t n = write(fd, s->in, s->in_len);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	/* Input that nobody reads is dropped. */
	if (n < 0) {
		s->in_len = 0;
		s->close_in = true;
	} else {
		s->in_len -= (size_t)n;
		memmove(s->in, s->in + n, s->in_len);
	}
	if (s->in_len == 0 && s->close_in)
		close_stream(s, IN);
	else if (s->in_len == 0)
		(void)sd_event_source_set_enabled(s->sources[IN], SD_EVENT_OFF);
	wake_soon(s);
	return 0;
}

static void
update_input(struct session *s)
{
	if (s->fds[IN] < 0)
		return;
	if (s->in_len > 0)
		(void)sd_event_source_set_enabled(s->sources[IN], SD_EVENT_ON);
	else if (s->close_in)
		close_stream(s, IN);
}

static void
queue_input(struct session *s, const void *data, size_t len)
{
	if (len == 0 || s->close_in || s->over || (s->begun && s->fds[IN] < 0))
		return;
	s->in = mem_resize(s->in, s->in_len + len, 1);
	memcpy(s->in + s->in_len, data, len);
	s->in_len += len;
}

void
session_write(struct session *s, const void *data, size_t len)
{
	queue_input(s, data, len);
	update_input(s);
}

size_t
session_room(const struct session *s)
{
	return s->in_len < INPUT_MAX ? INPUT_MAX - s->in_len : 0;
}

void
session_close_input(struct session *s)
{
	const char eof = END_OF_FILE;

	if (s->tty)
		queue_input(s, &eof, 1);
	else
		s->close_in = true;
	update_input(s);
}

static void
set_size(struct session *s)
{
	const struct winsize size = { .ws_row = (unsigned short)s->rows,
		.ws_col = (unsigned short)s->columns };

	if (s->tty && s->fds[IN] >= 0 && s->rows && s->columns)
		(void)ioctl(s->fds[IN], TIOCSWINSZ, &size);
}

void
session_resize(struct session *s, unsigned rows, unsigned columns)
{
	s->rows = rows < 65536 ? rows : 65535;
	s->columns = columns < 65536 ? columns : 65535;
	set_size(s);
}

static int
on_readable(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct session *s = userdata;

	s->wake(s->arg);
	return 0;
}

/* Returns the number of bytes read; 0 if there are none now; -1 if the stream is closed. */
static ssize_t
read_stream(struct session *s, int i, void *buf, size_t max)
{
	size_t n_max = s->over && s->rest < max ? s->rest : max;
	ssize_t n = n_max ? read(s->fds[i], buf, n_max) : 0;

	if (n > 0) {
		s->rest -= s->over ? (size_t)n : 0;
		return n;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR) && !s->over) {
		(void)sd_event_source_set_enabled(s->sources[i], SD_EVENT_ONESHOT);
		return 0;
	}
	close_stream(s, i); /* a terminal returns EIO when no process has it open */
	return -1;
}

static enum session_item
next_of(struct session *s, int i, void *buf, size_t max, size_t *ret_len)
{
	ssize_t n = s->fds[i] >= 0 ? read_stream(s, i, buf, max) : -1;

	if (n > 0) {
		*ret_len = (size_t)n;
		return i == OUT ? SESSION_STDOUT : SESSION_STDERR;
	}
	if (n == 0 || s->close_reported[i])
		return SESSION_NOTHING;
	s->close_reported[i] = true;
	return i == OUT ? SESSION_STDOUT_CLOSED : SESSION_STDERR_CLOSED;
}

enum session_item
session_next(struct session *s, void *buf, size_t max, size_t *ret_len)
{
	for (int n = 0; n < 2 && s->begun; n++) {
		enum session_item item;

		/* The streams take turns, so that one with much output does not delay the other. */
		s->stderr_next = !s->stderr_next;
		item = next_of(s, s->stderr_next ? OUT : ERR, buf, max, ret_len);
		if (item != SESSION_NOTHING)
			return item;
	}
	if (!s->over || s->end_reported)
		return SESSION_NOTHING;
	s->end_reported = true;
	return s->error.code < 0 ? SESSION_FAILED : SESSION_EXITED;
}

int
session_exit_code(const struct session *s, int *ret_signal)
{
	*ret_signal = s->exit_signal;
	return s->exit_signal ? 128 + s->exit_signal : s->exit_code;
}

const struct err *
session_error(const struct session *s)
{
	return &s->error;
}

/* A terminal is one descriptor for input and output. */
static int
take_streams(struct session *s, int fds[STREAMS], size_t n)
{
	static const uint32_t events[] = { EPOLLOUT, EPOLLIN, EPOLLIN };
	int r;

	if (s->tty && n == 1) {
		fds[OUT] = dup(fds[IN]);
		if (fds[OUT] < 0)
			return -errno;
		n = 2;
	} else if (n != (s->tty ? 1 : STREAMS) && n != 0) {
		return -EPROTO;
	}
	for (size_t i = 0; i < n; i++) {
		s->fds[i] = steal_fd(&fds[i]);
		r = sd_event_add_io(s->sup->event, &s->sources[i], s->fds[i], events[i],
		    i == IN ? on_writable : on_readable, s);
		if (r < 0)
			return r;
		(void)sd_event_source_set_enabled(s->sources[i], SD_EVENT_OFF);
	}
	return 0;
}

static void
on_hello(struct session *s, int fds[STREAMS], size_t n)
{
	if (take_streams(s, fds, n) < 0) {
		fail_session(s, -EPROTO, "the session's executor sent no usable streams");
		return;
	}
	s->begun = true;
	close_p(&s->spec);
	s->close_reported[ERR] = s->tty;
	sup_timer_cancel(&s->late);
	set_size(s);
	update_input(s);
	wake_soon(s);
}

static void
on_state(struct session *s, const struct exe_hello *h)
{
	char sentence[512];

	if (h->state != EXE_FAILED)
		return;
	/* Clients name the command. */
	run_text_failure(sentence, sizeof sentence, h->step, h->error, h->detail,
	    h->step == EXE_STEP_COMMAND ? -1 : s->spec, "");
	/* The exit codes of a shell: 127 for no such command, 126 for one that cannot be run. */
	if (h->step == EXE_STEP_COMMAND)
		s->exit_code = h->error == ENOENT ? 127 : 126;
	fail_session(s, -h->error ?: -EIO, sentence);
}

static int
on_message(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	union exe_from m;
	struct session *s = userdata;
	int fds[STREAMS] = { -1, -1, -1 };
	size_t n = 0;
	ssize_t len;

	memset(&m, 0, sizeof m);
	len = fd_recv_msg(s->sock, &m, sizeof m, fds, STREAMS, &n, MSG_DONTWAIT);
	if (len == -EAGAIN)
		return 0;
	if (len >= EXE_HELLO_V1_SIZE && m.head.type == EXE_HELLO && !s->begun)
		on_hello(s, fds, n);
	else if (len >= EXE_HELLO_V1_SIZE && m.head.type == EXE_STATE)
		on_state(s, &m.hello);
	else if (len >= (ssize_t)sizeof m.exited && m.head.type == EXE_EXITED) {
		s->exit_code = m.exited.exit_code;
		s->exit_signal = m.exited.exit_signal;
		end_session(s);
	} else if (len < (ssize_t)sizeof m.head) {
		fail_session(s, -ECONNRESET, "the session's executor was lost");
	}
	for (size_t i = 0; i < STREAMS; i++)
		close_p(&fds[i]);
	return 0;
}

static void
on_late(void *arg)
{
	fail_session(arg, -ETIMEDOUT, "the session did not begin within 30 s");
}

static void
on_start_reply(struct sup *sup, void *arg, int code, const void *rep, int fd, const struct err *e)
{
	struct session *s = arg;
	int r;

	s->call = 0;
	if (code < 0) {
		fail_session(s, code, e->msg);
		return;
	}
	s->sock = fd;
	r = sd_event_add_io(sup->event, &s->sock_source, fd, EPOLLIN, on_message, s);
	if (r < 0) {
		fail_session(s, r, "the session's executor cannot be watched");
		return;
	}
	sup_timer_set(sup, &s->late, CLOCK_MONOTONIC, BEGIN_USEC, on_late, s);
}

struct session *
session_new(struct sup *sup, const struct exec_session_start_req *req, int spec_fd,
    session_wake *wake, void *arg, struct err *e)
{
	struct session *s;

	if (sup->n_sessions >= SESSIONS_MAX) {
		close_p(&spec_fd);
		(void)err_say(
		    e, -EBUSY, "there are %u sessions on this node already", sup->n_sessions);
		return NULL;
	}
	sup->n_sessions++;
	s = mem_new(struct session);
	*s = (struct session){ .sup = sup,
		.wake = wake,
		.arg = arg,
		.tty = req->start.tty,
		.spec = fcntl(spec_fd, F_DUPFD_CLOEXEC, 0),
		.sock = -1,
		.fds = { -1, -1, -1 } };
	s->call = exec_call_session_start(sup, req, spec_fd, on_start_reply, s);
	return s;
}

void
session_free(struct session *s)
{
	if (!s)
		return;
	child_call_cancel(s->sup, s->call);
	disconnect(s);
	for (int i = 0; i < STREAMS; i++)
		close_stream(s, i);
	close_p(&s->spec);
	s->soon = sd_event_source_disable_unref(s->soon);
	s->sup->n_sessions--;
	free(s->in);
	free(s);
}
