// SPDX-License-Identifier: Apache-2.0
/* http_reply.c: answers to requests: texts, streams, upgraded connections, and requests that are
 * held until later. Runs in: supervisor. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "model/engine/field.h"
#include "supervisor/http/http_audit.h"
#include "supervisor/http/http_req.h"
#include "supervisor/http/task_socket.h"

/* Limit of streams and upgraded connections: the rest of the connections stays free for requests
 * that are answered at once. */
#define STREAMS_MAX      80
#define TASK_STREAMS_MAX 8    /* of one task */
#define SMALL_ANSWER     4096 /* bytes; an answer up to this size is not counted as held memory */
#define STREAM_BLOCK     (16 * 1024)
#define STUCK_CHECK_USEC 1000000
#define TYPE_TEXT        "text/plain; charset=utf-8"

/* Suspending and resuming a connection. */

void
http_req_suspend(struct api_req *req)
{
	MHD_suspend_connection(req->conn);
	req->suspended = true;
}

void
http_req_resume(struct api_req *req)
{
	if (!req->suspended)
		return;
	req->suspended = false;
	req->hangup = sd_event_source_disable_unref(req->hangup);
	MHD_resume_connection(req->conn);
	/* libmicrohttpd, used without threads, continues a resumed connection only at the next
	 * MHD_run(), and does not report that one is due. */
	(void)sd_event_source_set_enabled(req->sup->api->again, SD_EVENT_ONESHOT);
}

void
http_watch_stuck_turns(struct sup *sup)
{
	sd_event_source *check = sup->api->stuck_check;
	uint64_t now;
	int on;

	if (sd_event_source_get_enabled(check, &on) > 0)
		return;
	(void)sd_event_now(sup->event, CLOCK_MONOTONIC, &now);
	(void)sd_event_source_set_time(check, now + STUCK_CHECK_USEC);
	(void)sd_event_source_set_enabled(check, SD_EVENT_ONESHOT);
}

void
http_req_leave_soon(struct api_req *req)
{
	if (!req->suspended)
		return;
	if (turn_is_stuck(req->sup, NULL) && !http_req_is_change(req)) {
		http_req_resume(req);
		return;
	}
	turn_defer(req->sup, &req->leave);
	http_watch_stuck_turns(req->sup);
}

/* Answers. */

static void
add_headers(struct api_req *req, const char *type)
{
	char index[24], contact[24];

	if (!req->meta.index)
		req->meta.index = api_index_now(req->sup);
	(void)snprintf(index, sizeof index, "%llu", (unsigned long long)req->meta.index);
	(void)snprintf(
	    contact, sizeof contact, "%lld", (long long)(req->meta.last_contact_ns / NS_PER_MS));
	(void)MHD_add_response_header(req->response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	(void)MHD_add_response_header(req->response, "X-Content-Type-Options", "nosniff");
	(void)MHD_add_response_header(req->response, "X-Nomad-Index", index);
	(void)MHD_add_response_header(
	    req->response, "X-Nomad-KnownLeader", req->meta.no_leader ? "false" : "true");
	(void)MHD_add_response_header(req->response, "X-Nomad-LastContact", contact);
	if (req->refused)
		(void)MHD_add_response_header(req->response, MHD_HTTP_HEADER_CONNECTION, "close");
	if (req->meta.next_token[0])
		(void)MHD_add_response_header(
		    req->response, "X-Nomad-NextToken", req->meta.next_token);
}

/* Stores the answer, which replaces an earlier one; it is sent after the commit, also if the
 * route's handler is still being called. Takes over the response; NULL only without memory. */
static void
set_answer(struct api_req *req, int status, const char *type, struct MHD_Response *response)
{
	if (req->response)
		MHD_destroy_response(req->response);
	req->status = status;
	req->response = mem_need(response);
	add_headers(req, type);
	http_req_leave_soon(req);
}

/* Makes an answer that stays in memory until it is sent. text was malloc()ed and is taken over. */
static void
set_whole_answer(struct api_req *req, int status, const char *type, char *text, size_t len)
{
	bool held;

	if (req->owed) { /* the client has its answer */
		free(text);
		req->owed = false;
		if (!req->conn)
			turn_defer(req->sup, &req->leave);
		return;
	}
	http_client_release(req->client, req->answer_len);
	req->answer_len = 0;
	held = len > SMALL_ANSWER && http_client_hold(req->client, len);
	/* A change that was made must not be answered with "try again". */
	if (len > SMALL_ANSWER && !held && !(req->route && req->route->durable)) {
		free(text);
		api_reply_error(req, 503, "%s", HTTP_NO_ROOM);
		return;
	}
	req->answer_len = held ? len : 0;
	set_answer(
	    req, status, type, MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE));
}

void
api_reply_text(struct api_req *req, int status, const char *type, const char *text, size_t len)
{
	char *copy = mem_alloc(len);

	memcpy(copy, text, len);
	set_whole_answer(req, status, type, copy, len);
}

void
api_reply_error(struct api_req *req, int status, const char *fmt, ...)
{
	char raw[2 * ERR_MSG_SIZE], text[2 * ERR_MSG_SIZE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(raw, sizeof raw, fmt, ap);
	va_end(ap);
	http_audit_note_error(req, raw);
	/* The text may quote the request, so control characters are replaced: it must stay one line
	 * on a terminal. */
	api_reply_text(
	    req, status, TYPE_TEXT, text, utf8_sanitize(text, sizeof text, raw, strlen(raw)));
}

void
api_reply_problems(struct api_req *req, int status, const struct problems *p)
{
	cleanup_free char *text = problems_text(p);

	api_reply_text(req, status, TYPE_TEXT, text, strlen(text));
}

static bool
is_pretty(const struct api_req *req)
{
	const char *pretty = api_query(req, "pretty");

	return pretty && strcmp(pretty, "0") != 0;
}

unsigned
api_model_flags(const struct api_req *req)
{
	return is_pretty(req) ? MODEL_INDENT : 0;
}

void
api_reply_json(struct api_req *req, json_t *body)
{
	api_reply_json_status(req, 200, body);
}

void
api_reply_json_status(struct api_req *req, int status, json_t *body)
{
	const size_t layout = is_pretty(req) ? JSON_INDENT(4) : JSON_COMPACT;
	char *text;

	if (!body) {
		api_reply_error(req, 500, "the answer contains text that is not valid UTF-8");
		return;
	}
	text = mem_need(json_text(body, layout));
	json_decref(body);
	set_whole_answer(req, status, HTTP_TYPE_JSON, text, strlen(text));
}

void
api_reply_take(struct api_req *req, struct text *json)
{
	set_whole_answer(req, 200, HTTP_TYPE_JSON, json->text, json->len);
	*json = (struct text){ 0 };
}

void
api_reply_model(struct api_req *req, const struct type *type, const void *obj)
{
	struct text json = { 0 };

	model_to_text(type, obj, api_model_flags(req), &json);
	api_reply_take(req, &json);
}

/* Streams. */

static int
on_hangup(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct api_req *req = userdata;

	req->gone_away = true;
	http_req_resume(req);
	return 0;
}

void
http_req_watch_hangup(struct api_req *req)
{
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(req->conn, MHD_CONNECTION_INFO_CONNECTION_FD);

	if (info)
		(void)sd_event_add_io(
		    req->sup->event, &req->hangup, info->connect_fd, 0, on_hangup, req);
}

/* Called when the socket has room for more of the stream. */
static ssize_t
on_room(void *cls, uint64_t pos, char *buf, size_t max)
{
	struct api_req *req = cls;
	ssize_t n;

	if (req->gone_away || req->sup->api->closing)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	n = req->stream->next(req->stream, buf, max);
	if (n > 0)
		return n;
	if (n < 0)
		return MHD_CONTENT_READER_END_OF_STREAM;
	http_req_suspend(req);
	http_req_watch_hangup(req);
	return 0;
}

/* Returns false if too many streams are being followed: by all, or by this task. */
static bool
add_stream(struct api_req *req)
{
	struct api_share *share = http_req_share(req);
	struct task_socket *task = req->client->task;

	if (share->n_streams >= STREAMS_MAX || (task && task->n_streams >= TASK_STREAMS_MAX))
		return false;
	share->n_streams++;
	if (task)
		task->n_streams++;
	return true;
}

void
http_req_drop_stream(struct api_req *req)
{
	http_req_share(req)->n_streams--;
	if (req->client->task)
		req->client->task->n_streams--;
}

void
api_reply_stream(struct api_req *req, const char *type, struct api_stream *st)
{
	if (!add_stream(req)) {
		st->done(st);
		api_reply_error(req, 503, "%u streams are being followed already",
		    http_req_share(req)->n_streams);
		return;
	}
	st->req = req;
	req->stream = st;
	set_answer(req, 200, type,
	    MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, on_room, req, NULL));
}

void
api_stream_wake(struct sup *sup, struct api_stream *st)
{
	/* Before its answer is queued, a stream waits for the turn, not for data. */
	if (st->req->queued)
		http_req_resume(st->req);
}

void
api_hold(struct api_req *req, struct api_held *held)
{
	req->held = held;
	req->hangup = sd_event_source_disable_unref(req->hangup);
	if (!held)
		return;
	held->req = req;
	http_req_watch_hangup(req);
}

/* Other protocols. */

static void
on_upgrade(void *cls, struct MHD_Connection *conn, void *con_cls, const char *early, size_t len,
    MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
	struct api_req *req = cls;

	req->upgraded = handle;
	req->socket->begin(req->socket, fd, early, len);
}

void
api_reply_socket(
    struct api_req *req, const char *protocol, const char *const *headers, struct api_socket *so)
{
	if (!add_stream(req)) {
		so->done(so);
		api_reply_error(
		    req, 503, "%u connections are held already", http_req_share(req)->n_streams);
		return;
	}
	so->req = req;
	req->socket = so;
	req->response = mem_need(MHD_create_response_for_upgrade(on_upgrade, req));
	req->status = MHD_HTTP_SWITCHING_PROTOCOLS;
	(void)MHD_add_response_header(req->response, MHD_HTTP_HEADER_UPGRADE, protocol);
	for (; *headers; headers += 2)
		(void)MHD_add_response_header(req->response, headers[0], headers[1]);
	http_req_leave_soon(req);
}

void
api_socket_close(struct api_socket *so)
{
	struct api_req *req = so->req;

	if (!req->upgraded)
		return;
	(void)MHD_upgrade_action(steal_ptr(&req->upgraded), MHD_UPGRADE_ACTION_CLOSE);
	(void)sd_event_source_set_enabled(req->sup->api->again, SD_EVENT_ONESHOT);
}
