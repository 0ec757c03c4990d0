// SPDX-License-Identifier: Apache-2.0
/* nomad_streams.c: passes streams of the servers on to clients of the API: events, and files and
 * logs of other nodes. Runs in: supervisor. */
#include <stdlib.h>
#include <string.h>

#include "common/list.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "supervisor/api/api_fs.h"
#include "supervisor/cluster/api/nomad_mapped.h"
#include "supervisor/cluster/node/nomad.h"
#include "supervisor/cluster/rpc/rpc_serve.h"
#include "supervisor/cluster/rpc/rpc_stream.h"

/* Bytes in the queue after which a stream is paused until its client reads. */
#define QUEUE_ENOUGH (256u * 1024)

/* One passed-on stream; it lives from the request to the end of the answer. */
struct passed {
	struct api_stream st;
	struct api_held held; /* the held request, until the answer begins */
	struct sup *sup;
	struct api_req *req;
	const char *type;
	uint64_t stream; /* 0: the stream has ended */
	bool replied;
	struct text queue;
	size_t at; /* bytes that have been read */
};

static void
free_passed(struct passed *p)
{
	if (p->stream)
		link_stream_close(p->sup, p->stream);
	text_done(&p->queue);
	free(p);
}

/* To the client. */

static ssize_t
on_next(struct api_stream *st, char *buf, size_t max)
{
	struct passed *p = container_of(st, struct passed, st);
	size_t n = p->queue.len - p->at < max ? p->queue.len - p->at : max;

	if (n == 0 && !p->stream)
		return -1;
	if (n > 0)
		memcpy(buf, p->queue.text + p->at, n);
	p->at += n;
	if (p->at == p->queue.len) {
		p->queue.len = p->at = 0;
		if (p->stream)
			link_stream_pause(p->sup, p->stream, false);
	}
	return (ssize_t)n;
}

static void
on_done(struct api_stream *st)
{
	free_passed(container_of(st, struct passed, st));
}

/* Begins the client's answer, or wakes it; may free p. */
static void
reply_stream(struct passed *p)
{
	if (p->replied) {
		api_stream_wake(p->sup, &p->st);
		return;
	}
	p->replied = true;
	api_hold(p->req, NULL);
	p->st = (struct api_stream){ .next = on_next, .done = on_done };
	api_reply_stream(p->req, p->type, &p->st);
}

/* After the first bytes an error can only end the stream. */
static void
fail_stream(struct passed *p, int status, const char *text)
{
	if (p->stream)
		link_stream_close(p->sup, p->stream);
	p->stream = 0;
	if (p->replied) {
		reply_stream(p);
		return;
	}
	api_hold(p->req, NULL);
	if (status)
		api_reply_error(p->req, status, "%s", text);
	else
		reply_remote(p->req, text);
	free_passed(p);
}

/* From the server. */

static void
fail_as(struct passed *p, const struct rpc_frame *f)
{
	char text[ERR_MSG_SIZE];

	(void)utf8_sanitize(text, sizeof text, f->message ? f->message : "", f->message_len);
	fail_stream(p, f->code >= 400 && f->code < 600 ? (int)f->code : 0, text);
}

static void
on_input(struct sup *sup, void *arg, uint64_t stream, const void *body, size_t len)
{
	struct passed *p = arg;
	struct rpc_frame f;
	struct err e = { 0 };

	if (rpc_frame_parse(body, len, &f, &e) < 0) {
		fail_stream(p, 502, e.msg);
		return;
	}
	if (f.failed) {
		fail_as(p, &f);
		return;
	}
	if (f.len > 0)
		text_append(&p->queue, f.payload, f.len);
	if (f.event)
		text_append(&p->queue, "\n", 1);
	if (p->queue.len - p->at > QUEUE_ENOUGH)
		link_stream_pause(sup, stream, true);
	reply_stream(p);
}

static void
on_end(struct sup *sup, void *arg, uint64_t stream, const char *error)
{
	struct passed *p = arg;

	p->stream = 0;
	if (error && !p->replied)
		fail_stream(p, 0, error);
	else
		reply_stream(p);
}

/* The client has disconnected. */
static void
on_gone(struct api_held *held)
{
	free_passed(container_of(held, struct passed, held));
}

static const struct link_stream_ops passed_ops = { .on_input = on_input, .on_end = on_end };

void
pass_stream(struct sup *sup, struct api_req *req, const struct mapped *m, const json_t *args,
    const struct text *body)
{
	bool plain = json_is_true(json_object_get(args, "PlainText"));
	struct passed *p = mem_new(struct passed);

	*p = (struct passed){ .held.done = on_gone,
		.sup = sup,
		.req = req,
		.type = plain && strcmp(m->type, TYPE_JSON) == 0 ? TYPE_TEXT : m->type };
	p->stream = link_stream_ask(sup, m->method, body->text, body->len, &passed_ops, p);
	if (p->stream) {
		api_hold(req, &p->held);
		return;
	}
	api_reply_error(req, 503, "too many streams of the servers are already open");
	free(p);
}
