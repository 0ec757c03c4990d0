// SPDX-License-Identifier: Apache-2.0
/* fs_file.c: streams a file of a task from either end, and follows it while it grows, is truncated,
 * replaced or deleted. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/list.h"
#include "common/mem.h"
#include "common/fd.h"
#include "common/utf8.h"
#include "model/engine/field.h"
#include "supervisor/alloc/alloc_fs.h"
#include "supervisor/api/fs_stream.h"

#define CHECK_USEC 1000000 /* interval of checks whether the path still names the same file */

struct file_source {
	struct fs_source src;
	struct sup *sup;
	struct id alloc;
	char *path;
	struct text json; /* the path, quoted */
	int fd, next_fd;  /* next_fd: the file that has the name now; -1: unchanged */
	off_t pos;
	int64_t left; /* bytes left; negative: no limit */
	bool follow;
	bool truncated;      /* event to report with the next bytes */
	bool gone, reported; /* the name was deleted; the event for that was reported */
	struct alloc_fs_ask *ask;
	uint64_t checked; /* time of the last check, µs */
};

static void
on_checked(struct sup *sup, void *arg, int r, int fd, const struct rpc_fs_list_rep *files,
    const struct err *e)
{
	struct file_source *f = arg;
	cleanup_close int now = fd;
	struct stat a, b;

	f->ask = NULL;
	f->gone = alloc_fs_is_refusal(r);
	if (r < 0 || fstat(f->fd, &a) < 0 || fstat(now, &b) < 0)
		return;
	if (a.st_dev != b.st_dev || a.st_ino != b.st_ino)
		f->next_fd = steal_fd(&now);
}

/* Asks which file the path names, once a second, or at once when the open file has lost its last
 * name. */
static void
check_name(struct file_source *f, bool at_once)
{
	struct err e = { 0 };
	uint64_t now = 0;

	(void)sd_event_now(f->sup->event, CLOCK_MONOTONIC, &now);
	if (f->ask || f->gone || (!at_once && now < f->checked + CHECK_USEC))
		return;
	f->checked = now;
	f->ask = alloc_fs_ask(f->sup, &f->alloc, FILE_OP_OPEN, f->path, on_checked, f, &e);
	if (!f->ask)
		f->gone = alloc_fs_is_refusal(e.code);
}

/* Called at the end of the file. Returns true if there is another file to read. */
static bool
at_end(struct file_source *f, const struct stat *st, struct fs_chunk *ret)
{
	if (f->next_fd >= 0) {
		close_p(&f->fd);
		f->fd = steal_fd(&f->next_fd);
		f->pos = 0;
		f->truncated = true;
		return true;
	}
	if (f->gone && !f->reported) {
		f->reported = true;
		ret->event = "file deleted";
	}
	check_name(f, st->st_nlink == 0);
	return false;
}

static ssize_t
read_file(struct fs_source *src, void *buf, size_t max, struct fs_chunk *ret)
{
	struct file_source *f = container_of(src, struct file_source, src);
	struct stat st;
	ssize_t n;

	if (f->left == 0 || f->reported)
		return -ENODATA;
	if (f->left > 0 && max > (uint64_t)f->left)
		max = (size_t)f->left;
	*ret = (struct fs_chunk){ .file = f->json.text };
	do {
		if (fstat(f->fd, &st) < 0)
			return -errno;
		if (f->follow && st.st_size < f->pos) {
			f->pos = 0;
			f->truncated = true;
		}
		n = pread(f->fd, buf, max, f->pos);
		if (n < 0)
			return -errno;
		if (n == 0 && !f->follow)
			return -ENODATA;
	} while (n == 0 && at_end(f, &st, ret));
	f->pos += n;
	ret->end = f->pos;
	if (n > 0 && f->left > 0)
		f->left -= n;
	if (n > 0 && f->truncated) {
		ret->event = "file truncated";
		f->truncated = false;
	}
	return n;
}

static void
free_file(struct fs_source *src)
{
	struct file_source *f = container_of(src, struct file_source, src);

	alloc_fs_forget(f->ask);
	close_p(&f->fd);
	close_p(&f->next_fd);
	text_done(&f->json);
	free(f->path);
	free(f);
}

static off_t
find_start(const struct fs_file_wish *wish, int fd)
{
	int64_t offset = wish->offset > 0 ? wish->offset : 0;
	struct stat st = { 0 };

	if (fstat(fd, &st) < 0 || offset > st.st_size)
		offset = st.st_size;
	return wish->from_end ? st.st_size - offset : offset;
}

struct fs_source *
fs_file_new(struct sup *sup, const struct fs_file_wish *wish, int fd)
{
	struct file_source *f = mem_new(struct file_source);
	cleanup_free char *shown = mem_strdup(wish->path);

	*f = (struct file_source){ .src = { read_file, free_file },
		.sup = sup,
		.alloc = wish->alloc,
		.path = mem_strdup(wish->path),
		.fd = fd,
		.next_fd = -1,
		.pos = find_start(wish, fd),
		.left = wish->limit > 0 ? wish->limit : -1,
		.follow = wish->follow };
	if (!utf8_is_text(shown, strlen(shown)))
		(void)utf8_sanitize(shown, strlen(shown) + 1, wish->path, strlen(shown));
	text_json_string(&f->json, shown);
	(void)sd_event_now(sup->event, CLOCK_MONOTONIC, &f->checked);
	return &f->src;
}
