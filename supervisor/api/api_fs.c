// SPDX-License-Identifier: Apache-2.0
/* api_fs.c: GET /v1/client/fs/…/:id lists directories of an alloc, streams its files and logs as
 * bytes or as frames, and follows them; /v1/agent/monitor streams the agent's log. Runs in:
 * supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/list.h"
#include "common/mem.h"
#include "model/engine/field.h"
#include "supervisor/alloc/alloc_fs.h"
#include "supervisor/api/api_fs.h"
#include "supervisor/api/fs_stream.h"
#include "supervisor/node/node_state.h"
#include "supervisor/api/api_routes.h"

/* Streams. */

/* The stream of one request. A payload may be larger than the buffer of libmicrohttpd. */
struct http_stream {
	struct api_stream st;
	struct fs_stream fs;
	size_t at; /* offset in fs.out */
};

static void
on_more(struct fs_stream *fs)
{
	struct http_stream *hs = container_of(fs, struct http_stream, fs);

	api_stream_wake(fs->sup, &hs->st);
}

static ssize_t
on_next(struct api_stream *st, char *buf, size_t max)
{
	struct http_stream *hs = container_of(st, struct http_stream, st);
	int r = fs_stream_more(&hs->fs);
	size_t n;

	if (r <= 0)
		return r;
	n = hs->fs.out_len - hs->at < max ? hs->fs.out_len - hs->at : max;
	memcpy(buf, hs->fs.out + hs->at, n);
	hs->at += n;
	if (hs->at == hs->fs.out_len) {
		hs->at = 0;
		fs_stream_took(&hs->fs);
	}
	return (ssize_t)n;
}

static void
on_done(struct api_stream *st)
{
	struct http_stream *hs = container_of(st, struct http_stream, st);

	fs_stream_done(&hs->fs);
	free(hs);
}

/* Takes over the source. */
static void
reply_stream(
    struct sup *sup, struct api_req *req, const char *type, struct fs_source *source, bool plain)
{
	struct http_stream *hs = mem_new(struct http_stream);

	hs->st.next = on_next;
	hs->st.done = on_done;
	hs->fs = (struct fs_stream){
		.sup = sup, .source = source, .plain = plain, .beats = !plain, .wake = on_more
	};
	api_reply_stream(req, type, &hs->st);
}

/* Parameters. */

static int
query_number(const struct api_req *req, const char *name, int64_t *ret, struct err *e)
{
	const char *text = api_query(req, name);
	long long n = 0;
	char *end;

	if (text && *text) {
		errno = 0;
		n = strtoll(text, &end, 10);
		if (*end || errno || *text < '0' || *text > '9')
			return err_say(
			    e, -EINVAL, "error parsing %s: a number of bytes was expected", name);
	}
	*ret = n;
	return 0;
}

static bool
take_id(struct api_req *req, struct id *ret)
{
	if (id_from_uuid(api_param(req, 0), ret))
		return true;
	api_reply_error(req, 400, "must provide a valid alloc id");
	return false;
}

/* Logs. */

void
api_get_logs(struct sup *sup, struct api_req *req)
{
	struct fs_log_wish wish = { .task = api_query(req, "task"),
		.type = api_query(req, "type"),
		.origin = api_query(req, "origin") };
	struct fs_source *source = NULL;
	bool plain = false;
	struct err e = { 0 };
	struct id id;
	int status;

	if (!take_id(req, &id))
		return;
	wish.alloc = &id;
	if (api_query_bool(req, "follow", &wish.follow, &e) < 0 ||
	    api_query_bool(req, "plain", &plain, &e) < 0 ||
	    api_query_bool(req, "times", &wish.times, &e) < 0 ||
	    query_number(req, "file", &wish.file, &e) < 0 ||
	    query_number(req, "offset", &wish.offset, &e) < 0)
		status = 400;
	else
		status = fs_log_open(sup, &wish, &source, &e);
	if (status != 0)
		api_reply_error(req, status, "%s", e.msg);
	else
		reply_stream(sup, req, plain ? TYPE_TEXT : TYPE_JSON, source, plain);
}

/* Only this node's log is served here; servers pass on the logs of other nodes. */
void
api_get_monitor(struct sup *sup, struct api_req *req)
{
	const char *node = api_query(req, "node_id"), *server = api_query(req, "server_id");
	struct fs_source *source = NULL;
	bool plain = false, json = false;
	struct err e = { 0 };
	int status;

	if (*str(server) || (*str(node) && !str_eq(node, node_get(sup)->id)))
		status = (err_say(&e, -EINVAL,
			      "this agent serves only its own log: ask a server for the log of "
			      "another agent"),
		    400);
	else if (api_query_bool(req, "plain", &plain, &e) < 0 ||
		 api_query_bool(req, "log_json", &json, &e) < 0)
		status = 400;
	else
		status = monitor_open(sup, str(api_query(req, "log_level")), json, &source, &e);
	if (status != 0)
		api_reply_error(req, status, "%s", e.msg);
	else
		reply_stream(sup, req, plain ? TYPE_TEXT : TYPE_JSON, source, plain);
}

/* Earlier lines are in the journal, or went to standard error. */
void
api_export_monitor(struct sup *sup, struct api_req *req)
{
	api_reply_error(req, 400, "%s", MONITOR_NOT_KEPT);
}

/* Files. */

/* A request to file-helper in progress. */
struct fs_ask {
	struct api_req *req;
	const char *type; /* format of the answer; for streams only */
	struct fs_file_wish file;
};

static void
refuse_files(struct api_req *req, bool stream, int r, const struct err *e)
{
	int status = 500;

	if (r == -EBUSY)
		status = 503;
	else if (stream && alloc_fs_is_refusal(r))
		status = 400;
	else if (r == -ENOENT)
		status = 404;
	api_reply_error(req, status, "%s", e->msg);
}

static void
ask_files(struct sup *sup, struct api_req *req, enum file_op op, alloc_fs_cb *cb,
    const struct fs_ask *wish)
{
	struct fs_ask *a = mem_new(struct fs_ask);
	struct err e = { 0 };

	*a = *wish;
	a->req = req;
	if (alloc_fs_ask(sup, &a->file.alloc, op, a->file.path, cb, a, &e))
		return;
	free(a);
	refuse_files(req, wish->type && strncmp(e.msg, "Unknown", 7) != 0, e.code, &e);
}

void
api_reply_files(struct api_req *req, const struct rpc_fs_list_rep *files)
{
	struct text json = { 0 };

	text_append(&json, "[", 1);
	for (size_t i = 0; i < files->files.n; i++) {
		if (i > 0)
			text_append(&json, ",", 1);
		model_to_text(&rpc_file_type, &files->files.v[i], api_model_flags(req), &json);
	}
	text_append(&json, "]", 1);
	api_reply_take(req, &json);
}

static void
on_list(struct sup *sup, void *arg, int r, int fd, const struct rpc_fs_list_rep *files,
    const struct err *e)
{
	cleanup_free struct fs_ask *a = arg;

	if (r < 0)
		refuse_files(a->req, false, r, e);
	else
		api_reply_files(a->req, files);
}

static void
on_stat(struct sup *sup, void *arg, int r, int fd, const struct rpc_fs_list_rep *files,
    const struct err *e)
{
	cleanup_free struct fs_ask *a = arg;

	if (r < 0)
		refuse_files(a->req, false, r, e);
	else
		api_reply_model(a->req, &rpc_file_type, &files->files.v[0]);
}

static void
on_open(struct sup *sup, void *arg, int r, int fd, const struct rpc_fs_list_rep *files,
    const struct err *e)
{
	cleanup_free struct fs_ask *a = arg;

	if (r < 0)
		refuse_files(a->req, true, r, e);
	else
		reply_stream(sup, a->req, a->type, fs_file_new(sup, &a->file, fd),
		    strcmp(a->type, TYPE_JSON) != 0);
}

static void
list_or_stat(struct sup *sup, struct api_req *req, enum file_op op, alloc_fs_cb *cb)
{
	struct fs_ask wish = { .file.path = api_query(req, "path") };

	if (!wish.file.path)
		wish.file.path = "/";
	if (take_id(req, &wish.file.alloc))
		ask_files(sup, req, op, cb, &wish);
}

void
api_list_files(struct sup *sup, struct api_req *req)
{
	list_or_stat(sup, req, FILE_OP_LIST, on_list);
}

void
api_stat_file(struct sup *sup, struct api_req *req)
{
	list_or_stat(sup, req, FILE_OP_STAT, on_stat);
}

static void
read_whole(struct sup *sup, struct api_req *req, struct fs_ask *wish)
{
	wish->file.path = api_query(req, "path");
	if (!take_id(req, &wish->file.alloc))
		return;
	if (!str(wish->file.path)[0])
		api_reply_error(req, 400, "must provide a file name");
	else
		ask_files(sup, req, FILE_OP_OPEN, on_open, wish);
}

void
api_cat_file(struct sup *sup, struct api_req *req)
{
	struct fs_ask wish = { .type = TYPE_BYTES };

	read_whole(sup, req, &wish);
}

void
api_read_file_at(struct sup *sup, struct api_req *req)
{
	struct fs_ask wish = { .type = TYPE_BYTES };
	const char *offset = api_query(req, "offset");
	struct err e = { 0 };

	if (!offset || !*offset)
		api_reply_error(req, 400, "error parsing offset: a number of bytes was expected");
	else if (query_number(req, "offset", &wish.file.offset, &e) < 0 ||
		 query_number(req, "limit", &wish.file.limit, &e) < 0)
		api_reply_error(req, 400, "%s", e.msg);
	else
		read_whole(sup, req, &wish);
}

void
api_stream_file(struct sup *sup, struct api_req *req)
{
	struct fs_ask wish = { .type = TYPE_JSON, .file.follow = true };
	const char *origin = api_query(req, "origin");
	struct err e = { 0 };

	wish.file.from_end = strcmp(str(origin), "end") == 0;
	if (api_query_bool(req, "follow", &wish.file.follow, &e) < 0 ||
	    query_number(req, "offset", &wish.file.offset, &e) < 0)
		api_reply_error(req, 400, "%s", e.msg);
	else if (*str(origin) && !wish.file.from_end && strcmp(origin, "start") != 0)
		api_reply_error(req, 400, "origin must be start or end");
	else
		read_whole(sup, req, &wish);
}
