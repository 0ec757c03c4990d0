// SPDX-License-Identifier: Apache-2.0
/* cli_fs.c: drover alloc fs: a directory of an allocation, or a file of it, whole, its end, or
 * followed. Runs in: cli. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_api.h"
#include "cli/cli_log_source.h"
#include "cli/cli_pick.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "common/base64.h"
#include "common/clock.h"
#include "common/mem.h"

#define TAIL_LINES     10
#define TAIL_GUESS     120 /* assumed bytes per line, for the first request */
#define TAIL_BYTES_MAX ((int64_t)64 << 20)
#define TEXT_MAX       ((size_t)128 << 20) /* limit for buffered bytes: the end of a file, or a frame */

static struct {
	bool stat, machine, follow, tail;
	int64_t lines, bytes;
} options = { .lines = -1, .bytes = -1 };

const struct cli_flag cli_alloc_fs_flags[] = {
	{ "c", CLI_FLAG_NUMBER, &options.bytes, "BYTES", "start this many bytes before the end" },
	{ "f", CLI_FLAG_BOOL, &options.follow, NULL, "follow the file as it grows" },
	CLI_PICK_FLAGS,
	{ "H", CLI_FLAG_BOOL, &options.machine, NULL, "sizes in bytes, times to the millisecond" },
	{ "n", CLI_FLAG_NUMBER, &options.lines, "LINES", "start this many lines before the end" },
	{ "stat", CLI_FLAG_BOOL, &options.stat, NULL, "show the entry itself, not its contents" },
	{ "tail", CLI_FLAG_BOOL, &options.tail, NULL, "the last 10 lines" },
	{ 0 },
};

struct file {
	struct cli *cli;
	const char *alloc_id, *path;
	/* Buffered input: the end of the file, an incomplete frame, or an error text. */
	struct text kept;
	struct cli_http_parser parser;
};

static int
keep_bytes(struct file *f, const void *data, size_t len, struct err *e)
{
	if (len > TEXT_MAX - f->kept.len)
		return err_say(e, -EFBIG, "the agent's answer is too large");
	text_append(&f->kept, data, len);
	return 0;
}

static int
print(const void *data, size_t len, struct err *e)
{
	if (fwrite(data, 1, len, stdout) != len || (options.follow && fflush(stdout) != 0))
		return err_set(e, errno ? -errno : -EIO, "write the file");
	return 0;
}

/* The body of an answer. */

static int
on_bytes(void *arg, const void *data, size_t len, struct err *e)
{
	struct file *f = arg;

	return f->parser.status == 200 ? print(data, len, e) : keep_bytes(f, data, len, e);
}

static int
on_kept(void *arg, const void *data, size_t len, struct err *e)
{
	return keep_bytes(arg, data, len, e);
}

static int
print_frame(const char *text, size_t len, struct err *e)
{
	cleanup_json json_t *frame = json_loadb(text, len, 0, NULL);
	const char *data = cli_json_str(frame, "Data"), *event = cli_json_str(frame, "FileEvent");
	cleanup_free void *bytes = mem_alloc(strlen(data) + 1);
	size_t n;

	if (!frame || base64_decode(data, bytes, &n) < 0)
		return err_say(e, -EPROTO, "the agent sent an invalid frame");
	if (*event)
		(void)fprintf(stderr, "drover: %s\n",
		    strcmp(event, "file deleted") == 0 ? "the file was deleted"
						       : "the file was truncated");
	return n > 0 ? print(bytes, n, e) : 0;
}

static int
on_frames(void *arg, const void *data, size_t len, struct err *e)
{
	struct file *f = arg;
	size_t n;
	int r = keep_bytes(f, data, len, e);

	while (r == 0 && f->parser.status == 200 &&
	       (n = cli_frame_length(f->kept.text, f->kept.len)) > 0) {
		r = print_frame(f->kept.text, n, e);
		f->kept.len -= n;
		memmove(f->kept.text, f->kept.text + n, f->kept.len);
	}
	return r;
}

/* Requests. */

static int
check_status(struct file *f, struct err *e)
{
	if (f->parser.status == 200)
		return 0;
	return cli_api_refusal(f->cli, f->parser.status, str(f->kept.text), e);
}

/* Sends the request and passes the whole answer to on_body. */
static int
fetch(struct file *f, const char *target, cli_http_body_fn *on_body, struct err *e)
{
	uint64_t deadline_ms = clock_ms() + f->cli->timeout_ms;
	cleanup_close int fd = cli_api_open(f->cli, "GET", target, NULL, e);
	int r;

	if (fd < 0)
		return cli_api_explain(f->cli, e);
	text_done(&f->kept);
	cli_http_parser_init(&f->parser, on_body, f);
	do {
		r = cli_http_recv(fd, &f->parser, f->parser.status ? UINT64_MAX : deadline_ms, e);
	} while (r == 0);
	return r < 0 ? r : check_status(f, e);
}

static int
read_at(struct file *f, int64_t offset, int64_t limit, cli_http_body_fn *on_body, struct err *e)
{
	char from[24], most[24];
	cleanup_free char *target = NULL;

	(void)snprintf(from, sizeof from, "%" PRId64, offset);
	(void)snprintf(most, sizeof most, "%" PRId64, limit);
	target = cli_target(
	    "/v1/client/fs/readat/%s?path=%s&offset=%s&limit=%s", f->alloc_id, f->path, from, most);
	return fetch(f, target, on_body, e);
}

/* Finds where the last lines of a file of this size begin. A last line without a newline counts. */
static int
find_lines(struct file *f, int64_t size, int64_t lines, int64_t *ret, struct err *e)
{
	int64_t want =
	    lines < TAIL_BYTES_MAX / TAIL_GUESS ? (lines + 1) * TAIL_GUESS : TAIL_BYTES_MAX;
	int64_t left, from;
	size_t at;
	int r;

	for (*ret = size; size > 0 && lines > 0; want *= 4) {
		if (want > TAIL_BYTES_MAX)
			want = TAIL_BYTES_MAX;
		from = size > want ? size - want : 0;
		r = read_at(f, from, size - from, on_kept, e);
		if (r < 0)
			return r;
		left = lines;
		at = f->kept.len;
		if (at > 0 && f->kept.text[at - 1] == '\n')
			at--;
		while (at > 0 && (f->kept.text[at - 1] != '\n' || --left > 0))
			at--;
		*ret = from + (int64_t)at;
		if (at > 0 || from == 0 || want == TAIL_BYTES_MAX)
			return 0;
	}
	return 0;
}

static int
print_file(struct file *f, int64_t size, struct err *e)
{
	int64_t from = 0;
	char offset[24];
	cleanup_free char *target = NULL;
	int r = 0;

	if (options.bytes >= 0)
		from = options.bytes < size ? size - options.bytes : 0;
	else if (options.lines >= 0 || options.tail)
		r = find_lines(f, size, options.lines >= 0 ? options.lines : TAIL_LINES, &from, e);
	if (r < 0)
		return r;
	if (!options.follow)
		return read_at(f, from, 0, on_bytes, e);
	(void)snprintf(offset, sizeof offset, "%" PRId64, from);
	target = cli_target("/v1/client/fs/stream/%s?path=%s&offset=%s&origin=start&follow=true",
	    f->alloc_id, f->path, offset);
	return fetch(f, target, on_frames, e);
}

/* Tables. */

static void
print_size(const json_t *file, struct cli_table *t)
{
	char buf[CLI_TIME_SIZE];

	if (options.machine)
		cli_cell(t, "%" JSON_INTEGER_FORMAT, cli_json_int(file, "Size"));
	else
		cli_cell(t, "%s", cli_bytes(cli_json_int(file, "Size"), buf));
}

static void
print_row(const json_t *file, bool type, struct cli_table *t)
{
	struct cli exact = { .verbose = true };
	char time[CLI_TIME_SIZE];
	char *dot;

	(void)cli_time(&exact, cli_json_time_ns(file, "ModTime"), time);
	dot = strchr(time, '.');
	if (!options.machine && dot)
		(void)strcpy(dot, "Z");
	cli_table_row(t);
	cli_cell(t, "%s", cli_json_str(file, "FileMode"));
	print_size(file, t);
	cli_cell(t, "%s", time);
	if (type)
		cli_cell(t, "%s", cli_json_str(file, "ContentType"));
	cli_cell(t, "%s%s", cli_json_str(file, "Name"), cli_json_true(file, "IsDir") ? "/" : "");
}

static void
print_stat(const json_t *file)
{
	struct cli_table *t = CLI_TABLE("Mode", "Size", "Modified Time", "?Content Type", "Name");

	print_row(file, true, t);
	cli_table_print(t);
}

static int
print_directory(struct file *f, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/client/fs/ls/%s?path=%s", f->alloc_id, f->path);
	cleanup_json json_t *list = NULL;
	struct cli_table *t;
	const json_t *file;
	size_t i;
	int r = cli_api_fetch(f->cli, target, &list, e);

	if (r <= 0)
		return r;
	t = CLI_TABLE("Mode", "Size", "Modified Time", "Name");
	json_array_foreach (list, i, file)
		print_row(file, false, t);
	cli_table_print(t);
	return 0;
}

static int
show(struct file *f, struct err *e)
{
	cleanup_free char *target =
	    cli_target("/v1/client/fs/stat/%s?path=%s", f->alloc_id, f->path);
	cleanup_json json_t *file = NULL;
	int r = cli_api_get(f->cli, target, &file, e);

	if (r < 0)
		return r;
	if (options.stat && f->cli->json)
		return cli_json_print(file, e);
	if (options.stat)
		print_stat(file);
	else if (cli_json_true(file, "IsDir"))
		return print_directory(f, e);
	else
		return print_file(f, cli_json_int(file, "Size"), e);
	return 0;
}

int
cli_alloc_fs(struct cli *cli, int argc, char **argv)
{
	struct file f = { .cli = cli, .path = argc > 1 ? argv[1] : "/" };
	cleanup_free char *id = NULL;
	struct err e = { 0 };
	int r = cli_pick_alloc(cli, argv[0], &id, &e);

	if (r == 0) {
		f.alloc_id = id;
		r = show(&f, &e);
	}
	text_done(&f.kept);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}
