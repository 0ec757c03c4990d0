// SPDX-License-Identifier: Apache-2.0
/* log_reader.c: reads rotated log files as one stream. Runs in: supervisor. */
#include "supervisor/api/log_reader.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"

#define TIME_SIZE 16 /* bytes of a record in a file of times (docs/logs.md) */

struct log_file {
	uint64_t index;
	off_t size;
};

struct log_files {
	struct log_file *v;
	size_t n, size;
};

/* Parses the number after the prefix, as the executor writes it: no sign, no leading zero. */
static bool
parse_index(const struct log_reader *r, const char *name, uint64_t *ret)
{
	size_t len = strlen(r->prefix);
	char again[24];

	if (strncmp(name, r->prefix, len) != 0)
		return false;
	*ret = strtoull(name + len, NULL, 10);
	(void)snprintf(again, sizeof again, "%" PRIu64, *ret);
	return strcmp(name + len, again) == 0;
}

static int
compare_files(const void *a, const void *b)
{
	const struct log_file *x = a, *y = b;

	return x->index < y->index ? -1 : x->index > y->index;
}

static void
add_file(struct log_files *files, uint64_t index, off_t size)
{
	if (files->n == files->size) {
		files->size = files->size ? files->size * 2 : 16;
		files->v = mem_resize(files->v, files->size, sizeof *files->v);
	}
	files->v[files->n++] = (struct log_file){ .index = index, .size = size };
}

static void
free_files(struct log_files *files)
{
	free(files->v);
}

/* Lists the task's files, oldest first. Returns 0 or -errno. */
static int
list_files(const struct log_reader *r, struct log_files *ret)
{
	cleanup_dir DIR *dir = NULL;
	struct dirent *entry;
	struct stat st;
	uint64_t index;
	int fd = openat(r->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		(void)close(fd);
		return -errno;
	}
	while ((entry = readdir(dir))) {
		if (!parse_index(r, entry->d_name, &index))
			continue;
		if (fstatat(r->dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		add_file(ret, index, st.st_size);
	}
	if (ret->n > 0)
		qsort(ret->v, ret->n, sizeof *ret->v, compare_files);
	return 0;
}

static int
open_file(const struct log_reader *r, uint64_t index)
{
	char name[LOG_PREFIX_SIZE + 24];

	(void)snprintf(name, sizeof name, "%s%" PRIu64, r->prefix, index);
	return fd_open_beneath(r->dir_fd, name, O_RDONLY | O_NONBLOCK, 0);
}

/* Sets index and pos to the start of the reading. */
static void
seek_start(struct log_reader *r, const struct log_files *files, bool from_end, uint64_t offset)
{
	uint64_t total = 0, skip;
	size_t i = 0;

	if (files->n == 0)
		return; /* a task without output yet: its first file will be number 0 */
	for (size_t k = 0; k < files->n; k++)
		total += (uint64_t)files->v[k].size;
	if (offset > total)
		offset = total;
	skip = from_end ? total - offset : offset;
	while (i + 1 < files->n && skip >= (uint64_t)files->v[i].size) {
		skip -= (uint64_t)files->v[i].size;
		i++;
	}
	r->index = files->v[i].index;
	r->last = files->v[files->n - 1].index;
	r->pos = (off_t)skip;
}

int
log_reader_open(struct log_reader *r, int dir_fd, const char *task, const char *type, bool from_end,
    uint64_t offset, bool follow, struct err *e)
{
	__attribute__((__cleanup__(free_files))) struct log_files files = { 0 };
	int res;

	*r = (struct log_reader){ .dir_fd = dir_fd, .fd = -1, .follow = follow };
	(void)snprintf(r->prefix, sizeof r->prefix, "%s.%s.", task, type);
	res = list_files(r, &files);
	if (res < 0) {
		log_reader_done(r);
		return err_set(e, res, "read the %s of task \"%s\"", type, task);
	}
	r->empty = files.n == 0;
	seek_start(r, &files, from_end, offset);
	return 0;
}

void
log_reader_resume(struct log_reader *r, uint64_t index, off_t pos)
{
	r->index = index;
	r->pos = pos;
}

void
log_reader_done(struct log_reader *r)
{
	if (r->fd >= 0)
		(void)close(r->fd);
	if (r->dir_fd >= 0)
		(void)close(r->dir_fd);
	r->fd = r->dir_fd = -1;
}

/* Finds the oldest file that is newer than the current one; -ENOENT if there is none. */
static int
find_next(const struct log_reader *r, uint64_t *ret)
{
	__attribute__((__cleanup__(free_files))) struct log_files files = { 0 };
	int res = list_files(r, &files);

	if (res < 0)
		return res;
	for (size_t i = 0; i < files.n; i++) {
		if (files.v[i].index > r->index) {
			*ret = files.v[i].index;
			return 0;
		}
	}
	return -ENOENT;
}

static bool
dir_is_gone(const struct log_reader *r)
{
	struct stat st;

	return fstat(r->dir_fd, &st) < 0 || st.st_nlink == 0;
}

/* Opens the file at r->index, or the next one if it was purged in the meantime. Returns 0 or
 * -errno; -ENOENT: it does not exist yet. */
static int
open_current(struct log_reader *r)
{
	uint64_t next;
	int fd = open_file(r, r->index);

	if (fd == -ENOENT && find_next(r, &next) == 0) {
		r->index = next;
		r->pos = 0;
		fd = open_file(r, next);
	}
	if (fd < 0)
		return fd;
	r->fd = fd;
	return 0;
}

/* Finds the last record of the current file's times at or before pos. Returns its time, or 0; sets
 * *ret_next to where the next record begins, if there is one. The records are sorted by offset. */
static uint64_t
find_time(const struct log_reader *r, off_t pos, off_t *ret_next)
{
	char name[LOG_PREFIX_SIZE + 40];
	cleanup_close int fd = -1;
	uint64_t record[2], time_us = 0;
	off_t low = 0, high, mid;
	struct stat st;

	(void)snprintf(name, sizeof name, ".%s%" PRIu64 ".times", r->prefix, r->index);
	fd = fd_open_beneath(r->dir_fd, name, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	/* Records below `low` are at or before pos, those from `high` on are behind it. */
	for (high = st.st_size / TIME_SIZE; low < high;) {
		mid = low + (high - low) / 2;
		if (pread(fd, record, sizeof record, mid * TIME_SIZE) != TIME_SIZE)
			return 0;
		if (le64toh(record[0]) <= (uint64_t)pos) {
			time_us = le64toh(record[1]);
			low = mid + 1;
		} else {
			high = mid;
			*ret_next = (off_t)le64toh(record[0]);
		}
	}
	return time_us;
}

static ssize_t
read_here(struct log_reader *r, void *buf, size_t max, struct log_chunk *ret)
{
	uint64_t time_us = 0;
	struct stat st;
	off_t next = 0;
	ssize_t n;

	if (fstat(r->fd, &st) == 0 && st.st_size < r->pos) {
		r->pos = 0;
		r->truncated = true;
	}
	if (r->times)
		time_us = find_time(r, r->pos, &next);
	if (next > r->pos && (size_t)(next - r->pos) < max)
		max = (size_t)(next - r->pos);
	n = pread(r->fd, buf, max, r->pos);
	if (n < 0)
		return -errno;
	r->pos += n;
	*ret = (struct log_chunk){ .index = r->index, .end = r->pos, .time_us = time_us };
	if (n > 0 && r->truncated) {
		ret->event = LOG_EVENT_TRUNCATED;
		r->truncated = false;
	}
	return n;
}

/* Opens the file after the current one; if the current one was purged, the oldest that is newer.
 * Returns a descriptor or a negative errno. */
static int
open_next(const struct log_reader *r, uint64_t *ret)
{
	struct stat st;
	int fd;

	*ret = r->index + 1;
	fd = open_file(r, *ret);
	if (fd >= 0 || fstat(r->fd, &st) < 0 || st.st_nlink > 0 || find_next(r, ret) < 0)
		return fd;
	return open_file(r, *ret);
}

/* Called at the end of a file; moves to the next one if it exists. Returns 0, or the number of
 * further bytes of this file, which the writer may have added before it started the next one. */
static ssize_t
move_on(struct log_reader *r, void *buf, size_t max, struct log_chunk *ret, bool *ret_moved)
{
	struct stat st;
	uint64_t next;
	cleanup_close int fd = open_next(r, &next);
	ssize_t n;

	if (fd < 0)
		return 0;
	n = read_here(r, buf, max, ret);
	if (n != 0)
		return n;
	if (fstat(r->fd, &st) == 0 && st.st_nlink == 0)
		ret->event = LOG_EVENT_DELETED;
	(void)close(r->fd);
	r->fd = steal_fd(&fd);
	r->index = next;
	r->pos = 0;
	*ret_moved = true;
	return 0;
}

ssize_t
log_reader_read(struct log_reader *r, void *buf, size_t max, struct log_chunk *ret)
{
	bool moved = true;
	ssize_t n = 0;

	while (moved && n == 0) {
		*ret = (struct log_chunk){ .index = r->index, .end = r->pos };
		if (!r->follow && r->index > r->last)
			return -ENODATA;
		n = r->fd < 0 ? open_current(r) : 0;
		if (n == -ENOENT)
			break;
		if (n == 0)
			n = read_here(r, buf, max, ret);
		if (n != 0)
			return n;
		if (!r->follow && r->index >= r->last)
			return -ENODATA;
		moved = false;
		n = move_on(r, buf, max, ret, &moved);
		if (n == 0 && ret->event)
			return 0;
	}
	if (n > 0)
		return n;
	return r->follow && !dir_is_gone(r) ? 0 : -ENODATA;
}
