// SPDX-License-Identifier: Apache-2.0
/* csl_copy.c: copies a volume's data. Runs in: drover-csi-local. */
#include "contrib/csi-local/csl_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/path.h"

/* Bounds the stack, and the descriptors: two for each directory on the way. */
#define DEPTH_MAX 256

static int copy_entry(
    int from_fd, const char *from, int to_fd, const char *to, int depth, struct err *e);

/* Copies the data in [at, end). copy_file_range() may copy less than it is asked for. */
static int
copy_range(int from, int to, off_t at, off_t end)
{
	while (at < end) {
		off_t in = at, out = at;
		ssize_t n = copy_file_range(from, &in, to, &out, (size_t)(end - at), 0);

		if (n < 0)
			return -errno;
		if (n == 0)
			return 0; /* the file became shorter */
		at += n;
	}
	return 0;
}

static int
copy_contents(int from, int to, off_t size)
{
	off_t data = 0, hole;
	int r = 0;

	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	if (ftruncate(to, size) < 0)
		return -errno;
	while (r == 0 && data < size) {
		data = lseek(from, data, SEEK_DATA);
		if (data < 0)
			return errno == ENXIO ? 0 : -errno; /* only a hole is left */
		hole = lseek(from, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		r = copy_range(from, to, data, hole < size ? hole : size);
		data = hole;
	}
	return r;
}

static int
copy_attributes(int from, int to)
{
	cleanup_free char *names = mem_alloc(XATTR_LIST_MAX), *value = mem_alloc(XATTR_SIZE_MAX);
	ssize_t n = flistxattr(from, names, XATTR_LIST_MAX), size;

	if (n < 0)
		return errno == ENOTSUP ? 0 : -errno;
	for (const char *name = names; name < names + n; name += strlen(name) + 1) {
		if (strncmp(name, "user.", 5) != 0 && strncmp(name, "system.posix_acl_", 17) != 0)
			continue;
		size = fgetxattr(from, name, value, XATTR_SIZE_MAX);
		if (size < 0 || fsetxattr(to, name, value, (size_t)size, 0) < 0)
			return -errno;
	}
	return 0;
}

/* Owner first, because it clears set-id bits; times last, because all else changes them. */
static int
copy_metadata(int from, int to, const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	struct stat made;
	int r;

	if (fstat(to, &made) < 0)
		return -errno;
	if ((made.st_uid != st->st_uid || made.st_gid != st->st_gid) &&
	    fchown(to, st->st_uid, st->st_gid) < 0)
		return -errno;
	r = copy_attributes(from, to);
	if (r < 0)
		return r;
	return fchmod(to, st->st_mode & 07777) < 0 || futimens(to, times) < 0 ? -errno : 0;
}

static int
copy_file(int from_fd, const char *from, int to_fd, const char *to)
{
	cleanup_close int in = -1, out = -1;
	struct stat st;
	int r;

	in = openat(from_fd, from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (in < 0 || fstat(in, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ESTALE; /* replaced since it was looked at */
	out = openat(to_fd, to, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return -errno;
	r = copy_contents(in, out, st.st_size);
	return r < 0 ? r : copy_metadata(in, out, &st);
}

static int
copy_link(int from_fd, const char *from, int to_fd, const char *to, const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	char target[PATH_MAX];
	ssize_t n = readlinkat(from_fd, from, target, sizeof target - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	if (symlinkat(target, to_fd, to) < 0 ||
	    ((st->st_uid != geteuid() || st->st_gid != getegid()) &&
		fchownat(to_fd, to, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0) ||
	    utimensat(to_fd, to, times, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

/* A fifo, a socket, or a device. */
static int
copy_node(int to_fd, const char *to, const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };

	if (mknodat(to_fd, to, st->st_mode, st->st_rdev) < 0 ||
	    ((st->st_uid != geteuid() || st->st_gid != getegid()) &&
		fchownat(to_fd, to, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0) ||
	    fchmodat(to_fd, to, st->st_mode & 07777, 0) < 0 ||
	    utimensat(to_fd, to, times, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

/* Returns 0 or -errno with *e, which then names the entry below. */
static int
copy_directory(int from_fd, const char *from, int to_fd, const char *to, const struct stat *st,
    int depth, struct err *e)
{
	cleanup_dir DIR *dir = NULL;
	cleanup_close int made = -1;
	const char *name;
	int r;

	if (depth == DEPTH_MAX)
		return err_say(e, -ELOOP, "%s is deeper than %d directories", from, DEPTH_MAX);
	r = dir_open_at(from_fd, from, &dir);
	if (r == 0)
		r = dir_make_at(to_fd, to, 0700, geteuid(), getegid(), &made);
	if (r < 0)
		return err_set(e, r, "%s", from);
	while (errno = 0, (name = dir_next(dir))) {
		r = copy_entry(dirfd(dir), name, made, name, depth + 1, e);
		if (r < 0)
			return depth > 0 ? err_prefix(e, "%s", from) : r;
	}
	r = errno != 0 ? -errno : copy_metadata(dirfd(dir), made, st);
	return r < 0 ? err_set(e, r, "%s", from) : 0;
}

static int
copy_entry(int from_fd, const char *from, int to_fd, const char *to, int depth, struct err *e)
{
	struct stat st;
	int r;

	if (fstatat(from_fd, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
		/* A task may remove files while its volume is copied. */
		return errno == ENOENT && depth > 0 ? 0 : err_set(e, -errno, "%s", from);
	if (S_ISDIR(st.st_mode))
		return copy_directory(from_fd, from, to_fd, to, &st, depth, e);
	if (S_ISREG(st.st_mode))
		r = copy_file(from_fd, from, to_fd, to);
	else if (S_ISLNK(st.st_mode))
		r = copy_link(from_fd, from, to_fd, to, &st);
	else
		r = copy_node(to_fd, to, &st);
	return r < 0 && !(r == -ENOENT && depth > 0) ? err_set(e, r, "%s", from) : 0;
}

int
csl_copy_at(int from_fd, const char *from, int to_fd, const char *to, struct err *e)
{
	return copy_entry(from_fd, from, to_fd, to, 0, e);
}
