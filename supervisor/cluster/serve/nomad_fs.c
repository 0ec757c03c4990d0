// SPDX-License-Identifier: Apache-2.0
/* nomad_fs.c: requests of servers for files and logs of allocs, and for this agent's log. Runs in:
 * supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/list.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_fs.h"
#include "supervisor/api/fs_stream.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/cluster/serve/nomad_requests.h"
#include "supervisor/cluster/rpc/rpc_serve.h"
#include "supervisor/cluster/rpc/rpc_stream.h"

/* List and Stat. */

static void
on_list(struct sup *sup, void *arg, int r, int fd, const struct rpc_fs_list_rep *files,
    const struct err *e)
{
	cleanup_free uint64_t *stream = arg;

	if (r < 0)
		link_answer(sup, *stream, e->msg, NULL, 0);
	else
		nomad_answer(sup, *stream, &rpc_fs_list_rep_type, files);
}

static void
on_stat(struct sup *sup, void *arg, int r, int fd, const struct rpc_fs_list_rep *files,
    const struct err *e)
{
	cleanup_free uint64_t *stream = arg;
	struct rpc_fs_stat_rep rep = { 0 };

	if (r < 0) {
		link_answer(sup, *stream, e->msg, NULL, 0);
		return;
	}
	rep.info = &files->files.v[0];
	nomad_answer(sup, *stream, &rpc_fs_stat_rep_type, &rep);
}

/* Decodes the request. Returns 0, or negative with *e; req is initialised in both cases. */
static int
decode_request(const void *body, size_t len, struct rpc_fs_req *req, struct id *ret, struct err *e)
{
	int r;

	rpc_fs_req_init(req);
	r = model_from_msgpack(&rpc_fs_req_type, body, len, req, WIRE_MEMORY_MAX, e);
	if (r == 0 && !id_from_uuid(str(req->alloc_id), ret))
		r = err_say(e, -EINVAL, "must provide a valid alloc id");
	return r;
}

static void
ask_files(struct sup *sup, uint64_t stream, const void *body, size_t len, enum file_op op,
    alloc_fs_cb *cb)
{
	cleanup_done(rpc_fs_req) struct rpc_fs_req req;
	cleanup_free uint64_t *kept = nomad_keep_stream(stream);
	struct err e = { 0 };
	struct id id;

	if (decode_request(body, len, &req, &id, &e) == 0 &&
	    alloc_fs_ask(sup, &id, op, str(req.path), cb, kept, &e)) {
		(void)steal_ptr(&kept);
		return;
	}
	link_answer(sup, stream, e.msg, NULL, 0);
}

void
nomad_fs_list(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	ask_files(sup, stream, body, len, FILE_OP_LIST, on_list);
}

void
nomad_fs_stat(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	ask_files(sup, stream, body, len, FILE_OP_STAT, on_stat);
}

/* Stream and Logs. */

/* Lives from the request until either side ends the stream. */
struct feed {
	struct fs_stream fs;
	uint64_t stream;
	struct alloc_fs_ask *ask; /* while the file is being opened */
	struct fs_file_wish file;
	char *path;
};

static void
free_feed(struct feed *f)
{
	alloc_fs_forget(f->ask);
	fs_stream_done(&f->fs);
	free(f->path);
	free(f);
}

static void
end_with_error(struct sup *sup, struct feed *f, int status, const char *message)
{
	nomad_stream_fail(sup, f->stream, status, message);
	free_feed(f);
}

/* Sends as many frames as there is room for. May free f. */
static void
pump_feed(struct sup *sup, struct feed *f)
{
	struct text frame;
	int r = 1;

	while (r > 0 && link_stream_room(sup, f->stream) > 0) {
		r = fs_stream_more(&f->fs);
		if (r <= 0)
			break;
		frame = (struct text){ 0 };
		rpc_frame_data(&frame, f->fs.out ? f->fs.out : "", f->fs.out_len);
		link_stream_write(sup, f->stream, frame.text, frame.len);
		text_done(&frame);
		fs_stream_took(&f->fs);
	}
	if (r < 0) {
		link_stream_close(sup, f->stream);
		free_feed(f);
	}
}

static void
on_wake(struct fs_stream *fs)
{
	pump_feed(fs->sup, container_of(fs, struct feed, fs));
}

static void
on_room(struct sup *sup, void *arg, uint64_t stream)
{
	struct feed *f = arg;

	if (f->fs.source)
		pump_feed(sup, f);
}

static void
on_gone(struct sup *sup, void *arg, uint64_t stream)
{
	free_feed(arg);
}

static const struct link_stream_ops feed_ops = { .on_room = on_room, .on_gone = on_gone };

static struct feed *
new_feed(struct sup *sup, uint64_t stream, bool plain)
{
	struct feed *f = mem_new(struct feed);

	f->fs = (struct fs_stream){ .sup = sup, .plain = plain, .beats = true, .wake = on_wake };
	f->stream = stream;
	link_stream_watch(sup, stream, &feed_ops, f);
	return f;
}

static void
on_open(struct sup *sup, void *arg, int r, int fd, const struct rpc_fs_list_rep *files,
    const struct err *e)
{
	struct feed *f = arg;

	f->ask = NULL;
	if (r < 0) {
		end_with_error(sup, f, alloc_fs_is_refusal(r) ? 400 : 500, e->msg);
		return;
	}
	f->fs.source = fs_file_new(sup, &f->file, fd);
	pump_feed(sup, f);
}

/* Returns 0, or an HTTP status with *e. */
static int
open_file(
    struct sup *sup, struct feed *f, struct rpc_fs_req *req, const struct id *id, struct err *e)
{
	bool from_end = str_eq(req->origin, "end");

	if (!*str(req->path))
		return err_say(e, -EINVAL, "must provide a file path"), 400;
	if (*str(req->origin) && !from_end && !str_eq(req->origin, "start"))
		return err_say(e, -EINVAL, "origin must be start or end"), 400;
	f->path = steal_ptr(&req->path);
	f->file = (struct fs_file_wish){ .alloc = *id,
		.path = f->path,
		.from_end = from_end,
		.follow = req->follow,
		.offset = req->offset,
		.limit = req->limit };
	if (!alloc_find(sup, id))
		return err_say(e, -ENOENT, "Unknown allocation \"%.64s\"", str(req->alloc_id)), 404;
	f->ask = alloc_fs_ask(sup, id, FILE_OP_OPEN, f->path, on_open, f, e);
	return f->ask ? 0 : alloc_fs_is_refusal(e->code) ? 400 : 500;
}

/* Sends the first frames, or ends the request with an HTTP status and *e. */
static void
start_feed(struct sup *sup, struct feed *f, int status, const struct err *e)
{
	if (status != 0)
		end_with_error(sup, f, status, e->msg);
	else
		pump_feed(sup, f);
}

void
nomad_fs_stream(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_fs_req) struct rpc_fs_req req;
	struct err e = { 0 };
	struct feed *f;
	struct id id;
	int status = decode_request(body, len, &req, &id, &e) < 0 ? 400 : 0;

	f = new_feed(sup, stream, req.plain_text);
	if (status == 0)
		status = open_file(sup, f, &req, &id, &e);
	if (status != 0)
		end_with_error(sup, f, status, e.msg);
}

void
nomad_fs_logs(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_fs_req) struct rpc_fs_req req;
	struct fs_log_wish wish = { 0 };
	struct err e = { 0 };
	struct feed *f;
	struct id id;
	int status = decode_request(body, len, &req, &id, &e) < 0 ? 400 : 0;

	f = new_feed(sup, stream, req.plain_text);
	wish = (struct fs_log_wish){ .alloc = &id,
		.task = req.task,
		.type = req.log_type,
		.origin = req.origin,
		.follow = req.follow,
		.offset = req.offset };
	if (status == 0)
		status = fs_log_open(sup, &wish, &f->fs.source, &e);
	start_feed(sup, f, status, &e);
}

/* The agent's log. */

void
nomad_monitor_export(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	nomad_stream_fail(sup, stream, 400, MONITOR_NOT_KEPT);
}

void
nomad_monitor(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_monitor_req) struct rpc_monitor_req req;
	struct err e = { 0 };
	struct feed *f;
	int status;

	rpc_monitor_req_init(&req);
	status = model_from_msgpack(&rpc_monitor_req_type, body, len, &req, WIRE_MEMORY_MAX, &e) < 0
		     ? 400
		     : 0;
	f = new_feed(sup, stream, req.plain_text);
	if (status == 0)
		status = monitor_open(sup, str(req.log_level), req.log_json, &f->fs.source, &e);
	start_feed(sup, f, status, &e);
}
