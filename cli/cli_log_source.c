// SPDX-License-Identifier: Apache-2.0
/* cli_log_source.c: reads lines of tasks with their times, from the API's frames and from
 * journalctl. Runs in: cli. */
#include "cli/cli_log_source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_watch.h"
#include "common/base64.h"
#include "common/clock.h"
#include "common/mem.h"

#define RECONNECT_FOR_MS 15000
#define LINE_MAX_BYTES   (1 << 20) /* a longer line is cut into several */

void
cli_log_line_free(struct cli_log_line *line)
{
	if (!line)
		return;
	free(line->task);
	free(line->stream);
	free(line->text);
	free(line);
}

static struct cli_log_line *
line_new(const char *alloc, const char *task, const char *stream, uint64_t time_us,
    const char *text, size_t len)
{
	struct cli_log_line *line = mem_new(struct cli_log_line);

	line->time_us = time_us;
	(void)snprintf(line->alloc, sizeof line->alloc, "%s", alloc);
	line->task = mem_strdup(task);
	line->stream = mem_strdup(stream);
	line->text = mem_alloc(len + 1);
	memcpy(line->text, text, len);
	line->text[len] = '\0';
	line->len = len;
	return line;
}

static void
end_line(struct cli_log_source *s)
{
	struct cli_log_line *line = line_new(
	    s->alloc, s->task, s->stream, s->partial_us, s->partial.text ?: "", s->partial.len);

	STAILQ_INSERT_TAIL(&s->lines, line, link);
	s->partial.len = 0;
}

/* A line has the time of its beginning. Where the log has no times, that of the line before. */
static void
take_bytes(struct cli_log_source *s, const char *data, size_t len, uint64_t time_us)
{
	if (time_us)
		s->last_us = time_us;
	while (len > 0) {
		const char *newline = memchr(data, '\n', len);
		size_t n = newline ? (size_t)(newline - data) : len;

		if (s->partial.len == 0)
			s->partial_us = s->last_us;
		text_append(&s->partial, data, n);
		if (newline || s->partial.len > LINE_MAX_BYTES)
			end_line(s);
		data += n + (newline != NULL);
		len -= n + (newline != NULL);
	}
}

static int
take_frame(struct cli_log_source *s, const char *text, size_t len, struct err *e)
{
	cleanup_json json_t *frame = json_loadb(text, len, 0, NULL);
	const char *data = cli_json_str(frame, "Data"), *name = cli_json_str(frame, "File");
	cleanup_free char *bytes = NULL;
	size_t n = 0;

	if (!frame)
		return err_say(e, -EPROTO, "the agent sent a frame that is no JSON");
	bytes = mem_alloc(strlen(data) / 4 * 3 + 1);
	if (base64_decode(data, bytes, &n) < 0)
		return err_say(e, -EPROTO, "the agent sent a frame whose Data is no base64");
	s->in_journal |= strcmp(cli_json_str(frame, "Store"), "journald") == 0;
	s->idle = n == 0;
	if (n == 0)
		return 0;
	take_bytes(s, bytes, n, (uint64_t)cli_json_int(frame, "Time") / 1000);
	name = strrchr(name, '.');
	s->file = name ? strtoll(name + 1, NULL, 10) : 0;
	s->offset = cli_json_int(frame, "Offset");
	return 0;
}

size_t
cli_frame_length(const char *text, size_t len)
{
	bool quoted = false;

	for (size_t i = 0; i < len; i++) {
		if (quoted && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			quoted = !quoted;
		else if (text[i] == '}' && !quoted)
			return i + 1;
	}
	return 0;
}

static int
on_body(void *arg, const void *data, size_t len, struct err *e)
{
	struct cli_log_source *s = arg;
	size_t at = 0, n;
	int r = 0;

	text_append(&s->raw, data, len);
	if (s->parser.status != 200)
		return 0;
	while (r == 0 && (n = cli_frame_length(s->raw.text + at, s->raw.len - at)) > 0) {
		r = take_frame(s, s->raw.text + at, n, e);
		at += n;
	}
	s->raw.len -= at;
	memmove(s->raw.text, s->raw.text + at, s->raw.len);
	return r;
}

static int
connect_source(struct cli *cli, struct cli_log_source *s, bool follow, struct err *e)
{
	char file[24], offset[24];
	cleanup_free char *target = NULL;

	(void)snprintf(file, sizeof file, "%" PRId64, s->file < 0 ? 0 : s->file);
	(void)snprintf(offset, sizeof offset, "%" PRId64, s->offset);
	target = cli_target("/v1/client/fs/logs/%s?task=%s&type=%s&follow=%s&times=true&origin=%s"
			    "&file=%s&offset=%s",
	    s->alloc, s->task, s->stream, follow ? "true" : "false", s->file < 0 ? "start" : "file",
	    file, offset);
	s->raw.len = 0;
	s->fd = cli_api_open(cli, "GET", target, NULL, e);
	cli_http_parser_init(&s->parser, on_body, s);
	return s->fd < 0 ? s->fd : 0;
}

static void
close_source(struct cli_log_source *s)
{
	if (s->fd >= 0)
		(void)close(steal_fd(&s->fd));
	if (s->partial.len > 0 && s->stream)
		end_line(s);
	STAILQ_CONCAT(&s->lines, &s->begun);
	s->over = true;
}

/* The agent restarts: goes on behind the last frame. */
static int
reconnect(struct cli *cli, struct cli_log_source *s, bool follow, struct err *e)
{
	uint64_t until_ms = clock_ms() + RECONNECT_FOR_MS;
	int r;

	(void)close(steal_fd(&s->fd));
	while ((r = connect_source(cli, s, follow, e)) < 0 && clock_ms() < until_ms)
		cli_sleep_ms(200);
	return r < 0 ? cli_api_explain(cli, e) : 0;
}

/* Lines of different tasks come mixed; each goes on in the next entry of its task and stream. */
static struct cli_log_line *
take_begun(struct cli_log_source *s, const struct cli_log_line *next)
{
	struct cli_log_line *line;

	STAILQ_FOREACH (line, &s->begun, link)
		if (strcmp(line->alloc, next->alloc) == 0 && strcmp(line->task, next->task) == 0 &&
		    strcmp(line->stream, next->stream) == 0)
			break;
	if (line)
		STAILQ_REMOVE(&s->begun, line, cli_log_line, link);
	return line;
}

/* Joins the last line of the source, which is of one entry, with the entries before it. has_more:
 * it goes on in another one. */
static void
join_line(struct cli_log_source *s, struct cli_log_line *line, bool has_more)
{
	struct cli_log_line *begun = take_begun(s, line);

	if (begun) {
		begun->text = mem_resize(begun->text, begun->len + line->len + 1, 1);
		memcpy(begun->text + begun->len, line->text, line->len + 1);
		begun->len += line->len;
		cli_log_line_free(line);
		line = begun;
	}
	if (has_more && line->len <= LINE_MAX_BYTES)
		STAILQ_INSERT_TAIL(&s->begun, line, link);
	else
		STAILQ_INSERT_TAIL(&s->lines, line, link);
}

/* One object per line. A message that is no text is an array of numbers. */
static void
take_entry(struct cli_log_source *s, const char *text, size_t len)
{
	cleanup_json json_t *entry = json_loadb(text, len, 0, NULL);
	json_t *message = json_object_get(entry, "MESSAGE"), *byte;
	struct text bytes = { 0 };
	size_t i;

	if (!entry)
		return;
	json_array_foreach (message, i, byte)
		text_append(&bytes, (char[]){ (char)json_integer_value(byte) }, 1);
	if (json_is_string(message))
		text_append(&bytes, json_string_value(message), json_string_length(message));
	join_line(s,
	    line_new(cli_json_str(entry, "DROVER_ALLOC_ID"), cli_json_str(entry, "DROVER_TASK"),
		cli_json_str(entry, "DROVER_STREAM"),
		strtoull(cli_json_str(entry, "__REALTIME_TIMESTAMP"), NULL, 10), bytes.text ?: "",
		bytes.len),
	    *cli_json_str(entry, "DROVER_PARTIAL") != '\0');
	text_done(&bytes);
}

static int
read_journal(struct cli_log_source *s, struct err *e)
{
	char buf[65536], *newline;
	ssize_t n = read(s->fd, buf, sizeof buf);
	size_t at = 0;

	if (n < 0)
		return errno == EINTR ? 0 : err_set(e, -errno, "read the output of journalctl");
	if (n == 0) {
		close_source(s);
		return 0;
	}
	s->idle = false;
	text_append(&s->raw, buf, (size_t)n);
	while ((newline = memchr(s->raw.text + at, '\n', s->raw.len - at))) {
		take_entry(s, s->raw.text + at, (size_t)(newline - s->raw.text) - at);
		at = (size_t)(newline - s->raw.text) + 1;
	}
	s->raw.len -= at;
	memmove(s->raw.text, s->raw.text + at, s->raw.len);
	return 0;
}

int
cli_log_source_read(struct cli *cli, struct cli_log_source *s, bool follow, struct err *e)
{
	int r;

	if (!s->stream)
		return read_journal(s, e);
	r = cli_http_recv(s->fd, &s->parser, clock_ms() + cli->timeout_ms, e);
	if (r == -ECONNRESET && s->parser.status == 200)
		return reconnect(cli, s, follow, e);
	if (r < 0)
		return r;
	if (s->parser.status == 200)
		cli->answered = true;
	if (r == 1)
		close_source(s);
	return 0;
}

int
cli_log_source_open(struct cli *cli, struct cli_log_source *s, bool follow, struct err *e)
{
	int r = connect_source(cli, s, follow, e);

	if (r < 0)
		return cli_api_explain(cli, e);
	while (r == 0 && !s->over && STAILQ_EMPTY(&s->lines) && !s->idle)
		r = cli_log_source_read(cli, s, follow, e);
	if (r < 0 || s->parser.status == 200)
		return r;
	text_append(&s->raw, "", 1);
	s->in_journal = strstr(s->raw.text, "in the journal") != NULL;
	/* A task that has not started, or whose logs are disabled, has no log. */
	return s->parser.status == 404 ? 1 : cli_api_refusal(cli, s->parser.status, s->raw.text, e);
}

int
cli_log_source_journal(
    struct cli_log_source *s, char *const *allocs, size_t n, bool follow, struct err *e)
{
	cleanup_free const char **argv = mem_zeroed(n + 10, sizeof *argv);
	cleanup_free char *matches = mem_alloc(n * 64);
	posix_spawn_file_actions_t actions;
	size_t k = 0;
	int pipes[2], r;

	argv[k++] = "journalctl";
	argv[k++] = "--quiet";
	argv[k++] = "--no-pager";
	argv[k++] = "--output=json";
	argv[k++] = "--all";
	argv[k++] = follow ? "--follow" : "--quiet";
	argv[k++] = follow ? "--no-tail" : "--quiet";
	/* The agent's own lines about an allocation have its id, too, but no stream. */
	argv[k++] = "DROVER_STREAM=stdout";
	argv[k++] = "DROVER_STREAM=stderr";
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(matches + i * 64, 64, "DROVER_ALLOC_ID=%s", allocs[i]);
		argv[k++] = matches + i * 64;
	}
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return err_set(e, -errno, "make a pipe");
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
	r = posix_spawnp(&s->pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(pipes[1]);
	s->fd = pipes[0];
	return r ? err_set(e, -r, "start journalctl, which reads the logs of these tasks") : 0;
}

struct cli_log_source *
cli_log_source_new(const char *alloc, const char *task, const char *stream)
{
	struct cli_log_source *s = mem_new(struct cli_log_source);

	STAILQ_INIT(&s->lines);
	STAILQ_INIT(&s->begun);
	s->alloc = mem_strdup(alloc);
	s->task = mem_strdup(task);
	s->stream = stream;
	s->fd = -1;
	s->file = -1;
	return s;
}

void
cli_log_source_free(struct cli_log_source *s)
{
	struct cli_log_line *line;

	STAILQ_CONCAT(&s->lines, &s->begun);
	while ((line = STAILQ_FIRST(&s->lines))) {
		STAILQ_REMOVE_HEAD(&s->lines, link);
		cli_log_line_free(line);
	}
	if (s->fd >= 0)
		(void)close(s->fd);
	if (s->pid > 0) {
		(void)kill(s->pid, SIGTERM);
		(void)waitpid(s->pid, NULL, 0);
	}
	text_done(&s->raw);
	text_done(&s->partial);
	free(s->alloc);
	free(s->task);
	free(s);
}
