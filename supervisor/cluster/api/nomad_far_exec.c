// SPDX-License-Identifier: Apache-2.0
/* nomad_far_exec.c: runs a command inside a task of another node, through the servers, for a
 * websocket client of the API. Runs in: supervisor. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/utf8.h"
#include "supervisor/api/api_exec.h"
#include "supervisor/cluster/api/nomad_mapped.h"
#include "supervisor/cluster/node/nomad.h"
#include "supervisor/cluster/rpc/rpc_serve.h"
#include "supervisor/cluster/rpc/rpc_stream.h"

/* Bytes in the queue after which a stream is paused until its client reads. */
#define QUEUE_ENOUGH (256u * 1024)

/* exec_stream.far_arg. */
struct far {
	struct exec_stream *es;
	uint64_t stream;   /* 0: the stream has ended */
	struct text queue; /* frames, each preceded by its length as a size_t */
	size_t at;         /* bytes of the queue that have been read */
};

static void
end_as(struct far *f, int status, const char *why)
{
	f->stream = 0;
	f->es->status = status;
	(void)err_say(&f->es->error, -EREMOTEIO, "%s", why);
}

/* From the server. */

static void
fail_as(struct sup *sup, struct far *f, const struct rpc_frame *frame)
{
	char text[ERR_MSG_SIZE];

	(void)utf8_sanitize(
	    text, sizeof text, frame->message ? frame->message : "", frame->message_len);
	link_stream_close(sup, f->stream);
	end_as(f, frame->code > 0 ? (int)frame->code : 500, text);
}

static void
on_input(struct sup *sup, void *arg, uint64_t stream, const void *body, size_t len)
{
	struct rpc_frame frame;
	struct far *f = arg;
	struct err e = { 0 };

	if (rpc_frame_parse(body, len, &frame, &e) < 0) {
		link_stream_close(sup, stream);
		end_as(f, 500, e.msg);
	} else if (frame.failed) {
		fail_as(sup, f, &frame);
	} else if (frame.len > 0) {
		text_append(&f->queue, (const char *)&frame.len, sizeof frame.len);
		text_append(&f->queue, frame.payload, frame.len);
		if (f->queue.len - f->at > QUEUE_ENOUGH)
			link_stream_pause(sup, stream, true);
	}
	f->es->wake(f->es);
}

static void
on_room(struct sup *sup, void *arg, uint64_t stream)
{
	struct far *f = arg;

	f->es->wake(f->es);
}

static void
on_end(struct sup *sup, void *arg, uint64_t stream, const char *error)
{
	struct far *f = arg;

	f->stream = 0;
	if (error)
		end_as(f, 500, error);
	f->es->wake(f->es);
}

static const struct link_stream_ops ops = {
	.on_input = on_input,
	.on_room = on_room,
	.on_end = on_end,
};

/* The operations of exec_stream.h. */

static int
far_next(struct exec_stream *es, struct text *frame)
{
	struct far *f = es->far_arg;
	size_t len;

	if (f->at == f->queue.len)
		return f->stream ? 0 : -1;
	memcpy(&len, f->queue.text + f->at, sizeof len);
	text_append(frame, f->queue.text + f->at + sizeof len, len);
	f->at += sizeof len + len;
	if (f->at == f->queue.len) {
		f->queue.len = f->at = 0;
		if (f->stream)
			link_stream_pause(es->sup, f->stream, false);
	}
	return 1;
}

static void
put_input(struct exec_stream *es, const struct rpc_exec_input *in)
{
	struct far *f = es->far_arg;
	struct text body = { 0 };

	if (!f->stream)
		return;
	rpc_exec_input_put(&body, in);
	link_stream_write(es->sup, f->stream, body.text, body.len);
	text_done(&body);
}

static void
far_input(struct exec_stream *es, const void *data, size_t len)
{
	put_input(es, &(struct rpc_exec_input){ .has_stdin = true, .data = data, .len = len });
}

static void
far_input_end(struct exec_stream *es)
{
	put_input(es, &(struct rpc_exec_input){ .has_stdin = true, .close = true });
}

static void
far_resize(struct exec_stream *es, long rows, long columns)
{
	put_input(
	    es, &(struct rpc_exec_input){ .has_size = true, .height = rows, .width = columns });
}

static void
far_beat(struct exec_stream *es)
{
	put_input(es, &(struct rpc_exec_input){ 0 });
}

static bool
far_has_room(const struct exec_stream *es)
{
	const struct far *f = es->far_arg;

	return !f->stream || link_stream_room(es->sup, f->stream) > 0;
}

static void
far_done(struct exec_stream *es)
{
	struct far *f = es->far_arg;

	if (f->stream)
		link_stream_close(es->sup, f->stream);
	text_done(&f->queue);
	free(f);
}

static const struct exec_far_ops far_ops = { far_next, far_input, far_input_end, far_resize,
	far_beat, far_has_room, far_done };

/* Start. */

struct beginning {
	const struct mapped *m;
	const struct text *body;
};

static void
begin_far(struct exec_stream *es, void *arg)
{
	const struct beginning *b = arg;
	struct far *f = mem_new(struct far);

	f->es = es;
	f->stream = link_stream_ask(es->sup, b->m->method, b->body->text, b->body->len, &ops, f);
	if (!f->stream) {
		free(f);
		return;
	}
	es->far = &far_ops;
	es->far_arg = f;
}

void
pass_exec(struct sup *sup, struct api_req *req, const struct mapped *m, const json_t *args,
    const struct text *body)
{
	struct beginning b = { m, body };

	api_exec_far(sup, req, begin_far, &b);
}
