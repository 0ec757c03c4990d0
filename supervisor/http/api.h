/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h: the control socket: HTTP with Nomad's paths and JSON. A request's
 * handler runs in a turn of the work loop and its answer leaves after that turn's commit. Runs in:
 * supervisor.
 */
#ifndef DROVER_SUPERVISOR_HTTP_API_H
#define DROVER_SUPERVISOR_HTTP_API_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "supervisor/core/sup.h"

struct api_req;
struct text;
struct type;

/* method and the pattern's parameters (":id") are checked before. Answers now or later, exactly
 * once. */
typedef void api_handler(struct sup *sup, struct api_req *req);

struct api_route {
	const char *method; /* "GET", or "PUT" which stands for POST too */
	const char
	    *pattern; /* "/v1/job/:id/allocations"; a parameter is one component, percent-decoded */
	api_handler *fn;
	bool changes; /* its turn is durable; refused with 507 while state.db cannot be written */
};

/* At which index what a request would be answered last changed. */
typedef uint64_t api_index(struct sup *sup, const struct api_req *req);

/* What the engine asks of the program behind it. Each may be NULL. */
struct api_backend {
	/* The index of the last change, for X-Nomad-Index. NULL: 1. */
	uint64_t (*index)(struct sup *sup);
	/* The index of what a route answers, for which clients may wait (api_wait.h). NULL, or it
	 * gives NULL: the route has none. */
	api_index *(*index_of)(struct sup *sup, const struct api_route *route);
	/* Calls api_serve(), or answers, now or later. NULL: whoever reaches the control socket may
	 * ask for all. */
	void (*admit)(struct sup *sup, struct api_req *req);
	/* The sentence, with 501, for a target whose path is in no table. NULL, or it gives NULL:
	 * it does not exist. */
	const char *(*elsewhere)(const char *target);
};

/* Takes over the listening socket FD_SPECIAL. tables: of routes, NULL at the end, the first that
 * fits counts; they and backend are borrowed for good. */
int api_new(struct sup *sup, const struct api_route *const *tables,
    const struct api_backend *backend, struct err *e);
void api_free(struct sup *sup);

/* Who asks, as the socket knows; uid and pid -1 and 0: nobody knows. */
struct ucred api_peer(const struct api_req *req);
/* NULL if the request has none of that name. Valid until the answer. */
const char *api_param(const struct api_req *req, unsigned n); /* n-th ":" of the pattern */
const char *api_query(const struct api_req *req, const char *name);
/* The n-th of that name. */
const char *api_query_nth(const struct api_req *req, const char *name, unsigned n);
const char *api_header(const struct api_req *req, const char *name);
struct sup *api_req_sup(const struct api_req *req);
/* Calls the route's handler: for the source, which was asked whether it may be. */
void api_serve(struct api_req *req);
const struct api_route *api_req_route(const struct api_req *req);
const struct api_backend *api_backend(struct sup *sup);
/* The backend's index of the last change. */
uint64_t api_index_now(struct sup *sup);
/* What the headers X-Nomad-… of the answer that is about to be given say, where it is not the
 * source's. */
struct api_meta {
	uint64_t index; /* 0: the source's */
	bool no_leader; /* none is known */
	int64_t last_contact_ns;
	char next_token[512]; /* of a list that goes on; "": it does not */
};
void api_set_meta(struct api_req *req, const struct api_meta *meta);
const struct api_meta *api_meta(const struct api_req *req);
/* As Go's strconv.ParseBool; *ret is untouched if it is not there. -EINVAL with *e. */
int api_query_bool(const struct api_req *req, const char *name, bool *ret, struct err *e);
/* The body as JSON. Borrowed. NULL with *e set: -ENODATA there is none, -EINVAL it is not JSON. */
json_t *api_body(struct api_req *req, struct err *e);

/* status 200 and JSON; takes over the reference. */
void api_reply_json(struct api_req *req, json_t *body);
/* status 200 and this object of the model; or JSON text, which is taken over (a failed one becomes
 * 500). */
void api_reply_model(struct api_req *req, const struct type *type, const void *obj);
void api_reply_take(struct api_req *req, struct text *json);
/* enum model_flags for answers to this request (?pretty). */
unsigned api_model_flags(const struct api_req *req);
/* A plain-text error: one sentence. */
void api_reply_error(struct api_req *req, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void api_reply_text(
    struct api_req *req, int status, const char *type, const char *text, size_t len);
/*
 * Streams: next() is called when the socket has room; it fills buf and returns a size, 0 for
 * "nothing yet, I call api_stream_wake()", -1 for the end. done() exactly once.
 */
struct api_stream {
	ssize_t (*next)(struct api_stream *st, char *buf, size_t max);
	void (*done)(struct api_stream *st);
	bool beats; /* it is never silent for long: who takes nothing meanwhile is cut off */
	struct api_req *req;
};
void api_reply_stream(struct api_req *req, const char *type, struct api_stream *st);
void api_stream_wake(struct sup *sup, struct api_stream *st);
/*
 * A request that is answered much later. done() when its connection has gone before that, or the
 * agent ends: there is nothing to answer any more. With NULL it is held no more.
 */
struct api_held {
	void (*done)(struct api_held *held);
	struct api_req *req;
};
void api_hold(struct api_req *req, struct api_held *held);
/*
 * The connection itself, for another protocol: the client gets 101, then begin() the socket (never
 * to be waited on; it stays the connection's) and what had come behind the request. It must not
 * close it yet. done() exactly once, when there is no connection any more: after
 * api_socket_close(), when the client left before begin(), or at the agent's end.
 */
struct api_socket {
	void (*begin)(struct api_socket *so, int fd, const void *early, size_t len);
	void (*done)(struct api_socket *so);
	struct api_req *req;
};
/* headers: name, value, …, NULL. */
void api_reply_socket(
    struct api_req *req, const char *protocol, const char *const *headers, struct api_socket *so);
void api_socket_close(struct api_socket *so);

#endif
