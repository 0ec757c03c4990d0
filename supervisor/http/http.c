// SPDX-License-Identifier: Apache-2.0
/* http.c: the control socket: reads requests with libmicrohttpd inside the work loop and calls
 * their handlers. Runs in: supervisor. Asked by: operators. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/http/api_origin.h"
#include "supervisor/http/api_wait.h"
#include "supervisor/http/http_audit.h"
#include "supervisor/http/http_origin.h"
#include "supervisor/http/http_req.h"
#include "supervisor/http/listener_links.h"
#include "supervisor/http/task_socket.h"
#include "supervisor/http/tcp_gate.h"

#define CONNECTIONS_MAX   1200         /* includes the blocking queries of api_wait.c */
#define CONNECTION_MEMORY (32 * 1024u) /* bytes of one connection: the limit of its header, too */
#define IDLE_TIMEOUT_S    30u
/* Bytes of the requests and answers of all operators or of the listener, and of all tasks. */
#define HELD_MAX       (64ul * 1024 * 1024)
#define TASKS_HELD_MAX (16ul * 1024 * 1024)
#define TCP_HELD_MAX   (32ul * 1024 * 1024)
#define BODY_MAX       (1024 * 1024)
/* A body that is too large is read up to this size, so that the client gets the answer 413. */
#define BODY_DRAIN_MAX (64ull * 1024 * 1024)
/* How long no commit must be possible before a change that waits for one, and perhaps for a plugin,
 * is answered. */
#define PENDING_MS 10000

/* Requests. */

static void
log_request(struct api_req *req)
{
	char request[256], origin[API_ORIGIN_TEXT_SIZE], process[32] = "";
	pid_t pid = api_origin(req).pid;

	if (pid > 0)
		(void)snprintf(process, sizeof process, ", pid %d", pid);
	api_origin_text(req, origin);
	(void)snprintf(request, sizeof request, "%s %s", req->method,
	    req->route ? req->route->pattern : "(no route)");
	journal_print(req->route && req->route->durable ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
	    JOURNAL_REQUEST, &(struct journal_about){ .request = request }, "%s%s%s by %s%s: %d",
	    request, req->target.n_params ? " of " : "",
	    req->target.n_params ? req->target.params[0] : "", origin, process, req->status);
}

static enum MHD_Result
queue_answer(struct api_req *req)
{
	http_audit_complete(req);
	req->queued = true;
	log_request(req);
	if (req->stream && !req->stream->beats) /* a client that follows may be silent for hours */
		(void)MHD_set_connection_option(req->conn, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
	if (!req->stream && !req->socket)
		http_client_expect_read(req->client);
	return MHD_queue_response(req->conn, (unsigned)req->status, req->response);
}

/* Answers with 501 and a sentence for a path that another agent would answer, else with 404. */
static void
reply_no_path(struct api_req *req)
{
	const struct api_backend *backend = req->sup->api->backend;
	const char *why = backend->elsewhere ? backend->elsewhere(req->uri) : NULL;

	api_reply_error(req, why ? 501 : 404, "%s", why ? why : "resource not found");
}

/* Finds the route. Returns false if its target is invalid; then it is answered. */
static bool
find_route(struct api_req *req)
{
	struct err e = { 0 };
	int r;

	if (req->has_target)
		return true;
	r = api_target_parse(req->uri, &req->target, &e);
	if (r < 0) {
		api_reply_error(req, r == -E2BIG ? 414 : 400, "%s", e.msg);
		return false;
	}
	req->has_target = true;
	req->no_route =
	    api_route_find(req->sup->api->routes, req->method, &req->target, &req->route);
	return true;
}

static void
route_request(struct api_req *req)
{
	const struct api_backend *backend = req->sup->api->backend;

	if (req->body_seen > BODY_MAX) {
		api_reply_error(req, 413, "the body is longer than %d bytes", BODY_MAX);
		return;
	}
	if (req->no_room) {
		api_reply_error(req, 503, "%s", HTTP_NO_ROOM);
		return;
	}
	if (!find_route(req) || (!req->no_route && !http_audit_receive(req)))
		return;
	if (!tcp_gate_permits(req))
		tcp_gate_refuse(req);
	else if (req->no_route == -ENOENT)
		reply_no_path(req);
	else if (req->no_route)
		api_reply_error(req, 405, "Invalid method");
	else if (backend->admit)
		backend->admit(req->sup, req);
	else
		api_serve(req);
}

/* Returns whether it is a change that its handler has not answered yet. */
static bool
is_pending(const struct api_req *req)
{
	return req->route && req->route->durable && req->routed && req->suspended &&
	       !req->response && !req->held;
}

/* The listener may request little, and needs no token for that. Tasks and clients over TCP have
 * shown what they have with the heads of their requests. */
static void
check_request(struct api_req *req)
{
	if (req->client->is_link)
		listener_links_serve(req);
	else
		route_request(req);
}

static void
drop_body(struct api_req *req)
{
	json_decref(req->json);
	req->json = NULL;
	free_p(&req->body);
	http_client_release(req->client, req->body_len);
	req->body_len = 0;
}

void
api_serve(struct api_req *req)
{
	const char *why;

	if (req->route->durable) {
		if (!req->route->last && turn_is_stuck(req->sup, &why)) {
			api_reply_error(req, 507, "nothing can be changed now: %s", why);
			return;
		}
		turn_durable(req->sup);
	}
	if (!api_wait_serve(req))
		req->route->fn(req->sup, req);
	drop_body(req); /* the answer may come much later */
}

/* Adds a piece of the body. The client chooses its size, so it is refused if there is no memory. */
static void
gather_body(struct api_req *req, const char *data, size_t size)
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

/* Sends the answer of a request that was suspended. Without one, the agent is stopping. */
static enum MHD_Result
send_answer(struct api_req *req)
{
	if (req->gone_away)
		return MHD_NO;
	if (!req->response)
		api_reply_error(req, 503, "the agent is stopping");
	return queue_answer(req);
}

/* The head's token of a task is valid. */
static void
on_task_known(struct api_req *req)
{
	req->known = true;
	http_req_resume(req);
}

/* It is known who sent the head of a request over TCP. */
static void
on_sender_known(struct api_req *req)
{
	req->known = true;
	if (!req->response && !tcp_gate_permits(req))
		route_request(req); /* it is refused there */
	if (!req->response)
		http_req_resume(req);
}

/* If the request has an answer, libmicrohttpd reads no body and closes the connection. */
static enum MHD_Result
end_head(struct api_req *req)
{
	if (req->response || req->gone_away || !req->known)
		return send_answer(req);
	req->passed = true;
	http_client_expect_request(req->client);
	return MHD_YES;
}

/* Returns whether the sender of the request must be known before its body is read. */
static bool
is_checked_first(const struct api_req *req)
{
	return req->client->tcp || req->client->task;
}

static enum MHD_Result
check_head(struct api_req *req)
{
	if (req->client->task)
		task_gate_check(req, req->client->task, on_task_known);
	else if (find_route(req))
		tcp_gate_check(req, on_sender_known);
	if (req->known || req->response)
		return end_head(req);
	http_client_expect_nothing(req->client);
	http_req_suspend(req);
	if (req->client->tcp) /* a look-up for a task needs the request until it ends */
		http_req_watch_hangup(req);
	return MHD_YES;
}

/* libmicrohttpd calls this for a request's head, for each piece of its body, at the end of the
 * body, and again when its connection was resumed. */
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
		return is_checked_first(req) ? check_head(req) : MHD_YES;
	}
	if (is_checked_first(req) && !req->passed)
		return end_head(req);
	if (*size > 0) {
		gather_body(req, data, *size);
		*size = 0;
		return req->body_seen > BODY_DRAIN_MAX ? MHD_NO : MHD_YES;
	}
	if (req->routed)
		return send_answer(req);
	req->routed = true;
	http_client_expect_nothing(req->client);
	check_request(req);
	/* Errors and reads change nothing, so they are answered even while commits fail. */
	if (req->response && turn_is_stuck(req->sup, NULL) && !(req->route && req->route->last))
		return queue_answer(req);
	http_req_suspend(req);
	if (req->response)
		http_req_leave_soon(req);
	else if (is_pending(req))
		http_watch_stuck_turns(req->sup);
	return MHD_YES;
}

static void
free_req(struct api_req *req)
{
	turn_forget_deferred(req->sup, &req->leave);
	LIST_REMOVE(req, link);
	api_target_done(&req->target);
	free(req->uri);
	free(req);
}

static void
on_leave(struct sup *sup, struct deferred *d)
{
	struct api_req *req = container_of(d, struct api_req, leave);

	if (req->conn)
		http_req_resume(req);
	else
		free_req(req);
}

static struct http_client *
client_of(struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static struct http_client *
begin_client(struct api *api, struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *fd =
	    MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	int connection = fd ? fd->connect_fd : -1;
	const union MHD_ConnectionInfo *from =
	    MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	struct api_share *share = &api->operators;
	struct http_origin origin = { 0 };
	struct http_client *client;

	if (connection < 0 || !from)
		return NULL;
	if (http_origin_of(from->client_addr, &origin) && origin.tcp &&
	    !listener_links_take(api, origin.tcp))
		return NULL;
	if (http_origin_of(from->client_addr, &origin))
		share = origin.task  ? &api->of_tasks
			: origin.tcp ? &api->of_tcp
				     : &api->of_listener;
	client = http_client_new(&share->clients, conn, connection);
	client->task = origin.task;
	client->tcp = origin.tcp;
	client->is_link = share == &api->of_listener;
	if (client->task)
		client->from = task_socket_joined(client->task);
	api->n_links += client->is_link;
	return client;
}

static void
end_client(struct api *api, struct http_client *client)
{
	struct task_socket *task = client->task;

	api->n_links -= client->is_link;
	listener_links_drop(api, client->tcp);
	http_client_free(client);
	if (task)
		task_socket_left(task);
}

static void
on_connection(
    void *cls, struct MHD_Connection *conn, void **client, enum MHD_ConnectionNotificationCode what)
{
	struct sup *sup = cls;

	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		*client = begin_client(sup->api, conn);
	else if (*client)
		end_client(sup->api, *client);
}

/* Called first for each request; its result is *con_cls from then on. */
static void *
on_uri(void *cls, const char *uri, struct MHD_Connection *conn)
{
	struct sup *sup = cls;
	struct http_client *client = client_of(conn);
	struct api_req *req;

	if (!client)
		return NULL;
	http_client_expect_request(client);
	req = mem_new(struct api_req);
	req->uri = mem_strdup(uri);
	req->client = client;
	req->sup = sup;
	req->leave.run = on_leave;
	LIST_INSERT_HEAD(&sup->api->reqs, req, link);
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
	http_audit_end(req);
	tcp_gate_forget(req);
	turn_forget_deferred(sup, &req->leave);
	(void)sd_event_source_disable_unref(req->hangup);
	if (req->stream) {
		http_req_drop_stream(req);
		req->stream->done(req->stream);
	}
	if (req->held)
		req->held->done(req->held);
	if (req->socket) {
		http_req_drop_stream(req);
		req->socket->done(req->socket);
	}
	if (req->response)
		MHD_destroy_response(steal_ptr(&req->response));
	drop_body(req);
	http_client_release(req->client, req->answer_len);
	http_client_expect_request(req->client); /* the next request, if the connection is kept */
	req->conn = NULL;
	req->client = NULL;
	if (!req->owed)
		free_req(req);
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
void
http_run(struct sup *sup)
{
	struct api *api = sup->api;
	MHD_UNSIGNED_LONG_LONG ms;
	uint64_t own_ms, tasks_ms, links_ms, tcp_ms;

	(void)MHD_run(api->mhd);
	/* It accepts connections again at the start of the run after the one that closed a
	 * connection. */
	if (api->full && !is_full(api))
		(void)MHD_run(api->mhd);
	api->full = is_full(api);
	own_ms = http_clients_tick(&api->operators.clients, api->full);
	tasks_ms =
	    http_clients_tick(&api->of_tasks.clients, api->full || task_sockets_are_full(api));
	links_ms = http_clients_tick(&api->of_listener.clients, false);
	tcp_ms = http_clients_tick(&api->of_tcp.clients, api->full);
	if (tasks_ms < own_ms)
		own_ms = tasks_ms;
	if (tcp_ms < own_ms)
		own_ms = tcp_ms;
	if (links_ms < own_ms)
		own_ms = links_ms;
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
	http_run(userdata);
	return 0;
}

static int
on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	http_run(userdata);
	return 0;
}

static int
on_again(sd_event_source *source, void *userdata)
{
	http_run(userdata);
	return 0;
}

/* Answers a change that has not got as far as its answer, because it waits for a commit before it
 * goes on. It does so when commits work again. */
static void
answer_early(struct api_req *req, const char *why)
{
	api_reply_error(req, 507, "not done yet: %s; it goes on when that works", why);
	req->owed = true;
	turn_forget_deferred(req->sup, &req->leave);
	http_req_resume(req);
}

/* A commit has failed: answers that change nothing do not wait until one succeeds. */
static void
on_failed_commit(struct sup *sup)
{
	struct api_req *req;

	if (!sup->api)
		return;
	LIST_FOREACH (req, &sup->api->reqs, link) {
		if (!req->leave.queue || http_req_is_change(req))
			continue;
		turn_forget_deferred(sup, &req->leave);
		http_req_resume(req);
	}
}

/* Sends answers that wait for a failing commit: reads and errors as they are, changes as 507. */
static int
on_stuck_check(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct sup *sup = userdata;
	struct api_req *req;
	const char *why;
	bool waiting = false;

	LIST_FOREACH (req, &sup->api->reqs, link) {
		if (is_pending(req)) {
			waiting = true;
			if (turn_is_stuck(sup, &why) && turn_stuck_ms(sup) >= PENDING_MS)
				answer_early(req, why);
		}
		if (!req->leave.queue)
			continue;
		waiting = true;
		if (!turn_is_stuck(sup, &why))
			continue;
		if (http_req_is_change(req) && req->status < 400)
			api_reply_error(
			    req, 507, "not stored yet: %s; it is tried again until it works", why);
		turn_forget_deferred(sup, &req->leave);
		http_req_resume(req);
	}
	if (waiting)
		http_watch_stuck_turns(sup);
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
	http_clients_init(&api->operators.clients, info->epoll_fd, HELD_MAX);
	http_clients_init(&api->of_tasks.clients, info->epoll_fd, TASKS_HELD_MAX);
	http_clients_init(&api->of_listener.clients, info->epoll_fd, HELD_MAX);
	http_clients_init(&api->of_tcp.clients, info->epoll_fd, TCP_HELD_MAX);
	if ((r = task_sockets_init(sup)) < 0 ||
	    (r = sd_event_add_io(sup->event, &api->io, info->epoll_fd, EPOLLIN, on_io, sup)) < 0 ||
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

int
api_new(struct sup *sup, struct api_route *routes, const struct api_backend *backend, struct err *e)
{
	struct api *api = mem_new(struct api);
	int r;

	sup->api = api;
	api->routes = routes;
	api->backend = backend;
	api->tasks.epoll_fd = -1;
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
	listener_links_init(sup);
	turn_watch_failure(sup, on_failed_commit);
	http_run(sup);
	return 0;
}

void
api_free(struct sup *sup)
{
	struct api *api = sup->api;
	struct api_req *req;

	if (!api)
		return;
	api->closing = true;
	task_sockets_free(sup);
	/* libmicrohttpd aborts when it is stopped with a suspended connection. */
	LIST_FOREACH (req, &api->reqs, link) {
		http_req_resume(req);
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
	while ((req = LIST_FIRST(&api->reqs)))
		free_req(req); /* owed */
	listener_links_free(api);
	tcp_tokens_free(api);
	free(api->routes);
	free(api);
	sup->api = NULL;
}
