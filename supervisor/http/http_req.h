/* SPDX-License-Identifier: Apache-2.0 */
/* http_req.h: the control socket's state and its requests, for the files of this directory;
 * handlers use only api.h. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_HTTP_HTTP_REQ_H
#define DROVER_SUPERVISOR_HTTP_HTTP_REQ_H

#include <microhttpd.h>
#include <systemd/sd-event.h>

#include "common/list.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/http/api.h"
#include "supervisor/http/api_backend.h"
#include "supervisor/http/api_filter.h"
#include "supervisor/http/api_router.h"
#include "supervisor/http/http_clients.h"

#define HTTP_TYPE_JSON "application/json"
/* Error for a request or an answer that would exceed the memory limit of http_clients.c. */
#define HTTP_NO_ROOM                                                                               \
	"the requests and answers of all clients together take too much memory: try again in a "   \
	"moment"

struct waiter;
struct http_audit;
struct http_tcp;
struct tcp_tokens;

/* Resources that clients share. The clients of the control socket have one struct, the clients of
 * all tasks' sockets another, the listener a third, and those of the API over TCP a fourth, so that
 * none of them can use up those of operators. */
struct api_share {
	struct http_clients clients;
	struct filter_budget filters; /* of the filters of all requests */
	unsigned n_waiters;           /* blocking queries */
	unsigned n_streams;           /* streams and upgraded connections */
};

/* The sockets of tasks (task_socket.c). */
struct task_sockets {
	LIST_HEAD(, task_socket) list;
	unsigned n_connections;
	int epoll_fd;
	sd_event_source *io;
	struct sup_timer again;
};

/* The control socket. */
struct api {
	struct api_route *routes;
	const struct api_backend *backend;
	struct MHD_Daemon *mhd;
	sd_event_source *io, *timer, *again, *stuck_check;
	LIST_HEAD(, api_req) reqs;
	struct api_share operators, of_tasks, of_listener, of_tcp;
	struct task_sockets tasks;
	LIST_HEAD(, waiter) waiters;  /* api_wait.c: blocking queries */
	unsigned n_links;             /* connections of the listener */
	unsigned n_tcp;               /* of clients of the API over TCP, also of those … */
	LIST_HEAD(, http_tcp) coming; /* … that libmicrohttpd has not reported yet */
	struct tcp_tokens *tokens;    /* tcp_tokens.c; NULL: none was checked */
	bool full;                    /* accepts no connections for now */
	bool closing;
};

/* One request. Its connection is suspended from the call of its handler until its answer may be
 * sent: after the commit of the turn that made the answer (deferred `leave`). Freed by
 * on_completed(), which is never called while it is suspended; if it is owed, without a connection,
 * after its handler has answered. */
struct api_req {
	LIST_ENTRY(api_req) link; /* in api.reqs */
	struct sup *sup;
	struct MHD_Connection *conn;
	struct http_client *client; /* its connection */
	char *uri;                  /* until the route is found */
	const char *method;
	struct api_target target;
	const struct api_route *route;
	char *body;
	size_t body_len;
	uint64_t body_seen;
	size_t answer_len; /* bytes counted as held */
	json_t *json;
	struct api_meta meta; /* of the answer */
	int status;
	struct MHD_Response *response; /* the answer, once it is made */
	struct deferred leave;
	struct api_stream *stream;
	struct api_held *held;
	struct api_socket *socket;
	struct MHD_UpgradeResponseHandle *upgraded; /* while its owner has the socket */
	struct http_audit *audit; /* its entries in the audit log; NULL: none yet */
	/* While the request is held, its stream has nothing to send, or its sender is found out. */
	sd_event_source *hangup;
	bool no_room; /* its body was dropped, because too much memory is held */
	bool owed; /* it was answered while no commit was possible, and its handler still answers */
	bool begun, routed, suspended, queued, gone_away;
	bool has_target; /* target is parsed; then: */
	int no_route;    /* of api_route_find() */
	bool refused; /* of a task or over TCP, without a valid token: its connection is closed */
	/* Over TCP: it is known who sent its head; that had a valid token; it may go on. */
	bool known, named, passed;
};

static inline struct api_share *
http_req_share(const struct api_req *req)
{
	return container_of(req->client->all, struct api_share, clients);
}

/* Returns whether the answer says that something was changed, which must be on disk first. */
static inline bool
http_req_is_change(const struct api_req *req)
{
	return req->route && req->route->durable && req->status < 300;
}

/* http.c: lets libmicrohttpd handle what is ready. */
void http_run(struct sup *sup);

/* http_reply.c */
/* Suspends the request's connection: libmicrohttpd does not continue it until it is resumed. */
void http_req_suspend(struct api_req *req);
void http_req_resume(struct api_req *req);
/* Resumes a suspended request, with gone_away set, when its client disconnects: libmicrohttpd does
 * not watch its connection. */
void http_req_watch_hangup(struct api_req *req);
/* The stream or upgraded connection of the request has ended. */
void http_req_drop_stream(struct api_req *req);
/* Resumes a suspended request, which has its answer: after the commit of this turn, or at once if
 * commits fail and it changes nothing. */
void http_req_leave_soon(struct api_req *req);
/* Checks in a second whether answers are waiting for a failing commit. */
void http_watch_stuck_turns(struct sup *sup);

#endif
