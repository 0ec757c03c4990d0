/* SPDX-License-Identifier: Apache-2.0 */
/* api.h: the control socket: HTTP with Nomad's paths and JSON. A request's handler runs in a turn
 * of the work loop, and its answer is sent after that turn's commit. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_HTTP_API_H
#define DROVER_SUPERVISOR_HTTP_API_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "supervisor/core/sup.h"

struct api_backend;
struct api_req;
struct problems;
struct text;
struct type;

/* A handler. The method and the pattern's parameters (":id") were already checked. It answers
 * exactly once, now or later. */
typedef void api_handler(struct sup *sup, struct api_req *req);

/* A line of api_paths.def with the handler that this agent has for it. */
struct api_route {
	const char *method, *pattern;
	api_handler *fn;    /* NULL: this agent has no such path */
	bool durable, last; /* last: accepted also while state.db cannot be written */
};
/* Takes over the listening socket FD_SPECIAL. routes: an entry for each line of api_paths.def, then
 * an entry without a method; the array is taken over, also on failure. backend must stay valid
 * until api_free().
 */
int api_new(
    struct sup *sup, struct api_route *routes, const struct api_backend *backend, struct err *e);
void api_free(struct sup *sup);

/* Return a value of the request, valid until the answer; NULL if the request does not have it. */
const char *api_param(const struct api_req *req, unsigned n); /* n-th parameter of the pattern */
const char *api_query(const struct api_req *req, const char *name);
/* The n-th query parameter of that name. */
const char *api_query_nth(const struct api_req *req, const char *name, unsigned n);
const char *api_header(const struct api_req *req, const char *name);
/* The ACL token: of X-Nomad-Token, or else of "Authorization: Bearer". */
const char *api_token(const struct api_req *req);
/* Returns whether the request's token has a permission (enum acl_need) in a namespace; "*": any. */
#define API_NEED_OF_PATH (-1) /* that of its path in api_paths.def */
bool api_permits(const struct api_req *req, int need, const char *namespace);
struct sup *api_req_sup(const struct api_req *req);
/* Calls the route's handler: for the admit() callback. */
void api_serve(struct api_req *req);
const struct api_route *api_req_route(const struct api_req *req);
/* Returns the number of the route's line in api_paths.def. */
unsigned api_req_path(const struct api_req *req);
const struct api_backend *api_backend(struct sup *sup);
/* Returns the backend's index of the last change. */
uint64_t api_index_now(struct sup *sup);
/* Values of the answer's X-Nomad-… headers, if they differ from the source's. */
struct api_meta {
	uint64_t index; /* 0: the source's */
	bool no_leader; /* no leader is known */
	int64_t last_contact_ns;
	char next_token[512]; /* token of the next page; "": this is the last page */
};
void api_set_meta(struct api_req *req, const struct api_meta *meta);
const struct api_meta *api_meta(const struct api_req *req);
/* Parses a query parameter as Go's strconv.ParseBool; *ret is untouched if it is missing. -EINVAL
 * with *e. */
int api_query_bool(const struct api_req *req, const char *name, bool *ret, struct err *e);
/* Parses a query parameter as a number. Returns 1 with *ret, 0 if it is missing, -EINVAL with *e.
 */
int api_query_number(const struct api_req *req, const char *name, uint64_t *ret, struct err *e);
/* Returns the body as JSON, which the request owns. NULL with *e: -ENODATA if there is no body,
 * -EINVAL if it is not JSON. */
json_t *api_body(struct api_req *req, struct err *e);
/* As api_body(), but -EINVAL if the body is not an object. */
json_t *api_body_object(struct api_req *req, struct err *e);

/* Answer with JSON, with 200 or another status; take over the reference. NULL (jansson refuses text
 * that is not UTF-8) becomes a 500. */
void api_reply_json(struct api_req *req, json_t *body);
void api_reply_json_status(struct api_req *req, int status, json_t *body);
/* Answer 200 with an object of the model, or with JSON text, which is taken over. */
void api_reply_model(struct api_req *req, const struct type *type, const void *obj);
void api_reply_take(struct api_req *req, struct text *json);
/* Returns the enum model_flags for answers to this request (?pretty). */
unsigned api_model_flags(const struct api_req *req);
/* Answers with an error as plain text: one sentence. */
void api_reply_error(struct api_req *req, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Answers with all problems, one per line. */
void api_reply_problems(struct api_req *req, int status, const struct problems *p);
void api_reply_text(
    struct api_req *req, int status, const char *type, const char *text, size_t len);
/* A stream. next() is called when the socket has room; it fills buf and returns a size, 0 if there
 * is nothing yet (it calls api_stream_wake() later), or -1 at the end. done() is called exactly
 * once. */
struct api_stream {
	ssize_t (*next)(struct api_stream *st, char *buf, size_t max);
	void (*done)(struct api_stream *st);
	bool beats; /* the stream has heartbeats: a client that does not read them is cut off */
	struct api_req *req;
};
void api_reply_stream(struct api_req *req, const char *type, struct api_stream *st);
void api_stream_wake(struct sup *sup, struct api_stream *st);
/* A request that is answered much later. done() is called if its connection closes or the agent
 * ends before that; then it must not be answered any more. NULL ends the hold. */
struct api_held {
	void (*done)(struct api_held *held);
	struct api_req *req;
};
void api_hold(struct api_req *req, struct api_held *held);
/* A connection that switches to another protocol: the client gets 101, then begin() gets the socket
 * (non-blocking; the connection still owns it) and the bytes that followed the request. It must not
 * close the socket. done() is called exactly once, when the connection has ended: after
 * api_socket_close(), if the client left before begin(), or at the agent's end. */
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
