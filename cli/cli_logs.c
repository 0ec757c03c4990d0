// SPDX-License-Identifier: Apache-2.0
/* cli_logs.c: drover alloc logs: a whole log, its end, or a log that is followed. Runs in: cli. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_alloc.h"
#include "cli/cli_api.h"
#include "cli/cli_log_source.h"
#include "cli/cli_pick.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "cli/cli_watch.h"
#include "common/clock.h"
#include "common/mem.h"

#define TAIL_LINES       10
#define TAIL_GUESS       120 /* assumed bytes per line, for the first request */
#define TAIL_BYTES_MAX   ((uint64_t)64 << 20)
#define REFUSAL_MAX      4096
#define RECONNECT_FOR_MS 15000
#define IDLE_MS          500 /* after this time without output, checks whether the allocation has ended */

static struct {
	bool follow, err, out, tail;
	int64_t lines, bytes;
	const char *task, *since, *until, *grep;
} options = { .lines = -1, .bytes = -1 };

const struct cli_flag cli_alloc_logs_flags[] = {
	CLI_PICK_FLAGS,
	{ "c", CLI_FLAG_NUMBER, &options.bytes, "BYTES", "start this many bytes before the end" },
	{ "f", CLI_FLAG_BOOL, &options.follow, NULL, "follow the log as the task writes" },
	{ "grep", CLI_FLAG_STRING, &options.grep, "PATTERN",
	    "as in `drover job logs`: of all tasks, by time, only lines that match" },
	{ "n", CLI_FLAG_NUMBER, &options.lines, "LINES", "start this many lines before the end" },
	{ "since", CLI_FLAG_STRING, &options.since, "TIME",
	    "as in `drover job logs`: of all tasks, by time, only lines since then" },
	{ "stderr", CLI_FLAG_BOOL, &options.err, NULL, "show stderr" },
	{ "stdout", CLI_FLAG_BOOL, &options.out, NULL,
	    "show stdout (the default without -f; with -f the default is both)" },
	{ "tail", CLI_FLAG_BOOL, &options.tail, NULL, "the last 10 lines" },
	{ "task", CLI_FLAG_STRING, &options.task, "TASK",
	    "the task, if the allocation has more than one" },
	{ "until", CLI_FLAG_STRING, &options.until, "TIME",
	    "as in `drover job logs`: of all tasks, by time, only lines until then" },
	{ 0 },
};

/* Where to start: an offset from the start or from the end. */
struct position {
	bool from_end;
	uint64_t offset;
};

/* One of the task's two output streams and the FILE it is copied to. */
struct stream {
	struct cli *cli;
	const char *alloc_id, *task, *type;
	FILE *out;
	int fd;
	struct cli_http_parser parser;
	struct position at;  /* offset of the next request */
	uint64_t skip_until; /* bytes still to be collected in head before they are printed */
	int64_t lines;       /* how many lines of head are printed; -1: all */
	struct text head;
	char refusal[REFUSAL_MAX];
	size_t refusal_len;
	bool whole; /* true if the answer is complete */
};

/* Finds the start of the last n lines; a last line without a newline counts. */
static size_t
find_lines(const char *data, size_t len, int64_t n)
{
	size_t at = len;

	if (at && data[at - 1] == '\n')
		at--;
	for (; at > 0; at--)
		if (data[at - 1] == '\n' && --n <= 0)
			break;
	return at;
}

static int
write_out(struct stream *s, const void *data, size_t len, struct err *e)
{
	if (fwrite(data, 1, len, s->out) != len || (options.follow && fflush(s->out) != 0))
		return err_set(e, errno ? -errno : -EIO, "write the log");
	/* With an offset from the start, a lost connection can be resumed without missing anything.
	 */
	if (!s->at.from_end)
		s->at.offset += len;
	return 0;
}

static int
flush_head(struct stream *s, struct err *e)
{
	size_t from = s->lines == 0  ? s->head.len
		      : s->lines > 0 ? find_lines(s->head.text, s->head.len, s->lines)
				     : 0;
	int r;

	if (!s->at.from_end)
		s->at.offset += from;
	r = write_out(s, s->head.text + from, s->head.len - from, e);
	text_done(&s->head);
	s->skip_until = 0;
	return r;
}

static int
on_log(void *arg, const void *data, size_t len, struct err *e)
{
	struct stream *s = arg;
	size_t n;
	int r;

	if (s->parser.status != 200) {
		n = len < REFUSAL_MAX - 1 - s->refusal_len ? len : REFUSAL_MAX - 1 - s->refusal_len;
		memcpy(s->refusal + s->refusal_len, data, n);
		s->refusal_len += n;
		return 0;
	}
	if (s->head.len < s->skip_until) {
		n = len < s->skip_until - s->head.len ? len : (size_t)(s->skip_until - s->head.len);
		text_append(&s->head, data, n);
		r = s->head.len == s->skip_until ? flush_head(s, e) : 0;
		if (r < 0)
			return r;
		data = (const char *)data + n;
		len -= n;
	}
	return len ? write_out(s, data, len, e) : 0;
}

static int
open_stream(struct stream *s, bool follow, struct err *e)
{
	char offset[24];
	cleanup_free char *target = NULL;
	int fd;

	(void)snprintf(offset, sizeof offset, "%" PRIu64, s->at.offset);
	target = cli_target(
	    "/v1/client/fs/logs/%s?task=%s&type=%s&follow=%s&origin=%s&offset=%s&plain=true",
	    s->alloc_id, s->task, s->type, cli_yes(follow), s->at.from_end ? "end" : "start",
	    offset);
	fd = cli_api_open(s->cli, "GET", target, NULL, e);
	if (fd < 0)
		return fd;
	s->fd = fd;
	s->refusal_len = 0;
	cli_http_parser_init(&s->parser, on_log, s);
	return 0;
}

static void
close_stream(struct stream *s)
{
	if (s->fd >= 0)
		(void)close(steal_fd(&s->fd));
}

static int
check_status(struct stream *s, struct err *e)
{
	if (s->parser.status == 200)
		return 0;
	s->refusal[s->refusal_len] = '\0';
	return cli_api_refusal(s->cli, s->parser.status, s->refusal, e);
}

/* Reads the log from s->at to its current end through on_log(). */
static int
read_once(struct stream *s, struct err *e)
{
	uint64_t deadline_ms = clock_ms() + s->cli->timeout_ms;
	int r;

	r = open_stream(s, false, e);
	if (r < 0)
		return cli_api_explain(s->cli, e);
	do {
		r = cli_http_recv(
		    s->fd, &s->parser, s->parser.status ? UINT64_MAX : deadline_ms, e);
	} while (r == 0);
	close_stream(s);
	return r < 0 ? r : check_status(s, e);
}

/* The length of the last lines is unknown: reads a growing part of the end until it has enough
 * lines or the whole log. Leaves that part in head and its offset in s->at. */
static int
find_tail(struct stream *s, int64_t lines, struct err *e)
{
	uint64_t want = (uint64_t)(lines + 1) * TAIL_GUESS;
	int r;

	for (;; want *= 4) {
		if (want > TAIL_BYTES_MAX)
			want = TAIL_BYTES_MAX;
		s->at = (struct position){ .from_end = true, .offset = want };
		s->skip_until = UINT64_MAX;
		s->head.len = 0;
		r = read_once(s, e);
		if (r < 0)
			return r;
		if (s->head.len < want) {
			s->at = (struct position){ 0 };
			return 0;
		}
		/* The part may begin in the middle of a line. */
		if (find_lines(s->head.text, s->head.len, lines) > 0 || want == TAIL_BYTES_MAX)
			return 0;
	}
}

/* Sets where the stream starts and, for -n, how many bytes of it are history. */
static int
find_start(struct stream *s, struct err *e)
{
	int64_t lines = options.lines >= 0 ? options.lines : TAIL_LINES;
	int r;

	s->lines = -1;
	if (options.bytes >= 0) {
		s->at = (struct position){ .from_end = true, .offset = (uint64_t)options.bytes };
		return 0;
	}
	if (options.lines < 0 && !options.tail)
		return 0;
	r = find_tail(s, lines, e);
	if (r < 0)
		return r;
	s->lines = lines;
	if (!options.follow) {
		r = flush_head(s, e);
		s->whole = true;
		return r;
	}
	/* The request is repeated with follow: the existing part comes first, then new output. */
	s->skip_until = s->head.len;
	s->head.len = 0;
	return s->skip_until ? 0 : flush_head(s, e);
}

/* The connection was lost in the middle: continues at the same offset, or as near to it as is
 * known. */
static int
reconnect(struct stream *s, struct err *e)
{
	uint64_t until_ms = clock_ms() + RECONNECT_FOR_MS;
	int r;

	close_stream(s);
	if (s->head.len)
		(void)flush_head(s, e);
	s->skip_until = 0;
	if (s->at.from_end) {
		(void)fprintf(stderr,
		    "drover: the connection was lost; continuing from now, lines may be missing\n");
		s->at.offset = 0;
	}
	do {
		r = open_stream(s, true, e);
		if (r == 0)
			return 0;
		cli_sleep_ms(200);
	} while (clock_ms() < until_ms);
	return cli_api_explain(s->cli, e);
}

/* Reads the available bytes of one stream. */
static int
step_stream(struct stream *s, struct err *e)
{
	bool begun = s->parser.status == 200;
	int r;

	r = cli_http_recv(s->fd, &s->parser, clock_ms() + s->cli->timeout_ms, e);
	if (r == -ECONNRESET && begun)
		return reconnect(s, e);
	if (r < 0)
		return r;
	if (s->parser.status == 200)
		s->cli->answered = true;
	if (r == 0)
		return 0;
	close_stream(s);
	s->whole = true;
	r = check_status(s, e);
	return r == 0 && s->head.len ? flush_head(s, e) : r;
}

/* Returns true if the allocation has ended, so that no more output will come. False if the agent
 * cannot be asked now. */
static bool
alloc_is_over(const struct stream *s)
{
	cleanup_free char *target = cli_target("/v1/allocation/%s", s->alloc_id);
	cleanup_json json_t *alloc = NULL;
	struct err e = { 0 };

	return cli_api_get(s->cli, target, &alloc, &e) == 0 && cli_alloc_has_ended(alloc);
}

/* Waits at most IDLE_MS for bytes of any stream and reads them. Returns 1 if some came, 0 if none,
 * 2 if all streams are complete, or -errno. */
static int
step_streams(struct stream *streams, size_t n, struct err *e)
{
	struct pollfd fds[2];
	size_t n_open = 0;
	int ready, r;

	for (size_t i = 0; i < n; i++) {
		fds[i] = (struct pollfd){ .fd = streams[i].whole ? -1 : streams[i].fd,
			.events = POLLIN };
		n_open += !streams[i].whole;
	}
	if (n_open == 0)
		return 2;
	ready = poll(fds, n, IDLE_MS);
	if (ready < 0)
		return errno == EINTR ? 1 : err_set(e, -errno, "wait for the log");
	for (size_t i = 0; i < n; i++) {
		if (fds[i].fd < 0 || !fds[i].revents)
			continue;
		r = step_stream(&streams[i], e);
		if (r < 0)
			return r;
	}
	return ready > 0;
}

/* Follows until the agent ends the streams, or the allocation has ended and no more output comes.
 */
static int
follow_streams(struct stream *streams, size_t n, struct err *e)
{
	bool over = false;
	int r;

	for (size_t i = 0; i < n; i++) {
		r = open_stream(&streams[i], true, e);
		if (r < 0)
			return cli_api_explain(streams[i].cli, e);
	}
	for (;;) {
		r = step_streams(streams, n, e);
		if (r < 0 || r == 2)
			return r < 0 ? r : 0;
		if (r == 0 && over)
			return 0;
		if (r == 0)
			over = alloc_is_over(&streams[0]);
	}
}

int
cli_alloc_task_name(const char *word, const char *flag, const char **ret, struct err *e)
{
	if (word && flag && strcmp(word, flag) != 0)
		return err_say(
		    e, -EINVAL, "two different tasks are named, \"%s\" and \"%s\"", word, flag);
	*ret = word ? word : flag;
	return 0;
}

static int
find_only_task(struct cli *cli, const char *alloc_id, char **ret, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/allocation/%s", alloc_id);
	cleanup_json json_t *alloc = NULL;
	const json_t *state;
	const char *task;
	char list[256] = "";
	size_t n = 0, len = 0;
	int r = cli_api_get(cli, target, &alloc, e);

	if (r < 0)
		return r;
	json_object_foreach (
	    cli_json_get(alloc, "AllocatedResources/Tasks") ?: cli_json_get(alloc, "TaskStates"),
	    task, state) {
		n++;
		if (len < sizeof list)
			len += (size_t)snprintf(list + len, sizeof list - len, " %s", task);
		free(*ret);
		*ret = mem_strdup(task);
	}
	if (n == 1)
		return 0;
	free(steal_ptr(ret));
	return n ? err_say(e, -EINVAL, "the allocation has %zu tasks; name one of them:%s", n, list)
		 : err_say(e, -ENOENT, "the allocation has no tasks yet");
}

int
cli_alloc_task(struct cli *cli, const char *alloc_id, const char *word, const char *flag,
    char **ret, struct err *e)
{
	const char *task = NULL;
	int r = cli_alloc_task_name(word, flag, &task, e);

	if (r < 0)
		return r;
	if (!task)
		return find_only_task(cli, alloc_id, ret, e);
	*ret = mem_strdup(task);
	return 0;
}

static int
show_logs(struct cli *cli, const char *alloc_id, const char *task, struct err *e)
{
	struct stream streams[2] = { 0 };
	bool both = options.out == options.err && (options.out || options.follow);
	size_t n = 0;
	int r = 0;

	if (both || !options.err)
		streams[n++] = (struct stream){ .type = "stdout", .out = stdout };
	if (both || options.err)
		streams[n++] = (struct stream){ .type = "stderr", .out = both ? stderr : stdout };
	for (size_t i = 0; i < n && r == 0; i++) {
		streams[i].cli = cli;
		streams[i].alloc_id = alloc_id;
		streams[i].task = task;
		streams[i].fd = -1;
		r = find_start(&streams[i], e);
		if (r == 0 && !options.follow && !streams[i].whole)
			r = read_once(&streams[i], e);
	}
	if (r == 0 && options.follow)
		r = follow_streams(streams, n, e);
	for (size_t i = 0; i < n; i++) {
		close_stream(&streams[i]);
		text_done(&streams[i].head);
	}
	return r;
}

/* Prints lines by time, as drover job logs does. id: the allocation; NULL: the first word is a job,
 * or an allocation. */
static int
show_by_time(struct cli *cli, char *id, int argc, char **argv)
{
	const struct cli_job_logs_options o = { .follow = options.follow,
		.lines = options.tail && options.lines < 0 ? TAIL_LINES : options.lines,
		.since = options.since,
		.until = options.until,
		.grep = options.grep };
	char *words[3] = { id ?: argv[0], (char *)options.task, NULL };
	struct err e = { 0 };

	if (options.out || options.err || options.bytes >= 0)
		(void)err_say(&e, -EINVAL,
		    "-c, -stderr and -stdout are for one task of an allocation, not for lines of "
		    "both streams by time");
	else if (options.task && argc > 1)
		(void)err_say(&e, -EINVAL, "tasks are named both with and without -task");
	if (e.code < 0)
		return cli_fail(cli, &e);
	if (options.task)
		return cli_job_logs_show(cli, &o, 2, words);
	argv[0] = words[0];
	return cli_job_logs_show(cli, &o, argc, argv);
}

int
cli_alloc_logs(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *id = NULL, *task = NULL;
	bool by_time = argc > 2 || options.since || options.until || options.grep;
	struct err e = { 0 };
	int r;

	r = cli_pick_alloc(cli, argv[0], &id, &e);
	/* A word that is no allocation may be a job. */
	if ((r == 0 && by_time) || (r == -ENOENT && !cli_pick_options.job))
		return show_by_time(cli, id, argc, argv);
	if (r == 0)
		r = cli_alloc_task(cli, id, argc > 1 ? argv[1] : NULL, options.task, &task, &e);
	if (r == 0)
		r = show_logs(cli, id, task, &e);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}
