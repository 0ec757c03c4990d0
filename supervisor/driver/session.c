// SPDX-License-Identifier: Apache-2.0
/* session.c: the talk with a session's executor, and its pipes or pty. Runs in: supervisor. */
#include "supervisor/driver/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "proto/executor.h"
#include "supervisor/driver/run_text.h"
#include "supervisor/core/sup_calls.h"

#define SESSIONS_MAX 64
#define INPUT_MAX    (64 * 1024)
#define REST_MAX     (1024 * 1024) /* of output after its end: no pipe holds more */
#define BEGIN_USEC   30000000
#define END_OF_FILE  4 /* ^D */

enum { IN, OUT, ERR, STREAMS };

struct session {
	struct sup *sup;
	session_wake *wake;
	void *arg;
	uint64_t call;
	bool tty;
	int sock, fds[STREAMS]; /* -1: not there yet, or closed */
	sd_event_source *talk, *late, *sources[STREAMS], *soon;
	char *in;
	size_t in_len;
	bool close_in; /* once `in` is empty */
	bool stderr_next;
	bool begun, over, closed_told[STREAMS], end_told;
	size_t rest;
	unsigned rows, columns; /* 0: nobody said */
	int exit_code, exit_signal;
	struct err error; /* code 0: none */
};

static unsigned n_sessions;

static void
close_stream(struct session *s, int i)
{
	s->sources[i] = sd_event_source_disable_unref(s->sources[i]);
	close_p(&s->fds[i]);
}

static void
stop_talk(struct session *s)
{
	s->talk = sd_event_source_disable_unref(s->talk);
	s->late = sd_event_source_disable_unref(s->late);
	close_p(&s->sock);
}

static int
on_soon(sd_event_source *source, void *userdata)
{
	struct session *s = userdata;

	s->wake(s->arg);
	return 0;
}

/* Never from within what the owner called. */
static void
wake_soon(struct session *s)
{
	if (!s->soon && sd_event_add_defer(s->sup->event, &s->soon, on_soon, s) < 0)
		return;
	(void)sd_event_source_set_enabled(s->soon, SD_EVENT_ONESHOT);
}

/* What is in its pipes is still read; what comes later is not waited for. */
static void
end(struct session *s)
{
	s->over = true;
	s->rest = REST_MAX;
	stop_talk(s);
	close_stream(s, IN);
	wake_soon(s);
}

static void
fail(struct session *s, int code, const char *sentence)
{
	(void)err_say(&s->error, code, "%s", sentence);
	end(s);
}

/* --- its input --- */

static void set_size(struct session *s);

static int
on_writable(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct session *s = userdata;
	ssize_t n = write(fd, s->in, s->in_len);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	/* Nobody reads it: then it goes nowhere. */
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
look_at_input(struct session *s)
{
	if (s->fds[IN] < 0)
		return;
	if (s->in_len > 0)
		(void)sd_event_source_set_enabled(s->sources[IN], SD_EVENT_ON);
	else if (s->close_in)
		close_stream(s, IN);
}

static void
put_input(struct session *s, const void *data, size_t len)
{
	char *grown;

	if (len == 0 || s->close_in || s->over || (s->begun && s->fds[IN] < 0))
		return;
	grown = realloc(s->in, s->in_len + len);
	if (!grown) {
		fail(s, -ENOMEM, "no memory for the session's input");
		return;
	}
	s->in = grown;
	memcpy(s->in + s->in_len, data, len);
	s->in_len += len;
}

void
session_write(struct session *s, const void *data, size_t len)
{
	put_input(s, data, len);
	look_at_input(s);
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
		put_input(s, &eof, 1);
	else
		s->close_in = true;
	look_at_input(s);
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

/* --- its output --- */

static int
on_readable(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct session *s = userdata;

	s->wake(s->arg);
	return 0;
}

/* More than 0: bytes; 0: nothing now; -1: it is closed. */
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
	close_stream(s, i); /* EIO: nobody has the terminal open */
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
	if (n == 0 || s->closed_told[i])
		return SESSION_NOTHING;
	s->closed_told[i] = true;
	return i == OUT ? SESSION_STDOUT_CLOSED : SESSION_STDERR_CLOSED;
}

enum session_item
session_next(struct session *s, void *buf, size_t max, size_t *ret_len)
{
	for (int n = 0; n < 2 && s->begun; n++) {
		enum session_item item;

		/* In turns, so that one that floods does not hide the other. */
		s->stderr_next = !s->stderr_next;
		item = next_of(s, s->stderr_next ? OUT : ERR, buf, max, ret_len);
		if (item != SESSION_NOTHING)
			return item;
	}
	if (!s->over || s->end_told)
		return SESSION_NOTHING;
	s->end_told = true;
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

/* --- the talk --- */

/* A terminal is its input and its output, and has no other. */
static int
take_streams(struct session *s, int fds[STREAMS], size_t n)
{
	static const uint32_t events[] = { EPOLLOUT, EPOLLIN, EPOLLIN };

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
		if (sd_event_add_io(s->sup->event, &s->sources[i], s->fds[i], events[i],
			i == IN ? on_writable : on_readable, s) < 0)
			return -ENOMEM;
		(void)sd_event_source_set_enabled(s->sources[i], SD_EVENT_OFF);
	}
	return 0;
}

static void
on_hello(struct session *s, int fds[STREAMS], size_t n)
{
	if (take_streams(s, fds, n) < 0) {
		fail(s, -EPROTO, "the session's executor gave no streams");
		return;
	}
	s->begun = true;
	s->closed_told[ERR] = s->tty;
	s->late = sd_event_source_disable_unref(s->late);
	set_size(s);
	look_at_input(s);
	wake_soon(s);
}

static void
on_state(struct session *s, const struct exe_hello *h)
{
	char sentence[512];

	if (h->state != EXE_FAILED)
		return;
	run_text_failure(sentence, sizeof sentence, h->step, h->error, h->detail);
	/* As a shell says it: there is no such command, or it cannot be run. */
	if (h->step == EXE_STEP_COMMAND)
		s->exit_code = h->error == ENOENT ? 127 : 126;
	fail(s, -h->error ?: -EIO, sentence);
}

static int
on_talk(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	union {
		struct exe_head head;
		struct exe_hello hello;
		struct exe_exited exited;
		uint8_t bytes[EXE_MSG_MAX];
	} m;
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
		end(s);
	} else if (len < (ssize_t)sizeof m.head) {
		fail(s, -ECONNRESET, "the session's executor was lost");
	}
	for (size_t i = 0; i < STREAMS; i++)
		close_p(&fds[i]);
	return 0;
}

static int
on_late(sd_event_source *source, uint64_t usec, void *userdata)
{
	fail(userdata, -ETIMEDOUT, "the session did not begin within 30 s");
	return 0;
}

static void
on_start_reply(struct sup *sup, void *arg, int code, const void *rep, int fd, const struct err *e)
{
	struct session *s = arg;

	s->call = 0;
	if (code < 0) {
		fail(s, code, e->msg);
		return;
	}
	s->sock = fd;
	if (sd_event_add_io(sup->event, &s->talk, fd, EPOLLIN, on_talk, s) < 0 ||
	    sd_event_add_time_relative(
		sup->event, &s->late, CLOCK_MONOTONIC, BEGIN_USEC, 0, on_late, s) < 0)
		fail(s, -ENOMEM, "no memory for a session");
}

struct session *
session_new(struct sup *sup, const struct exec_session_start_req *req, int spec_fd,
    session_wake *wake, void *arg, struct err *e)
{
	struct session *s = n_sessions < SESSIONS_MAX ? calloc(1, sizeof *s) : NULL;

	if (!s) {
		close_p(&spec_fd);
		(void)err_say(e, -EBUSY, "there are %u sessions on this node already", n_sessions);
		return NULL;
	}
	n_sessions++;
	*s = (struct session){ .sup = sup,
		.wake = wake,
		.arg = arg,
		.tty = req->tty,
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
	stop_talk(s);
	for (int i = 0; i < STREAMS; i++)
		close_stream(s, i);
	s->soon = sd_event_source_disable_unref(s->soon);
	free(s->in);
	free(s);
	n_sessions--;
}
