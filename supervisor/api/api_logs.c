// SPDX-License-Identifier: Apache-2.0
/*
 * api_logs.c: GET /v1/client/fs/logs/:id (semantics.md 14.4): a task's log as bytes or as frames,
 * followed if wanted. Runs in: supervisor.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "model/field.h"
#include "supervisor/alloc/alloc_table.h"
#include "supervisor/api/api.h"
#include "supervisor/api/log_reader.h"

#define CHUNK_MAX      (64 * 1024)
#define FOLLOW_USEC    100000
#define HEARTBEAT_USEC 1000000

/* One reader of a log. What was read and has not left yet is in out: a frame is larger than the
 * room for it may be. */
struct log_stream {
	struct api_stream st;
	struct log_stream *next_follower;
	struct sup *sup;
	struct log_reader reader;
	char *task_file; /* "alloc/logs/web.stdout." */
	char *out;
	size_t out_len, out_at, out_size;
	uint64_t idle_since; /* 0: it is not waiting */
	bool plain, follows;
};

/* Everyone who follows, and the timer that looks for news while there is somebody. */
static struct log_stream *followers;
static sd_event_source *follow_timer;

static uint64_t
now_usec(struct sup *sup)
{
	uint64_t now = 0;

	(void)sd_event_now(sup->event, CLOCK_MONOTONIC, &now);
	return now;
}

static int
reserve(struct log_stream *ls, size_t size)
{
	char *grown;

	if (size <= ls->out_size)
		return 0;
	grown = realloc(ls->out, size);
	if (!grown)
		return -ENOMEM;
	ls->out = grown;
	ls->out_size = size;
	return 0;
}

static size_t
put_base64(char *to, const unsigned char *from, size_t n)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *start = to;

	for (size_t i = 0; i < n; i += 3) {
		unsigned v = (unsigned)from[i] << 16 |
			     (i + 1 < n ? (unsigned)from[i + 1] << 8 : 0) |
			     (i + 2 < n ? from[i + 2] : 0);

		*to++ = digits[v >> 18];
		*to++ = digits[v >> 12 & 63];
		*to++ = i + 1 < n ? digits[v >> 6 & 63] : '=';
		*to++ = i + 2 < n ? digits[v & 63] : '=';
	}
	return (size_t)(to - start);
}

/* A task's name passes name_is_task() and needs no escapes in JSON. */
static int
put_frame(struct log_stream *ls, const char *data, size_t n, const struct log_chunk *chunk)
{
	static const char *const events[] = {
		[LOG_EVENT_TRUNCATED] = "file truncated", [LOG_EVENT_DELETED] = "file deleted"
	};
	size_t at = 1;

	if (reserve(ls, (n + 2) / 3 * 4 + strlen(ls->task_file) + 160) < 0)
		return -ENOMEM;
	ls->out[0] = '{';
	if (chunk->end > 0)
		at += (size_t)sprintf(ls->out + at, "\"Offset\":%lld,", (long long)chunk->end);
	if (n > 0) {
		at += (size_t)sprintf(ls->out + at, "\"Data\":\"");
		at += put_base64(ls->out + at, (const unsigned char *)data, n);
		at += (size_t)sprintf(ls->out + at, "\",");
	}
	at += (size_t)sprintf(
	    ls->out + at, "\"File\":\"%s%" PRIu64 "\"", ls->task_file, chunk->index);
	if (chunk->event)
		at += (size_t)sprintf(ls->out + at, ",\"FileEvent\":\"%s\"", events[chunk->event]);
	ls->out[at++] = '}';
	ls->out_len = at;
	ls->out_at = 0;
	return 0;
}

static int
put_plain(struct log_stream *ls, const char *data, size_t n)
{
	if (reserve(ls, n) < 0)
		return -ENOMEM;
	(void)memcpy(ls->out, data, n);
	ls->out_len = n;
	ls->out_at = 0;
	return 0;
}

/* Reads more into out. 1 there is some, 0 nothing just now, negative the end. */
static int
read_more(struct log_stream *ls)
{
	static char data[CHUNK_MAX];
	struct log_chunk chunk;
	ssize_t n;
	int r;

	do {
		n = log_reader_read(&ls->reader, data, sizeof data, &chunk);
		if (n < 0)
			return -1;
		if (n == 0 && !chunk.event)
			return 0;
		r = ls->plain ? put_plain(ls, data, (size_t)n)
			      : put_frame(ls, data, (size_t)n, &chunk);
		if (r < 0)
			return -1;
	} while (ls->out_len == 0);
	return 1;
}

static int
put_heartbeat(struct log_stream *ls)
{
	uint64_t now = now_usec(ls->sup);

	if (ls->plain || now < ls->idle_since + HEARTBEAT_USEC)
		return 0;
	ls->idle_since = now;
	return put_plain(ls, "{}", 2) < 0 ? -1 : 1;
}

static int on_follow_timer(sd_event_source *source, uint64_t usec, void *userdata);

static void
arm_timer(struct sup *sup)
{
	if (!follow_timer) {
		(void)sd_event_add_time_relative(sup->event, &follow_timer, CLOCK_MONOTONIC,
		    FOLLOW_USEC, FOLLOW_USEC / 10, on_follow_timer, sup);
		return;
	}
	(void)sd_event_source_set_time_relative(follow_timer, FOLLOW_USEC);
	(void)sd_event_source_set_enabled(follow_timer, SD_EVENT_ONESHOT);
}

static void
start_following(struct log_stream *ls)
{
	if (ls->follows)
		return;
	ls->follows = true;
	if (!followers)
		arm_timer(ls->sup);
	ls->next_follower = followers;
	followers = ls;
}

static void
stop_following(struct log_stream *ls)
{
	struct log_stream **at = &followers;

	if (!ls->follows)
		return;
	while (*at != ls)
		at = &(*at)->next_follower;
	*at = ls->next_follower;
	ls->follows = false;
	if (!followers)
		follow_timer = sd_event_source_disable_unref(follow_timer);
}

/* What has been read while its stream was silent waits in out; next() takes it from there. */
static int
on_follow_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct log_stream *next;

	for (struct log_stream *ls = followers; ls; ls = next) {
		int r = 0;

		next = ls->next_follower;
		if (ls->idle_since == 0)
			continue;
		if (ls->out_at == ls->out_len)
			r = read_more(ls);
		if (r == 0 && ls->out_at == ls->out_len)
			r = put_heartbeat(ls);
		if (r < 0)
			ls->reader.follow = false;
		if (r != 0)
			api_stream_wake(ls->sup, &ls->st);
	}
	arm_timer(userdata);
	return 0;
}

static ssize_t
on_next(struct api_stream *st, char *buf, size_t max)
{
	struct log_stream *ls = (struct log_stream *)(void *)st;
	size_t n;
	int r = 1;

	if (ls->out_at == ls->out_len)
		r = read_more(ls);
	if (r < 0)
		return -1;
	if (r == 0) {
		if (ls->idle_since == 0)
			ls->idle_since = now_usec(ls->sup);
		start_following(ls);
		return 0;
	}
	if (ls->out_len != 2 || ls->plain)
		ls->idle_since = 0;
	n = ls->out_len - ls->out_at < max ? ls->out_len - ls->out_at : max;
	(void)memcpy(buf, ls->out + ls->out_at, n);
	ls->out_at += n;
	return (ssize_t)n;
}

static void
on_done(struct api_stream *st)
{
	struct log_stream *ls = (struct log_stream *)(void *)st;

	stop_following(ls);
	log_reader_done(&ls->reader);
	free(ls->task_file);
	free(ls->out);
	free(ls);
}

/* --- the request --- */

struct log_wish {
	const struct sup_alloc *sa;
	const char *task, *type;
	bool follow, plain, from_end;
	uint64_t offset;
};

static int
parse_offset(const char *text, uint64_t *ret)
{
	char *end;

	if (!text || !*text)
		return 0;
	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return *end || errno ? -EINVAL : 0;
}

/* 0, or the HTTP status with *e. */
static int
read_wish(struct sup *sup, struct api_req *req, struct log_wish *ret, struct err *e)
{
	const char *origin = api_query(req, "origin");
	const struct task_state *state;
	const struct task *task;
	struct id id;

	ret->task = api_query(req, "task");
	ret->type = api_query(req, "type");
	if (!id_from_uuid(api_param(req, 0), &id))
		return err_say(e, -EINVAL, "must provide a valid alloc id"), 400;
	if (api_query_bool(req, "follow", &ret->follow, e) < 0 ||
	    api_query_bool(req, "plain", &ret->plain, e) < 0)
		return 400;
	if (parse_offset(api_query(req, "offset"), &ret->offset) < 0)
		return err_say(e, -EINVAL, "error parsing offset: a number of bytes was expected"),
		       400;
	if (!ret->task || !*ret->task)
		return err_say(e, -EINVAL, "must provide task name"), 400;
	if (!ret->type || (strcmp(ret->type, "stdout") != 0 && strcmp(ret->type, "stderr") != 0))
		return err_say(e, -EINVAL, "must provide log type (stdout/stderr)"), 400;
	if (origin && *origin && strcmp(origin, "start") != 0 && strcmp(origin, "end") != 0)
		return err_say(e, -EINVAL, "origin must be start or end"), 400;
	ret->from_end = origin && strcmp(origin, "end") == 0;
	ret->sa = alloc_find(sup, &id);
	if (!ret->sa)
		return err_say(e, -ENOENT, "Unknown allocation \"%s\"", api_param(req, 0)), 404;
	task = alloc_task(ret->sa, ret->task);
	if (!task)
		return err_say(e, -EINVAL, "unknown task name \"%s\"", ret->task), 400;
	if (task->log_config && task->log_config->disabled == OPT_TRUE)
		return err_say(e, -ENOENT, "the logs of task \"%s\" are disabled", ret->task), 404;
	state = map_get(task_state, &ret->sa->a.task_states, ret->task);
	if (!state || state->started_at == 0)
		return err_say(
			   e, -ENOENT, "task \"%s\" not started yet. No logs available", ret->task),
		       404;
	return 0;
}

static int
open_stream(struct sup *sup, const struct log_wish *wish, struct log_stream **ret, struct err *e)
{
	struct log_stream *ls;
	char name[ID_UUID_SIZE];
	int fd, r;

	id_to_uuid(&wish->sa->id, name);
	fd = fd_open_beneath(sup->log_dir_fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd == -ENOENT)
		return err_say(e, fd, "state for allocation %s not found on client", name);
	if (fd < 0)
		return err_set(e, fd, "open the logs of allocation %s", name);
	ls = calloc(1, sizeof *ls);
	if (!ls || asprintf(&ls->task_file, "alloc/logs/%s.%s.", wish->task, wish->type) < 0) {
		free(ls);
		(void)close(fd);
		return err_set(e, -ENOMEM, "read logs");
	}
	r = log_reader_open(
	    &ls->reader, fd, wish->task, wish->type, wish->from_end, wish->offset, wish->follow, e);
	if (r < 0) {
		free(ls->task_file);
		free(ls);
		return r;
	}
	ls->st.next = on_next;
	ls->st.done = on_done;
	ls->sup = sup;
	ls->plain = wish->plain;
	*ret = ls;
	return 0;
}

static void
get_logs(struct sup *sup, struct api_req *req)
{
	struct log_wish wish = { 0 };
	struct log_stream *ls = NULL;
	struct err e = { 0 };
	int r = read_wish(sup, req, &wish, &e);

	if (r != 0) {
		api_reply_error(req, r, "%s", e.msg);
		return;
	}
	r = open_stream(sup, &wish, &ls, &e);
	if (r < 0) {
		api_reply_error(req, r == -ENOENT ? 404 : r == -EACCES ? 403 : 500, "%s", e.msg);
		return;
	}
	api_reply_stream(req, wish.plain ? "text/plain" : "application/json", &ls->st);
}

const struct api_route api_log_routes[] = {
	{ "GET", "/v1/client/fs/logs/:id", get_logs, false },
	{ 0 },
};
