// SPDX-License-Identifier: Apache-2.0
/*
 * api_exec.c: GET /v1/client/allocation/:id/exec runs a command inside a task over a websocket;
 * /v1/job/:id/action runs one of the task's actions. Runs in: supervisor.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/list.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "common/websocket.h"
#include "model/engine/field.h"
#include "supervisor/api/api_exec.h"
#include "supervisor/api/api_routes.h"

#define MESSAGE_MAX (1024 * 1024) /* bytes of one message of the client */
#define OUT_ENOUGH  (64 * 1024)   /* limit of buffered output, bytes */
#define READ_SIZE   16384
#define WORDS_MAX   512

struct exec_socket {
	struct api_socket so;
	struct exec_stream es;
	int fd; /* -1 before the start and after the end */
	sd_event_source *io;
	struct ws_reader reader;
	struct text out;
	size_t out_at;
	bool handshake; /* the first message is a handshake */
	bool closing;   /* the close frame is in `out`: nothing may follow it */
};

/* Sending. */

static void
put_frame(struct exec_socket *ex, enum ws_opcode op, const void *data, size_t len)
{
	uint8_t head[WS_HEAD_MAX];

	if (ex->closing)
		return;
	text_append(&ex->out, (const char *)head, ws_head(head, op, len, NULL));
	text_append(&ex->out, data, len);
	ex->closing = op == WS_CLOSE;
}

static void
put_close(struct exec_socket *ex, enum ws_close code, const char *reason)
{
	char body[WS_CONTROL_MAX + 1] = { (char)(code >> 8), (char)(code & 0xff) };
	size_t len = 2 + utf8_sanitize(body + 2, sizeof body - 2, reason, strlen(reason));

	put_frame(ex, WS_CLOSE, body, len);
}

/* Buffers output up to OUT_ENOUGH. Returns true if there may be more. */
static bool
fill_output(struct exec_socket *ex)
{
	while (!ex->closing && ex->out.len - ex->out_at < OUT_ENOUGH) {
		struct text frame = { 0 };
		int r = exec_stream_next(&ex->es, &frame);

		if (r > 0)
			put_frame(ex, WS_TEXT, frame.text, frame.len);
		else if (r < 0)
			put_close(ex,
			    ex->es.status == 0     ? WS_CLOSE_NORMAL
			    : ex->es.status == 500 ? WS_CLOSE_ERROR
						   : WS_CLOSE_POLICY,
			    ex->es.error.msg);
		text_done(&frame);
		if (r == 0)
			return false;
	}
	return !ex->closing;
}

/* Sends buffered bytes. Returns 1 if all were sent, 0 if some are left, -errno if the client has
 * disconnected. */
static int
flush_out(struct exec_socket *ex)
{
	ssize_t n;

	while (ex->out_at < ex->out.len) {
		n = send(ex->fd, ex->out.text + ex->out_at, ex->out.len - ex->out_at,
		    MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		ex->out_at += (size_t)n;
	}
	ex->out.len = ex->out_at = 0;
	return 1;
}

/* Receiving. */

static void
take_handshake(struct exec_socket *ex, const json_t *json)
{
	ex->handshake = false;
	if (json_integer_value(json_object_get(json, "version")) != 1)
		put_close(ex, WS_CLOSE_POLICY, "unexpected handshake value");
}

static void
take_input(struct exec_socket *ex, const json_t *in)
{
	const char *text = json_string_value(json_object_get(in, "data"));
	cleanup_free char *bytes = text ? mem_alloc(strlen(text) / 4 * 3 + 1) : NULL;
	size_t len = 0;

	if (text && base64_decode(text, bytes, &len) < 0) {
		put_close(ex, WS_CLOSE_POLICY, "stdin: data is not base64");
		return;
	}
	if (len > 0)
		exec_stream_input(&ex->es, bytes, len);
	if (json_is_true(json_object_get(in, "close")))
		exec_stream_input_end(&ex->es);
}

static void
take_text(struct exec_socket *ex, const struct ws_message *m)
{
	json_t *json = json_loadb(m->data, m->len, JSON_REJECT_DUPLICATES, NULL);
	const json_t *size = json_object_get(json, "tty_size");

	if (!json_is_object(json)) {
		put_close(ex, WS_CLOSE_POLICY, "a message must be a JSON object");
	} else if (ex->handshake) {
		take_handshake(ex, json);
	} else {
		if (!json_object_get(json, "stdin") && !size)
			exec_stream_beat(&ex->es);
		take_input(ex, json_object_get(json, "stdin"));
		exec_stream_resize(&ex->es,
		    (long)json_integer_value(json_object_get(size, "height")),
		    (long)json_integer_value(json_object_get(size, "width")));
	}
	json_decref(json);
}

static void
take_bytes(struct exec_socket *ex, const char *data, size_t len)
{
	struct ws_message m;
	ssize_t n;

	for (; len > 0 && !ex->closing; data += n, len -= (size_t)n) {
		n = ws_read(&ex->reader, data, len, &m);
		if (n < 0) {
			put_close(ex, n == -EMSGSIZE ? WS_CLOSE_TOO_BIG : WS_CLOSE_PROTOCOL, "");
			return;
		}
		if (!m.data)
			return;
		if (m.op == WS_TEXT || m.op == WS_BINARY)
			take_text(ex, &m);
		else if (m.op == WS_PING)
			put_frame(ex, WS_PONG, m.data, m.len);
		else if (m.op == WS_CLOSE)
			put_close(ex, WS_CLOSE_NORMAL, "");
	}
}

/* Returns 0, or negative if the client has disconnected. */
static int
receive_input(struct exec_socket *ex)
{
	char data[READ_SIZE];
	ssize_t n = recv(ex->fd, data, sizeof data, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -ECONNRESET;
	take_bytes(ex, data, (size_t)n);
	return 0;
}

/* Lifetime. */

static void
end_socket(struct exec_socket *ex)
{
	ex->io = sd_event_source_disable_unref(ex->io);
	ex->fd = -1;
	exec_stream_done(&ex->es);
	api_socket_close(&ex->so);
}

static void
pump_socket(struct exec_socket *ex)
{
	bool more = fill_output(ex), room;
	int r = flush_out(ex);
	uint32_t events;

	if (r < 0 || (r > 0 && ex->closing)) {
		end_socket(ex);
		return;
	}
	/* Each ping must be answered, so no input is read while the client does not read its
	 * output. */
	room = ex->out.len - ex->out_at < OUT_ENOUGH && exec_stream_has_room(&ex->es);
	/* A command with much output continues after the others had their turn. */
	events = (r == 0 || more ? EPOLLOUT : 0u) | (!ex->closing && room ? EPOLLIN : 0u);
	(void)sd_event_source_set_io_events(ex->io, events);
}

static int
on_io(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct exec_socket *ex = userdata;

	if (((events & EPOLLIN) && receive_input(ex) < 0) || (events & (EPOLLHUP | EPOLLERR)))
		end_socket(ex);
	else
		pump_socket(ex);
	return 0;
}

static void
on_wake(struct exec_stream *es)
{
	struct exec_socket *ex = container_of(es, struct exec_socket, es);

	if (ex->fd >= 0)
		pump_socket(ex);
}

static void
on_begin(struct api_socket *so, int fd, const void *early, size_t len)
{
	struct exec_socket *ex = container_of(so, struct exec_socket, so);

	ex->fd = fd;
	take_bytes(ex, early, len);
	/* The socket is writable, so the work starts at once, from the work loop. */
	(void)sd_event_add_io(ex->es.sup->event, &ex->io, fd, EPOLLIN | EPOLLOUT, on_io, ex);
}

static void
on_done(struct api_socket *so)
{
	struct exec_socket *ex = container_of(so, struct exec_socket, so);

	ex->io = sd_event_source_disable_unref(ex->io);
	exec_stream_done(&ex->es);
	ws_reader_done(&ex->reader);
	text_done(&ex->out);
	free(ex);
}

/* The request. */

/* Reads the words of ?command=, a JSON array. Returns 0, or -EINVAL with *e. The words live as long
 * as *ret_json. */
static int
take_command(const struct api_req *req, json_t **ret_json, char *words[WORDS_MAX], size_t *ret_n,
    struct err *e)
{
	const char *text = api_query(req, "command");
	json_t *word;
	size_t i;

	*ret_n = 0;
	*ret_json = json_loads(text && *text ? text : "[]", JSON_ALLOW_NUL, NULL);
	if (!json_is_array(*ret_json) || json_array_size(*ret_json) > WORDS_MAX)
		return err_say(
		    e, -EINVAL, "command must be a JSON list of at most %d strings", WORDS_MAX);
	json_array_foreach (*ret_json, i, word) {
		if (!json_is_string(word) ||
		    strlen(json_string_value(word)) != json_string_length(word))
			return err_say(e, -EINVAL, "command[%zu] must be a string without NUL", i);
		words[i] = (char *)(uintptr_t)json_string_value(word);
	}
	*ret_n = i;
	return 0;
}

static bool
is_websocket(const struct api_req *req)
{
	const char *upgrade = api_header(req, "Upgrade"), *version;

	version = api_header(req, "Sec-WebSocket-Version");
	return upgrade && strcasecmp(upgrade, "websocket") == 0 && version &&
	       strcmp(version, "13") == 0 && api_header(req, "Sec-WebSocket-Key");
}

/* Switches the connection to a websocket; takes over ex. */
static void
reply_socket(struct api_req *req, struct exec_socket *ex)
{
	char accept[WS_ACCEPT_SIZE];
	const char *const headers[] = { "Sec-WebSocket-Accept", accept, NULL };

	ws_accept(api_header(req, "Sec-WebSocket-Key"), accept);
	api_reply_socket(req, "websocket", headers, &ex->so);
}

/* Reads the parameters task, tty and ws_handshake. Returns 0, or -EINVAL with *e. */
static int
take_wish(const struct api_req *req, struct exec_socket *ex, struct exec_wish *wish, struct err *e)
{
	wish->task = api_query(req, "task");
	if (api_query_bool(req, "tty", &wish->tty, e) < 0)
		return -EINVAL;
	return api_query_bool(req, "ws_handshake", &ex->handshake, e);
}

static struct exec_socket *
new_socket(struct sup *sup)
{
	struct exec_socket *ex = mem_new(struct exec_socket);

	*ex = (struct exec_socket){ .so = { on_begin, on_done, NULL },
		.es = { .sup = sup, .wake = on_wake },
		.fd = -1,
		.reader = { .masked = true, .max = MESSAGE_MAX } };
	return ex;
}

static int
refuse_plain(struct err *e)
{
	return err_say(
	    e, -EINVAL, "this path is a websocket, and the request is not a websocket handshake");
}

void
api_exec_far(struct sup *sup, struct api_req *req, void (*begin)(struct exec_stream *es, void *arg),
    void *arg)
{
	struct exec_socket *ex = new_socket(sup);
	struct err e = { 0 };
	int status = 400;

	if (api_query_bool(req, "ws_handshake", &ex->handshake, &e) == 0 && !is_websocket(req))
		(void)refuse_plain(&e);
	if (e.code == 0) {
		begin(&ex->es, arg);
		status =
		    ex->es.far
			? 0
			: (err_say(&e, -EBUSY, "too many streams to the servers are open"), 503);
	}
	if (status == 0) {
		reply_socket(req, ex);
		return;
	}
	on_done(&ex->so);
	api_reply_error(req, status, "%s", e.msg);
}

static void
serve_command(struct sup *sup, struct api_req *req, struct exec_wish *wish)
{
	struct exec_socket *ex = new_socket(sup);
	char *words[WORDS_MAX];
	json_t *json = NULL;
	struct err e = { 0 };
	int status = 400;
	struct id id;

	wish->alloc = id_from_uuid(str(wish->alloc_text), &id) ? &id : NULL;
	wish->command = words;
	if (take_wish(req, ex, wish, &e) == 0 &&
	    (wish->action || take_command(req, &json, words, &wish->n_command, &e) == 0)) {
		if (is_websocket(req))
			status = exec_stream_open(sup, &ex->es, wish, &e);
		else
			(void)refuse_plain(&e);
	}
	json_decref(json);
	if (status == 0) {
		reply_socket(req, ex);
		return;
	}
	on_done(&ex->so);
	api_reply_error(req, status, "%s", e.msg);
}

void
api_exec_command(struct sup *sup, struct api_req *req)
{
	struct exec_wish wish = { .alloc_text = api_param(req, 0) };

	serve_command(sup, req, &wish);
}

void
api_exec_action(struct sup *sup, struct api_req *req)
{
	struct exec_wish wish = { .alloc_text = api_query(req, "allocID"),
		.job = api_param(req, 0),
		.action = str(api_query(req, "action")) };

	serve_command(sup, req, &wish);
}
