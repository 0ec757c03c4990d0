// SPDX-License-Identifier: Apache-2.0
/* exe_logs.c: copies the task's output from two pipes into rotating files <task>.stdout.<n> and
 * <task>.stderr.<n> in the executor's root, and to exe_journal.c. A file is made when there is
 * something to write. Runs in: executor, after its drop. */
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "executor/exe_journal.h"

#define WHOLE_CHUNK_ROOM 32768
#define LOG_TIME_SIZE    16

struct dirent64_raw {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

static const char *const streams[] = { "stdout", "stderr" };

size_t
exe_log_take(const char *buf, size_t len, uint64_t size, uint64_t line, uint64_t max)
{
	uint64_t room = size < max ? max - size : 0;
	size_t in_room = len < room ? len : (size_t)room;
	const char *newline;
	size_t end;

	if (room >= len && room - len > WHOLE_CHUNK_ROOM)
		return len;
	newline = memrchr(buf, '\n', in_room);
	if (newline)
		return (size_t)(newline - buf) + 1;
	newline = memchr(buf, '\n', len);
	end = newline ? (size_t)(newline - buf) + 1 : len;
	if (line > 0 && line + end <= max)
		return end;
	/* A line that is longer than a whole file is split; a shorter one goes into the next file.
	 */
	return end <= room || size == 0 || line + end > max ? in_room : 0;
}

/* Returns the number after "<task>.<stream>.", or -1 if the name has another form. */
static int64_t
index_of(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);
	char *end;
	unsigned long n;

	if (strncmp(name, prefix, len) != 0 || name[len] < '0' || name[len] > '9')
		return -1;
	n = strtoul(name + len, &end, 10);
	return *end == '\0' && n < UINT32_MAX ? (int64_t)n : -1;
}

/* Finds the highest and the lowest index; both are 0 if there are no files. */
static int
find_files(struct exe_log *l, const char *prefix)
{
	cleanup_close int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char names[2048];
	bool any = false;
	long n;

	l->index = l->oldest = 0;
	if (dir < 0)
		return -errno;
	while ((n = syscall(SYS_getdents64, dir, names, sizeof names)) > 0)
		for (long at = 0; at < n;) {
			const struct dirent64_raw *d = (const void *)(names + at);
			int64_t found = index_of(d->name, prefix);

			at += d->len;
			if (found < 0)
				continue;
			if (!any || found > l->index)
				l->index = (uint32_t)found;
			if (!any || found < l->oldest)
				l->oldest = (uint32_t)found;
			any = true;
		}
	return n < 0 ? -errno : 0;
}

static void
set_name(struct exe *x, char *path, size_t size, size_t stream, int64_t index)
{
	(void)snprintf(path, size, index < 0 ? "/%s.%s." : "/%s.%s.%lld", x->keep.task,
	    streams[stream], (long long)index);
}

static void
set_times_name(struct exe *x, char *path, size_t size, size_t stream, int64_t index)
{
	(void)snprintf(
	    path, size, "/.%s.%s.%lld.times", x->keep.task, streams[stream], (long long)index);
}

/* The file of times is next to its log file; without it the log is written all the same. */
static void
open_times(struct exe *x, size_t i)
{
	struct exe_log *l = &x->logs[i];
	char path[sizeof x->keep.task + 40];
	struct stat st;

	set_times_name(x, path, sizeof path, i, l->index);
	l->times = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (l->times >= 0 && (fstat(l->times, &st) < 0 || st.st_size % LOG_TIME_SIZE != 0))
		close_p(&l->times); /* an incomplete record would shift those that follow */
	l->n_times = l->times < 0 ? 0 : (uint64_t)st.st_size / LOG_TIME_SIZE;
	l->stamped_us = 0;
}

/* Notes when the line that begins now was read: at most once in a millisecond, and no more bytes
 * than the log itself may have. */
static void
note_time(struct exe *x, size_t i)
{
	struct exe_log *l = &x->logs[i];
	uint64_t now_us = (uint64_t)clock_real_ns() / 1000;
	const uint64_t record[2] = { htole64(l->size), htole64(now_us) };

	_Static_assert(sizeof record == LOG_TIME_SIZE, "docs/logs.md has the format");
	if (l->times < 0 || l->line > 0 || now_us / 1000 == l->stamped_us / 1000 ||
	    l->n_times >= x->keep.log_max_bytes / LOG_TIME_SIZE)
		return;
	if (write(l->times, record, sizeof record) != (ssize_t)sizeof record)
		close_p(&l->times);
	l->stamped_us = now_us;
	l->n_times++;
}

/* Opens the file of l->index, or the next one that is not full; removes the oldest ones. */
static int
open_file(struct exe *x, size_t i)
{
	struct exe_log *l = &x->logs[i];
	char path[sizeof x->keep.task + 40];
	struct stat st;

	for (;; l->index++) {
		set_name(x, path, sizeof path, i, l->index);
		l->file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);
		if (l->file < 0 || fstat(l->file, &st) < 0)
			return -errno;
		l->size = (uint64_t)st.st_size;
		l->line = 0;
		if (l->size < x->keep.log_max_bytes)
			break;
		close_p(&l->file);
	}
	while (l->index - l->oldest >= x->keep.log_max_files) {
		set_times_name(x, path, sizeof path, i, l->oldest);
		(void)unlink(path);
		set_name(x, path, sizeof path, i, l->oldest++);
		(void)unlink(path);
	}
	close_p(&l->times);
	open_times(x, i);
	return 0;
}

static int
next_file(struct exe *x, size_t i)
{
	struct exe_log *l = &x->logs[i];

	if (l->file >= 0) {
		close_p(&l->file);
		l->index++;
	} else {
		char prefix[sizeof x->keep.task + 16];
		int r;

		set_name(x, prefix, sizeof prefix, i, -1);
		r = find_files(l, prefix + 1);
		if (r < 0)
			return r;
	}
	return open_file(x, i);
}

/* After a failed write the next one is attempted as usual. */
void
exe_log_write(struct exe *x, size_t i, const char *buf, size_t len)
{
	struct exe_log *l = &x->logs[i];

	if (len == 0 || (l->file < 0 && next_file(x, i) < 0))
		return;
	while (len > 0) {
		size_t take = exe_log_take(buf, len, l->size, l->line, x->keep.log_max_bytes);
		const char *newline;
		ssize_t n;

		if (take == 0) {
			if (next_file(x, i) < 0)
				return;
			continue;
		}
		note_time(x, i);
		n = write(l->file, buf, take);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		l->size += (uint64_t)n;
		newline = memrchr(buf, '\n', (size_t)n);
		l->line = newline ? (uint64_t)(buf + n - newline) - 1 : l->line + (uint64_t)n;
		buf += n;
		len -= (size_t)n;
	}
}

int
exe_log_pump(struct exe *x, size_t i)
{
	struct exe_log *l = &x->logs[i];
	char buffer[EXE_LOG_BUF_SIZE];
	ssize_t n;

	if (l->pipe < 0)
		return -EPIPE;
	if (exe_journal_waits(x))
		return 0;
	n = read(l->pipe, buffer, sizeof buffer);
	if (n > 0 && x->keep.log_max_files == 0)
		return 1; /* no logs are wanted, but a terminal has to be read */
	if (n > 0) {
		if (x->keep.log_store != LOG_STORE_JOURNALD)
			exe_log_write(x, i, buffer, (size_t)n);
		if (exe_journal_wanted(x))
			exe_journal_write(x, i, buffer, (size_t)n);
		return 1;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	close_p(&l->pipe);
	return -EPIPE;
}
