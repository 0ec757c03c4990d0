// SPDX-License-Identifier: Apache-2.0
/* http.c: the control socket, with libmicrohttpd inside the work loop. Runs in: supervisor. Asked
 * by: operators. */
#include "supervisor/http/api.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/list.h"
#include "common/log.h"
#include "common/utf8.h"
#include "model/engine/field.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/http/api_router.h"
#include "supervisor/http/api_wait.h"
#include "supervisor/http/http_clients.h"
#include "supervisor/http/http_req.h"

#define STREAMS_MAX                                                                                \
	80 /* of the connections: followers must not keep out whoever asks something               \
	    */
#define CONNECTIONS_MAX 1200 /* with those of api_wait.c */
#define CONNECTION_MEMORY                                                                          \
	(32 * 1024u) /* what one connection may make us hold: also the limit of its header */
#define IDLE_TIMEOUT_S 30u
#define BODY_MAX       (1024 * 1024)
#define BODY_DRAIN_MAX                                                                             \
	(64ull * 1024 * 1024) /* a body that is too large is read up to here, so that 413 arrives  \
			       */
#define SMALL_ANSWER 4096     /* and less is not counted: there is always memory to refuse */
#define NO_ROOM                                                                                    \
	"the requests and answers of all clients together take too much memory: try again in a "   \
	"moment"
#define STREAM_BLOCK     (16 * 1024)
#define STUCK_CHECK_USEC 1000000
#define TYPE_JSON        "application/json"
#define TYPE_TEXT        "text/plain; charset=utf-8"

struct api {
	const struct api_route *routes;
	const struct api_backend *backend;
	struct MHD_Daemon *mhd;
	sd_event_source *io, *timer, *again, *stuck_check;
	struct api_req *reqs;
	struct http_clients clients;
	unsigned n_streams;
	bool full; /* it does not accept connections for now */
	bool closing;
};

/* Suspending and resuming a connection. */

static void
suspend(struct api_req *req)
{
	MHD_suspend_connection(req->conn);
	req->suspended = true;
}

static void
resume(struct api_req *req)
{
	if (!req->suspended)
		return;
	req->suspended = false;
	req->hangup = sd_event_source_disable_unref(req->hangup);
	MHD_resume_connection(req->conn);
	/* Without threads libmicrohttpd continues a resumed connection only when it is run, and
	 * does not report that it needs to be. */
	(void)sd_event_source_set_enabled(req->sup->api->again, SD_EVENT_ONESHOT);
}

static void
on_leave(struct sup *sup, struct deferred *d)
{
	struct api_req *req = container_of(d, struct api_req, leave);

	resume(req);
}

static void
watch_for_stuck_turns(struct api *api, struct sup *sup)
{
	uint64_t now;
	int on;

	if (sd_event_source_get_enabled(api->stuck_check, &on) > 0)
		return;
	(void)sd_event_now(sup->event, CLOCK_MONOTONIC, &now);
	(void)sd_event_source_set_time(api->stuck_check, now + STUCK_CHECK_USEC);
	(void)sd_event_source_set_enabled(api->stuck_check, SD_EVENT_ONESHOT);
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
	if (req->meta.next_token[0])
		(void)MHD_add_response_header(
		    req->response, "X-Nomad-NextToken", req->meta.next_token);
}

/* Stores the answer, which is sent after the commit, also if the route's handler is still being
 * called. */
static void
leave_soon(struct api_req *req)
{
	if (req->suspended) {
		turn_defer(req->sup, &req->leave);
		watch_for_stuck_turns(req->sup->api, req->sup);
	}
}

static void
set_answer(struct api_req *req, int status, const char *type, struct MHD_Response *response)
{
	if (response) {
		if (req->response)
			MHD_destroy_response(req->response);
		req->status = status;
		req->response = response;
		add_headers(req, type);
	}
	leave_soon(req);
}

/* Makes an answer that stays in memory until it is sent. text was malloc()ed and is taken over. */
static void
set_whole_answer(struct api_req *req, int status, const char *type, char *text, size_t len)
{
	bool held;

	http_client_release(req->client, req->answer_len);
	req->answer_len = 0;
	held = len > SMALL_ANSWER && http_client_hold(req->client, len);
	/* A change that was made must not be answered with "try again". */
	if (len > SMALL_ANSWER && !held && !(req->route && req->route->durable)) {
		free(text);
		api_reply_error(req, 503, "%s", NO_ROOM);
		return;
	}
	req->answer_len = held ? len : 0;
	set_answer(
	    req, status, type, MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE));
}

void
api_reply_text(struct api_req *req, int status, const char *type, const char *text, size_t len)
{
	char *copy = malloc(len + 1);

	if (copy)
		memcpy(copy, text, len);
	else
		len = 0;
	set_whole_answer(req, copy ? status : 500, type, copy, len);
}

void
api_reply_error(struct api_req *req, int status, const char *fmt, ...)
{
	char raw[2 * ERR_MSG_SIZE], text[2 * ERR_MSG_SIZE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(raw, sizeof raw, fmt, ap);
	va_end(ap);
	/* The text may quote the request, so control characters are replaced: it must stay one line
	 * on a terminal. */
	api_reply_text(
	    req, status, TYPE_TEXT, text, utf8_sanitize(text, sizeof text, raw, strlen(raw)));
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
	char *text = body ? json_dumps(body,
				JSON_ENCODE_ANY | (is_pretty(req) ? JSON_INDENT(4) : JSON_COMPACT))
			  : NULL;

	json_decref(body);
	if (!text) {
		api_reply_error(req, 500, "no memory for the answer");
		return;
	}
	set_whole_answer(req, 200, TYPE_JSON, text, strlen(text));
}

void
api_reply_take(struct api_req *req, struct text *json)
{
	if (json->failed || !json->text) {
		text_done(json);
		api_reply_error(req, 500, "no memory for the answer");
		return;
	}
	set_whole_answer(req, 200, TYPE_JSON, json->text, json->len);
	*json = (struct text){ 0 };
}

void
api_reply_model(struct api_req *req, const struct type *type, const void *obj)
{
	struct text json = { 0 };

	if (model_to_text(type, obj, api_model_flags(req), &json) < 0)
		json.failed = true;
	api_reply_take(req, &json);
}

/* Streams. */

static int
on_hangup(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct api_req *req = userdata;

	req->gone_away = true;
	resume(req);
	return 0;
}

/* libmicrohttpd does not watch a suspended connection, so a client that disconnects would hold it
 * for ever. */
static void
watch_for_hangup(struct api_req *req)
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
	suspend(req);
	watch_for_hangup(req);
	return 0;
}

void
api_reply_stream(struct api_req *req, const char *type, struct api_stream *st)
{
	if (req->sup->api->n_streams >= STREAMS_MAX) {
		st->done(st);
		api_reply_error(req, 503, "%d streams are being followed already", STREAMS_MAX);
		return;
	}
	req->sup->api->n_streams++;
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
		resume(st->req);
}

void
api_hold(struct api_req *req, struct api_held *held)
{
	req->held = held;
	req->hangup = sd_event_source_disable_unref(req->hangup);
	if (!held)
		return;
	held->req = req;
	watch_for_hangup(req);
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
	struct MHD_Response *response = NULL;

	if (req->sup->api->n_streams < STREAMS_MAX)
		response = MHD_create_response_for_upgrade(on_upgrade, req);
	if (!response) {
		so->done(so);
		api_reply_error(req, 503, "%d connections are held already", STREAMS_MAX);
		return;
	}
	req->sup->api->n_streams++;
	so->req = req;
	req->socket = so;
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, protocol);
	for (; *headers; headers += 2)
		(void)MHD_add_response_header(response, headers[0], headers[1]);
	req->status = MHD_HTTP_SWITCHING_PROTOCOLS;
	req->response = response;
	leave_soon(req);
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

/* Requests. */

struct ucred
api_peer(const struct api_req *req)
{
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(req->conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t len = sizeof peer;

	if (info)
		(void)getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	return peer;
}

static void
log_request(struct api_req *req)
{
	const struct ucred peer = api_peer(req);

	log_print(req->route && req->route->durable ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
	    "%s %s%s%s by uid %u, pid %d: %d", req->method,
	    req->route ? req->route->pattern : "(no route)", req->target.n_params ? " of " : "",
	    req->target.n_params ? req->target.params[0] : "", peer.uid, peer.pid, req->status);
}

static enum MHD_Result
queue_answer(struct api_req *req)
{
	req->queued = true;
	log_request(req);
	if (req->stream && !req->stream->beats) /* a client that follows may be silent for hours */
		(void)MHD_set_connection_option(req->conn, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
	if (!req->stream && !req->socket)
		http_client_reads(req->client);
	return MHD_queue_response(req->conn, (unsigned)req->status, req->response);
}

static void
route_request(struct api_req *req)
{
	const struct api_backend *backend = req->sup->api->backend;
	struct err e = { 0 };
	const char *why;
	int r;

	if (req->body_seen > BODY_MAX) {
		api_reply_error(req, 413, "the body is longer than %d bytes", BODY_MAX);
		return;
	}
	if (req->no_room) {
		api_reply_error(req, 503, "%s", NO_ROOM);
		return;
	}
	r = api_target_parse(req->uri, &req->target, &e);
	if (r < 0) {
		api_reply_error(req, r == -E2BIG ? 414 : 400, "%s", e.msg);
		return;
	}
	r = api_route_find(req->sup->api->routes, req->method, &req->target, &req->route);
	why = r == -ENOENT && backend->elsewhere ? backend->elsewhere(req->uri) : NULL;
	if (why) {
		api_reply_error(req, 501, "%s", why);
		return;
	}
	if (r < 0)
		api_reply_error(req, r == -ENOENT ? 404 : 405,
		    r == -ENOENT ? "resource not found" : "Invalid method");
	else if (backend->admit)
		backend->admit(req->sup, req);
	else
		api_serve(req);
}

static void
drop_body(struct api_req *req)
{
	json_decref(req->json);
	req->json = NULL;
	free(req->body);
	req->body = NULL;
	http_client_release(req->client, req->body_len);
	req->body_len = 0;
}

void
api_serve(struct api_req *req)
{
	const char *why;

	if (req->route->durable) {
		if (turn_is_stuck(req->sup, &why)) {
			api_reply_error(req, 507, "nothing can be changed now: %s", why);
			return;
		}
		turn_durable(req->sup);
	}
	if (!api_wait_serve(req))
		req->route->fn(req->sup, req);
	drop_body(req); /* the answer may come much later */
}

static void
gather(struct api_req *req, const char *data, size_t size)
{
	char *grown = NULL;

	req->body_seen += size;
	if (req->body_seen <= BODY_MAX && !req->no_room && http_client_hold(req->client, size)) {
		grown = realloc(req->body, req->body_len + size);
		if (!grown)
			http_client_release(req->client, size);
	}
	if (!grown) { /* the rest of the body is still read, so that the client gets the answer */
		req->no_room = true;
		drop_body(req);
		return;
	}
	(void)memcpy(grown + req->body_len, data, size);
	req->body = grown;
	req->body_len += size;
}

static enum MHD_Result
on_request(void *cls, struct MHD_Connection *conn, const char *url, const char *method,
    const char *version, const char *data, size_t *size, void **con_cls)
{
	struct api_req *req = *con_cls;

	if (!req || req->client->cut)
		return MHD_NO;
	if (!req->begun) {
		req->begun = true;
		req->conn = conn;
		req->method = method;
		return MHD_YES;
	}
	if (*size > 0) {
		gather(req, data, *size);
		*size = 0;
		return req->body_seen > BODY_DRAIN_MAX ? MHD_NO : MHD_YES;
	}
	if (req->routed) {
		if (req->gone_away)
			return MHD_NO;
		if (!req->response)
			api_reply_error(req, 503,
			    req->sup->api->closing ? "the agent is stopping"
						   : "no memory for the answer");
		return req->response ? queue_answer(req) : MHD_NO;
	}
	req->routed = true;
	http_client_asks(req->client);
	route_request(req);
	/* Errors and reads change nothing, so they are answered even while commits fail. */
	if (req->response && turn_is_stuck(req->sup, NULL))
		return queue_answer(req);
	suspend(req);
	if (req->response) {
		turn_defer(req->sup, &req->leave);
		watch_for_stuck_turns(req->sup->api, req->sup);
	}
	return MHD_YES;
}

static struct http_client *
client_of(struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void
on_connection(
    void *cls, struct MHD_Connection *conn, void **client, enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct sup *sup = cls;

	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		*client = info ? http_client_new(&sup->api->clients, conn, info->connect_fd) : NULL;
	else if (*client)
		http_client_free(*client);
}

/* Called first for each request; its result is *con_cls from then on. */
static void *
on_uri(void *cls, const char *uri, struct MHD_Connection *conn)
{
	struct sup *sup = cls;
	struct http_client *client = client_of(conn);
	struct api_req *req = client ? calloc(1, sizeof *req) : NULL;

	if (!req)
		return NULL;
	req->uri = strdup(uri);
	if (!req->uri) {
		free(req);
		return NULL;
	}
	http_client_sends(client);
	req->client = client;
	req->sup = sup;
	req->leave.run = on_leave;
	req->next = sup->api->reqs;
	if (req->next)
		req->next->prev = req;
	sup->api->reqs = req;
	return req;
}

static void
on_completed(
    void *cls, struct MHD_Connection *conn, void **con_cls, enum MHD_RequestTerminationCode code)
{
	struct sup *sup = cls;
	struct api_req *req = *con_cls;

	if (!req)
		return;
	*con_cls = NULL;
	turn_forget_deferred(sup, &req->leave);
	(void)sd_event_source_disable_unref(req->hangup);
	if (req->stream) {
		sup->api->n_streams--;
		req->stream->done(req->stream);
	}
	if (req->held)
		req->held->done(req->held);
	if (req->socket) {
		sup->api->n_streams--;
		req->socket->done(req->socket);
	}
	if (req->response)
		MHD_destroy_response(req->response);
	if (req->prev)
		req->prev->next = req->next;
	else
		sup->api->reqs = req->next;
	if (req->next)
		req->next->prev = req->prev;
	drop_body(req);
	http_client_release(req->client, req->answer_len);
	http_client_sends(req->client); /* the next request, if the connection is kept */
	api_target_done(&req->target);
	free(req->uri);
	free(req);
}

/* The daemon in the work loop. */

static bool
is_full(const struct api *api)
{
	const union MHD_DaemonInfo *info =
	    MHD_get_daemon_info(api->mhd, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

	return info && info->num_connections >= CONNECTIONS_MAX;
}

/* libmicrohttpd reports when it must be called even if nothing is readable; 0 ms means at once. */
static void
run_daemon(struct sup *sup)
{
	struct api *api = sup->api;
	MHD_UNSIGNED_LONG_LONG ms;
	uint64_t own_ms;

	(void)MHD_run(api->mhd);
	/* It accepts connections again at the start of the run after the one that closed a
	 * connection. */
	if (api->full && !is_full(api))
		(void)MHD_run(api->mhd);
	api->full = is_full(api);
	own_ms = http_clients_tick(&api->clients, api->full);
	if (MHD_get_timeout(api->mhd, &ms) != MHD_YES || ms > own_ms)
		ms = own_ms;
	if (ms == UINT64_MAX) {
		(void)sd_event_source_set_enabled(api->timer, SD_EVENT_OFF);
	} else if (ms == 0) {
		(void)sd_event_source_set_enabled(api->again, SD_EVENT_ONESHOT);
	} else {
		(void)sd_event_source_set_time_relative(api->timer, ms * 1000);
		(void)sd_event_source_set_enabled(api->timer, SD_EVENT_ONESHOT);
	}
}

static int
on_io(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	run_daemon(userdata);
	return 0;
}

static int
on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	run_daemon(userdata);
	return 0;
}

static int
on_again(sd_event_source *source, void *userdata)
{
	run_daemon(userdata);
	return 0;
}

/* Sends answers that wait for a failing commit: reads as they are, changes as 507. */
static int
on_stuck_check(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct sup *sup = userdata;
	const char *why;
	bool waiting = false;

	for (struct api_req *req = sup->api->reqs; req; req = req->next) {
		if (!req->leave.queued)
			continue;
		waiting = true;
		if (!turn_is_stuck(sup, &why))
			continue;
		if (req->route && req->route->durable && req->status < 300)
			api_reply_error(
			    req, 507, "not stored yet: %s; it is tried again until it works", why);
		turn_forget_deferred(sup, &req->leave);
		resume(req);
	}
	if (waiting)
		watch_for_stuck_turns(sup->api, sup);
	return 0;
}

static void
on_log(void *cls, const char *fmt, va_list ap)
{
	char text[ERR_MSG_SIZE];

	(void)vsnprintf(text, sizeof text, fmt, ap);
	text[strcspn(text, "\n")] = '\0';
	log_debug("control socket: %s", text);
}

/* The router decodes paths and parameters after it has split them. */
static size_t
keep_escapes(void *cls, struct MHD_Connection *conn, char *s)
{
	return strlen(s);
}

static int
add_sources(struct sup *sup, struct api *api)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(api->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	int r;

	if (!info)
		return -EOPNOTSUPP;
	http_clients_init(&api->clients, info->epoll_fd);
	if ((r = sd_event_add_io(sup->event, &api->io, info->epoll_fd, EPOLLIN, on_io, sup)) < 0 ||
	    (r = sd_event_add_time(sup->event, &api->timer, CLOCK_MONOTONIC, 0, 0, on_timer, sup)) <
		0 ||
	    (r = sd_event_add_defer(sup->event, &api->again, on_again, sup)) < 0 ||
	    (r = sd_event_add_time(
		 sup->event, &api->stuck_check, CLOCK_MONOTONIC, 0, 0, on_stuck_check, sup)) < 0)
		return r;
	(void)sd_event_source_set_enabled(api->timer, SD_EVENT_OFF);
	(void)sd_event_source_set_enabled(api->again, SD_EVENT_OFF);
	(void)sd_event_source_set_enabled(api->stuck_check, SD_EVENT_OFF);
	return 0;
}

unsigned
api_req_path(const struct api_req *req)
{
	return (unsigned)(req->route - req->sup->api->routes);
}

const struct api_backend *
api_backend(struct sup *sup)
{
	return sup->api->backend;
}

uint64_t
api_index_now(struct sup *sup)
{
	const struct api_backend *backend = sup->api->backend;

	return backend->index ? backend->index(sup) : 1;
}

int
api_new(struct sup *sup, const struct api_route *routes, const struct api_backend *backend,
    struct err *e)
{
	struct api *api = calloc(1, sizeof *api);
	int r;

	if (!api)
		return err_set(e, -ENOMEM, "serve the control socket");
	sup->api = api;
	api->routes = routes;
	api->backend = backend;
	api->mhd = MHD_start_daemon(
	    MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE | MHD_USE_ERROR_LOG, 0,
	    NULL, NULL, on_request, sup, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
	    MHD_OPTION_LISTEN_SOCKET, (MHD_socket)FD_SPECIAL, MHD_OPTION_CONNECTION_LIMIT,
	    CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
	    MHD_OPTION_CONNECTION_TIMEOUT, IDLE_TIMEOUT_S, MHD_OPTION_URI_LOG_CALLBACK, on_uri, sup,
	    MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL, MHD_OPTION_NOTIFY_COMPLETED,
	    on_completed, sup, MHD_OPTION_NOTIFY_CONNECTION, on_connection, sup, MHD_OPTION_END);
	r = api->mhd ? add_sources(sup, api) : -EIO;
	if (r < 0) {
		api_free(sup);
		return err_set(e, r, "serve the control socket");
	}
	run_daemon(sup);
	return 0;
}

void
api_free(struct sup *sup)
{
	struct api *api = sup->api;

	if (!api)
		return;
	api->closing = true;
	/* libmicrohttpd aborts when it is stopped with a suspended connection. */
	for (struct api_req *req = api->reqs; req; req = req->next) {
		resume(req);
		if (req->socket)
			api_socket_close(req->socket);
	}
	(void)sd_event_source_disable_unref(api->io);
	(void)sd_event_source_disable_unref(api->timer);
	api->again = sd_event_source_disable_unref(api->again);
	(void)sd_event_source_disable_unref(api->stuck_check);
	if (api->mhd) {
		(void)MHD_run(api->mhd);
		/* Stopping would shut down the listening socket, which belongs to the launcher, so
		 * the daemon is quiesced first, which detaches it. */
		(void)MHD_quiesce_daemon(api->mhd);
		MHD_stop_daemon(api->mhd);
	}
	free(api);
	sup->api = NULL;
}
