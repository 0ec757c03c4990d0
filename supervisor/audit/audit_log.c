// SPDX-License-Identifier: Apache-2.0
/* audit_log.c: opens, appends to, and rotates the file of the audit log. Runs in: supervisor. */
#include "supervisor/audit/audit_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/mountinfo.h"
#include "supervisor/core/journal.h"

#define CIFS_MAGIC ((int)0xff534d42)

struct audit_log {
	const struct config_audit *config;
	char dir[2 * CONFIG_PATH_SIZE]; /* of the file … */
	char name[CONFIG_PATH_SIZE];    /* … and its name there */
	size_t stem;                    /* bytes of the name before its last dot */
	int fd;                         /* -1: not open */
	int64_t since_ns;               /* when the file was begun */
	struct audit_counts counts;
	bool cannot_rotate; /* that was reported */
};

void
audit_log_new(struct sup *sup)
{
	const struct config_audit *c = &sup->config->audit;
	struct audit_log *l;
	const char *dot;
	char *slash;

	if (!c->enabled)
		return;
	l = mem_new(struct audit_log);
	l->config = c;
	l->fd = -1;
	if (c->path[0])
		(void)snprintf(l->dir, sizeof l->dir, "%s", c->path);
	else
		(void)snprintf(l->dir, sizeof l->dir, "%s/audit/audit.log", sup->args.data_dir);
	slash = strrchr(l->dir, '/');
	(void)snprintf(l->name, sizeof l->name, "%s", slash + 1);
	slash[slash == l->dir] = '\0'; /* the root directory keeps its slash */
	dot = strrchr(l->name, '.');
	l->stem = dot && dot > l->name ? (size_t)(dot - l->name) : strlen(l->name);
	sup->audit = l;
}

void
audit_log_free(struct sup *sup)
{
	if (sup->audit && sup->audit->fd >= 0)
		(void)close(sup->audit->fd);
	free(sup->audit);
	sup->audit = NULL;
}

/* --- opening --- */

#define LOCAL_ONLY                                                                                 \
	"its file system is a network or FUSE mount, which could stop the agent when it hangs; "   \
	"choose a local disk"

/* The work loop waits for each write, so a file system that can hang for minutes is refused. This
 * finds one before it is opened, because that can hang, too; not behind a symbolic link. */
static int
check_mounts(const char *dir, struct err *e)
{
	static const char *const remote[] = { "nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "afs" };
	cleanup_free char *text = NULL;
	size_t longest = 0;
	bool is_remote = false;
	struct mountinfo m;
	char *rest;
	int r = mountinfo_read(&text);

	if (r < 0)
		return err_set(e, r, "read the list of mounts");
	rest = text;
	while ((r = mountinfo_next(&rest, &m)) != 0) {
		size_t len = r < 0 ? 0 : strlen(m.target);

		/* If several mounts are on one directory, the last one hides the others. */
		if (r < 0 || len < longest ||
		    (strcmp(m.target, "/") != 0 && !mountinfo_below(dir, m.target)))
			continue;
		longest = len;
		is_remote = strncmp(m.type, "fuse", 4) == 0;
		for (size_t i = 0; i < ELEMENTSOF(remote); i++)
			is_remote |= strcmp(m.type, remote[i]) == 0;
	}
	return is_remote ? err_say(e, -EREMOTE, LOCAL_ONLY) : 0;
}

static int
check_file_system(int fd, struct err *e)
{
	static const int remote[] = { NFS_SUPER_MAGIC, FUSE_SUPER_MAGIC, SMB_SUPER_MAGIC,
		CIFS_MAGIC, SMB2_SUPER_MAGIC, CEPH_SUPER_MAGIC, V9FS_MAGIC, AFS_SUPER_MAGIC };
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return err_set(e, -errno, "find out the file system");
	for (size_t i = 0; i < ELEMENTSOF(remote); i++)
		if ((int)fs.f_type == remote[i])
			return err_say(e, -EREMOTE, LOCAL_ONLY);
	return 0;
}

/* Ends a line that a crash left without its end. */
static int
end_last_line(int fd, off_t size, struct err *e)
{
	char last = '\n';

	if (size > 0 && pread(fd, &last, 1, size - 1) < 0)
		return err_set(e, -errno, "read its end");
	if (last != '\n' && write(fd, "\n", 1) < 0)
		return err_set(e, -errno, "end its last line");
	return 0;
}

static int64_t
time_of_birth(int fd)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME | STATX_MTIME, &stx) < 0)
		return clock_real_ns();
	if (!(stx.stx_mask & STATX_BTIME))
		stx.stx_btime = stx.stx_mtime;
	return stx.stx_btime.tv_sec * NS_PER_S + stx.stx_btime.tv_nsec;
}

static int
check_file(struct audit_log *l, int fd, struct err *e)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return err_set(e, -errno, "find out its size");
	if (!S_ISREG(st.st_mode))
		return err_say(e, -EINVAL, "it is not a regular file");
	r = check_file_system(fd, e);
	if (r == 0 && (st.st_mode & 0777) != l->config->mode && fchmod(fd, l->config->mode) < 0)
		r = err_set(e, -errno, "set its permissions");
	return r < 0 ? r : end_last_line(fd, st.st_size, e);
}

static int
open_file(struct audit_log *l, struct err *e)
{
	cleanup_close int fd = -1, dir = -1;

	if (check_mounts(l->dir, e) < 0)
		return err_prefix(e, "%s/%s", l->dir, l->name);
	dir = open(l->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_set(e, -errno, "open the directory %s", l->dir);
	/* Opening a FIFO must not wait for its reader. */
	fd = openat(dir, l->name,
	    O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
	    l->config->mode);
	if (fd < 0)
		return err_set(e, -errno, "open %s/%s", l->dir, l->name);
	if (check_file(l, fd, e) < 0)
		return err_prefix(e, "%s/%s", l->dir, l->name);
	(void)fsync(dir); /* for the new name; the entries are what counts */
	l->since_ns = time_of_birth(fd);
	l->fd = steal_fd(&fd);
	return 0;
}

static void
close_file(struct audit_log *l)
{
	if (l->fd >= 0)
		(void)close(l->fd);
	l->fd = -1;
}

/* --- rotation --- */

/* Returns the time in the name of a closed file, -1 if the name is not of one. */
static long long
time_in_name(const struct audit_log *l, const char *name)
{
	long long ns;
	char *end;

	if (strncmp(name, l->name, l->stem) != 0 || name[l->stem] != '-' ||
	    name[l->stem + 1] < '0' || name[l->stem + 1] > '9')
		return -1;
	ns = strtoll(name + l->stem + 1, &end, 10);
	return strcmp(end, l->name + l->stem) == 0 ? ns : -1;
}

static int
compare_times(const void *a, const void *b)
{
	const long long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Lists the times of the closed files, the oldest first. */
static size_t
list_times(const struct audit_log *l, DIR *dir, long long **ret)
{
	size_t n = 0, room = 0;
	const struct dirent *entry;

	while ((entry = readdir(dir))) {
		long long ns = time_in_name(l, entry->d_name);

		if (ns < 0)
			continue;
		if (n == room)
			*ret = mem_resize(*ret, room = 2 * room + 64, sizeof **ret);
		(*ret)[n++] = ns;
	}
	if (n > 0)
		qsort(*ret, n, sizeof **ret, compare_times);
	return n;
}

/* Removes the oldest closed files if there are more than may be kept. */
static void
remove_old_files(const struct audit_log *l, int dir_fd)
{
	cleanup_dir DIR *dir = NULL;
	cleanup_free long long *times = NULL;
	const struct dirent *entry;
	int copy = dup(dir_fd);
	size_t n, most = l->config->rotate_max_files;

	if (most == 0 || copy < 0)
		return;
	dir = fdopendir(copy);
	if (!dir)
		(void)close(copy);
	n = dir ? list_times(l, dir, &times) : 0;
	if (n <= most)
		return;
	rewinddir(dir);
	while ((entry = readdir(dir))) {
		long long ns = time_in_name(l, entry->d_name);

		if (ns >= 0 && ns < times[n - most])
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
	}
}

static int
rename_file(struct audit_log *l, struct err *e)
{
	cleanup_close int dir = open(l->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char closed[2 * CONFIG_PATH_SIZE];

	(void)snprintf(closed, sizeof closed, "%.*s-%lld%s", (int)l->stem, l->name,
	    (long long)clock_real_ns(), l->name + l->stem);
	if (dir < 0 || renameat(dir, l->name, dir, closed) < 0)
		return err_set(e, -errno, "rename %s/%s to %s", l->dir, l->name, closed);
	l->counts.rotations++;
	remove_old_files(l, dir);
	return 0;
}

/* A file that cannot be renamed is written on, because entries are worth more than its size. */
static void
rotate(struct audit_log *l)
{
	struct err e = { 0 };

	if (rename_file(l, &e) == 0) {
		close_file(l);
		l->cannot_rotate = false;
	} else if (!l->cannot_rotate) {
		journal_warn(JOURNAL_REQUEST, NULL, "the audit log is not rotated: %s", e.msg);
		l->cannot_rotate = true;
	}
}

static bool
is_due(const struct audit_log *l, off_t size, size_t more)
{
	const struct config_audit *c = l->config;
	int64_t age_ns = clock_real_ns() - l->since_ns;

	if (size == 0)
		return false;
	return (c->rotate_bytes > 0 && (uint64_t)size + more > c->rotate_bytes) ||
	       (c->rotate_ms > 0 && age_ns / NS_PER_MS >= (int64_t)c->rotate_ms);
}

/* --- entries --- */

/* Makes sure that a file is open for a line of len bytes. */
static int
make_ready(struct audit_log *l, size_t len, struct err *e)
{
	struct stat st;

	/* Someone else may have removed the file. */
	if (l->fd >= 0 && (fstat(l->fd, &st) < 0 || st.st_nlink == 0))
		close_file(l);
	if (l->fd < 0) {
		if (open_file(l, e) < 0)
			return e->code;
		if (fstat(l->fd, &st) < 0)
			return err_set(e, -errno, "find out its size");
	}
	if (!is_due(l, st.st_size, len))
		return 0;
	rotate(l);
	return l->fd < 0 ? open_file(l, e) : 0;
}

static int
write_line(struct audit_log *l, const char *line, size_t len, struct err *e)
{
	struct iovec parts[] = { { (void *)line, len }, { (void *)"\n", 1 } };
	ssize_t n = writev(l->fd, parts, 2);
	int r = n < 0 ? -errno : (size_t)n == len + 1 ? 0 : -ENOSPC;
	struct stat st;

	if (n > 0 && r < 0 && fstat(l->fd, &st) == 0 && st.st_size >= n &&
	    ftruncate(l->fd, st.st_size - n) < 0)
		return err_set(e, -errno, "remove a part of a line from %s/%s", l->dir, l->name);
	return r < 0 ? err_set(e, r, "write %s/%s", l->dir, l->name) : 0;
}

int
audit_log_append(struct audit_log *l, const char *line, size_t len, bool sync, struct err *e)
{
	int r = make_ready(l, len + 1, e);

	if (r == 0)
		r = write_line(l, line, len, e);
	if (r == 0 && sync && fdatasync(l->fd) < 0)
		r = err_set(e, -errno, "sync %s/%s", l->dir, l->name);
	if (r == 0) {
		l->counts.entries++;
		return 0;
	}
	l->counts.failures++;
	close_file(l);
	return r;
}

int
audit_log_check(struct audit_log *l, struct err *e)
{
	struct statvfs fs;
	int r = make_ready(l, 0, e);

	if (r < 0)
		return r;
	/* It fails if the kernel no longer writes to the file system because of an error. */
	if (fdatasync(l->fd) < 0)
		return err_set(e, -errno, "sync %s/%s", l->dir, l->name);
	if (fstatvfs(l->fd, &fs) < 0)
		return err_set(e, -errno, "find out the space for %s/%s", l->dir, l->name);
	r = fs.f_flag & ST_RDONLY ? -EROFS : fs.f_bavail == 0 ? -ENOSPC : 0;
	return r < 0 ? err_set(e, r, "write %s/%s", l->dir, l->name) : 0;
}

struct audit_counts
audit_log_counts(const struct sup *sup)
{
	return sup->audit ? sup->audit->counts : (struct audit_counts){ 0 };
}
