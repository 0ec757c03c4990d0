// SPDX-License-Identifier: Apache-2.0
/* cli_exec.c: drover alloc exec, and what it shares with drover action: a command inside a task,
 * over a websocket (Nomad's frames). Runs in: cli. */
#include "cli/cli_exec.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/cli_alloc.h"
#include "cli/cli_api.h"
#include "cli/cli_namespace.h"
#include "cli/cli_pick.h"
#include "cli/cli_print.h"
#include "cli/cli_terminal.h"
#include "cli/cli_verbs.h"
#include "common/base64.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/websocket.h"

#define HEAD_MAX    8192
#define READ_SIZE   8192
#define OUT_ENOUGH  65536
#define MESSAGE_MAX (4 * 1024 * 1024)

#define NOT_SAID 2

struct cli_exec_options cli_exec_options = { .input = true, .tty.said = NOT_SAID, .escape = "~" };

const struct cli_flag cli_alloc_exec_flags[] = {
	CLI_EXEC_FLAGS,
	CLI_PICK_FLAGS,
	{ "task", CLI_FLAG_STRING, &cli_exec_options.task, "TASK",
	    "the task, if the allocation has more than one" },
	{ 0 },
};

struct talk {
	int fd, signals;
	struct ws_reader reader;
	struct text out; /* bytes to send */
	bool input, tty;
	bool exited, closed;
	int code;
	struct cli_escape escape;
};

/* Sending. */

static void
put_frame(struct talk *t, enum ws_opcode op, const char *text, size_t len)
{
	uint8_t head[WS_HEAD_MAX], mask[4];
	size_t at, n;

	if (getrandom(mask, sizeof mask, 0) != (ssize_t)sizeof mask)
		memset(mask, 0, sizeof mask);
	n = ws_head(head, op, len, mask);
	text_append(&t->out, (const char *)head, n);
	at = t->out.len;
	text_append(&t->out, text, len);
	ws_mask(t->out.text + at, len, mask, 0);
}

static void
put_text(struct talk *t, const char *text)
{
	put_frame(t, WS_TEXT, text, strlen(text));
}

static void
put_size(struct talk *t)
{
	unsigned rows, columns;
	char text[96];

	if (!t->tty || !cli_terminal_size(&rows, &columns))
		return;
	(void)snprintf(
	    text, sizeof text, "{\"tty_size\":{\"height\":%u,\"width\":%u}}", rows, columns);
	put_text(t, text);
}

static void
end_input(struct talk *t)
{
	t->input = false;
	put_text(t, "{\"stdin\":{\"close\":true}}");
}

static void
put_input(struct talk *t, const char *data, size_t len)
{
	char text[BASE64_SIZE(2 * READ_SIZE) + 64];
	size_t n = (size_t)sprintf(text, "{\"stdin\":{\"data\":\"");

	n += base64_encode(data, len, text + n);
	n += (size_t)sprintf(text + n, "\"}}");
	put_frame(t, WS_TEXT, text, n);
}

static int
send_some(struct talk *t, struct err *e)
{
	ssize_t n = send(t->fd, t->out.text, t->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	/* The agent may have sent a reason before it closed the connection. */
	if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
		n = (ssize_t)t->out.len;
	if (n < 0)
		return err_set(e, -errno, "send to the agent");
	t->out.len -= (size_t)n;
	memmove(t->out.text, t->out.text + n, t->out.len);
	return 0;
}

/* Returns 0, 1 if the operator typed the escape to leave, or -errno. */
static int
read_input(struct talk *t, struct err *e)
{
	char in[READ_SIZE], out[2 * READ_SIZE];
	ssize_t n = read(STDIN_FILENO, in, sizeof in);
	long kept;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0 && errno != EIO && errno != EBADF)
		return err_set(e, -errno, "read the input");
	if (n <= 0) {
		end_input(t);
		return 0;
	}
	kept = cli_escape_filter(&t->escape, in, (size_t)n, out);
	if (kept > 0)
		put_input(t, out, (size_t)kept);
	return kept < 0;
}

/* Receiving. */

static int
print_data(int fd, const json_t *stream, struct err *e)
{
	const char *text = cli_json_str(stream, "data");
	cleanup_free char *data = mem_alloc(strlen(text) + 1);
	size_t len;
	ssize_t n;

	if (base64_decode(text, data, &len) < 0)
		return err_say(e, -EPROTO, "the agent sent an invalid frame");
	for (size_t done = 0; done < len; done += (size_t)n) {
		n = write(fd, data + done, len - done);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			n = 0;
		if (n < 0)
			return err_set(e, -errno, "write the command's output");
	}
	return 0;
}

static int
on_text(struct talk *t, const struct ws_message *m, struct err *e)
{
	cleanup_json json_t *frame = json_loadb(m->data, m->len, 0, NULL);
	int r;

	if (!json_is_object(frame))
		return err_say(e, -EPROTO, "the agent sent an invalid frame");
	r = print_data(STDOUT_FILENO, cli_json_get(frame, "stdout"), e);
	if (r == 0)
		r = print_data(STDERR_FILENO, cli_json_get(frame, "stderr"), e);
	if (cli_json_true(frame, "exited")) {
		t->exited = true;
		t->code = (int)cli_json_int(frame, "result/exit_code");
	}
	return r;
}

static int
on_message(struct talk *t, const struct ws_message *m, struct err *e)
{
	switch (m->op) {
	case WS_TEXT:
	case WS_BINARY:
		return on_text(t, m, e);
	case WS_PING:
		put_frame(t, WS_PONG, m->data, m->len);
		return 0;
	case WS_CLOSE:
		t->closed = true;
		if (!t->exited)
			return err_say(e, -EREMOTEIO, "%s",
			    m->len > 2 ? m->data + 2 : "the agent ended the session");
		return 0;
	default:
		return 0;
	}
}

static int
take_bytes(struct talk *t, const char *data, size_t len, struct err *e)
{
	struct ws_message m;
	ssize_t n;
	int r = 0;

	for (; len > 0 && r == 0 && !t->closed; data += n, len -= (size_t)n) {
		n = ws_read(&t->reader, data, len, &m);
		if (n < 0)
			return err_set(e, (int)n, "read the agent's frames");
		if (m.data)
			r = on_message(t, &m, e);
	}
	return r;
}

static int
receive_bytes(struct talk *t, struct err *e)
{
	char data[4 * READ_SIZE];
	ssize_t n = recv(t->fd, data, sizeof data, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		t->closed = true;
		return t->exited ? 0
				 : err_say(e, -ECONNRESET,
				       "the connection to the agent was lost; the command has "
				       "ended with it");
	}
	return take_bytes(t, data, (size_t)n, e);
}

/* The session. */

static int
run_turn(struct talk *t, struct err *e)
{
	struct signalfd_siginfo info;
	struct pollfd p[] = {
		{ .fd = t->fd, .events = (short)(POLLIN | (t->out.len ? POLLOUT : 0)) },
		{ .fd = t->input && t->out.len < OUT_ENOUGH ? STDIN_FILENO : -1, .events = POLLIN },
		{ .fd = t->signals, .events = POLLIN },
	};
	int r = 0;

	if (poll(p, ELEMENTSOF(p), -1) < 0)
		return errno == EINTR ? 0 : err_set(e, -errno, "wait for the agent");
	if (p[2].revents && read(t->signals, &info, sizeof info) > 0)
		put_size(t);
	if (p[1].revents)
		r = read_input(t, e);
	if (r == 0 && t->out.len)
		r = send_some(t, e);
	if (r == 0 && (p[0].revents & (POLLIN | POLLHUP | POLLERR)))
		r = receive_bytes(t, e);
	if (r == 1)
		t->closed = true;
	return r == 1 ? 0 : r;
}

static int
run_talk(struct talk *t, struct err *e)
{
	sigset_t winch;
	int r = 0;

	(void)sigemptyset(&winch);
	(void)sigaddset(&winch, SIGWINCH);
	(void)sigprocmask(SIG_BLOCK, &winch, NULL);
	t->signals = signalfd(-1, &winch, SFD_CLOEXEC | SFD_NONBLOCK);
	put_size(t);
	if (!t->input)
		end_input(t);
	while (r == 0 && !t->closed)
		r = run_turn(t, e);
	cli_terminal_restore();
	(void)close(t->signals);
	return r;
}

/* The handshake. */

static int
keep_refusal(void *arg, const void *data, size_t len, struct err *e)
{
	char *text = arg;
	size_t n = strlen(text), room = ERR_MSG_SIZE - 1 - n;

	(void)e;
	(void)strncat(text, data, len < room ? len : room);
	return 0;
}

/* The agent answered with a status other than 101. */
static int
read_refusal(struct talk *t, const char *head, size_t len, uint64_t deadline, struct err *e)
{
	char text[ERR_MSG_SIZE] = "";
	struct cli_http_parser parser;
	int r;

	cli_http_parser_init(&parser, keep_refusal, text);
	r = cli_http_parser_feed(&parser, head, len, e);
	while (r == 0 && parser.state != CLI_HTTP_DONE)
		r = cli_http_recv(t->fd, &parser, deadline, e);
	return r < 0 ? r
		     : err_say(e, -EREMOTEIO, "%s", *text ? text : "the agent refused the request");
}

static bool
is_accepted(const char *head, const char *key)
{
	char accept[WS_ACCEPT_SIZE], line[WS_ACCEPT_SIZE + 32];

	ws_accept(key, accept);
	(void)snprintf(line, sizeof line, "\r\nSec-WebSocket-Accept: %s\r\n", accept);
	return strcasestr(head, line);
}

/* Bytes after the head of the answer belong to the session. */
static int
read_answer(struct talk *t, const char *key, uint64_t deadline, struct err *e)
{
	char head[HEAD_MAX + 1] = "", *end;
	size_t len = 0;
	int r;

	while (!(end = strstr(head, "\r\n\r\n"))) {
		struct pollfd p = { .fd = t->fd, .events = POLLIN };
		uint64_t now = clock_ms();
		ssize_t n;

		if (now >= deadline || poll(&p, 1, (int)(deadline - now)) == 0)
			return err_say(e, -ETIMEDOUT, "the agent did not answer in time");
		n = recv(t->fd, head + len, HEAD_MAX - len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || len == HEAD_MAX)
			return err_say(e, -ECONNRESET, "the agent's answer was cut off");
		len += (size_t)n;
		head[len] = '\0';
	}
	if (strncmp(head, "HTTP/1.1 101 ", 13) != 0)
		return read_refusal(t, head, len, deadline, e);
	end[2] = '\0'; /* the empty line after the last header */
	if (!is_accepted(head, key))
		return err_say(e, -EPROTO, "the agent's answer is not a websocket handshake");
	end += 4;
	/* The terminal is switched before any output is shown, so that a ^C typed in response
	 * reaches the command. */
	r = t->tty && t->input ? cli_terminal_raw(e) : 0;
	return r < 0 ? r : take_bytes(t, end, len - (size_t)(end - head), e);
}

static int
open_talk(struct cli *cli, struct talk *t, const char *target, struct err *e)
{
	uint64_t deadline = clock_ms() + cli->timeout_ms;
	char key[BASE64_SIZE(16)];
	cleanup_free char *head = NULL, *token = NULL, *whole = NULL;
	uint8_t bytes[16];
	ssize_t n;
	int r;

	r = cli_http_token(&token, e);
	if (r < 0)
		return r;
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return err_set(e, -errno, "generate the websocket key");
	key[base64_encode(bytes, sizeof bytes, key)] = '\0';
	t->fd = cli_api_connect(cli, e);
	if (t->fd < 0)
		return t->fd;
	whole = cli_namespace_target(cli, "GET", target);
	head = mem_printf(
	    "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
	    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n%s\r\n",
	    whole, key, token);
	n = send(t->fd, head, strlen(head), MSG_NOSIGNAL);
	if (n != (ssize_t)strlen(head))
		return err_set(e, n < 0 ? -errno : -EIO, "send to the agent");
	return read_answer(t, key, deadline, e);
}

/* Fills in t from the flags. */
static int
take_options(struct talk *t, struct err *e)
{
	const struct cli_exec_options *o = &cli_exec_options;

	t->input = o->input;
	t->tty =
	    o->tty.said == NOT_SAID ? isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) : o->tty.on;
	if (t->tty && t->input && strcmp(o->escape, "none") != 0)
		t->escape.c = o->escape[0];
	if (strlen(o->escape) != 1 && strcmp(o->escape, "none") != 0)
		return err_say(
		    e, -EINVAL, "-e takes one character, or \"none\", not \"%s\"", o->escape);
	return 0;
}

int
cli_exec_talk(struct cli *cli, const char *path_and_query, struct err *e)
{
	struct talk t = { .fd = -1, .reader.max = MESSAGE_MAX };
	cleanup_free char *target = NULL;
	int r = take_options(&t, e);

	if (r == 0) {
		target = mem_printf("%s&tty=%s", path_and_query, cli_yes(t.tty));
		r = open_talk(cli, &t, target, e);
		if (r < 0 && t.fd < 0)
			r = cli_api_explain(cli, e);
		else if (r == 0)
			r = run_talk(&t, e);
	}
	if (t.fd >= 0)
		(void)close(t.fd);
	ws_reader_done(&t.reader);
	text_done(&t.out);
	return r < 0 ? r : t.exited ? t.code : CLI_FAILED;
}

static int
exec_in(
    struct cli *cli, const char *alloc_id, const char *task, int argc, char **argv, struct err *e)
{
	cleanup_json json_t *words = cli_json_strings(argv, (size_t)argc);
	cleanup_free char *command = NULL, *target = NULL;

	if (!words)
		return err_say(e, -EINVAL, "an argument of the command is not UTF-8");
	command = json_dumps(words, JSON_COMPACT);
	target =
	    cli_target("/v1/client/allocation/%s/exec?task=%s&command=%s", alloc_id, task, command);
	return cli_exec_talk(cli, target, e);
}

int
cli_alloc_exec(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *id = NULL, *task = NULL;
	struct err e = { 0 };
	int r;

	r = cli_pick_alloc(cli, argv[0], &id, &e);
	if (r == 0)
		r = cli_alloc_task(cli, id, NULL, cli_exec_options.task, &task, &e);
	if (r == 0)
		r = exec_in(cli, id, task, argc - 1, argv + 1, &e);
	return r < 0 ? cli_fail(cli, &e) : r;
}
