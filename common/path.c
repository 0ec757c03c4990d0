// SPDX-License-Identifier: Apache-2.0
/* path.c: directories by descriptor. Runs in: launcher, mount-helper, exec-helper. */
#include "common/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"

static int
dir_own(int fd, mode_t mode, uid_t uid, gid_t gid)
{
	/* chown clears the set-group-id bit, so the mode comes second (chown(2)). */
	if (fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0)
		return -errno;
	return 0;
}

static int
dir_make(int dir_fd, const char *name, mode_t mode, uid_t uid, gid_t gid, bool ensure, int *ret_fd)
{
	cleanup_close int fd = -1;
	int made, r;

	made = mkdirat(dir_fd, name, 0700) == 0;
	if (!made && errno != EEXIST)
		return -errno;
	fd = fd_open_beneath(dir_fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0) {
		r = fd == -ENOTDIR ? -EEXIST : fd;
		goto undo_dir;
	}
	if (made || ensure) {
		r = dir_own(fd, mode, uid, gid);
		if (r < 0)
			goto undo_dir;
	}
	if (ret_fd)
		*ret_fd = steal_fd(&fd);
	return made;

undo_dir:
	if (made)
		(void)unlinkat(dir_fd, name, AT_REMOVEDIR);
	return r;
}

int
dir_make_at(int dir_fd, const char *name, mode_t mode, uid_t uid, gid_t gid, int *ret_fd)
{
	return dir_make(dir_fd, name, mode, uid, gid, false, ret_fd);
}

int
dir_ensure_at(int dir_fd, const char *name, mode_t mode, uid_t uid, gid_t gid, int *ret_fd)
{
	return dir_make(dir_fd, name, mode, uid, gid, true, ret_fd);
}

/*
 * Removes what can be removed in the directory fd without descending. The first child directory that is not empty is put
 * into child (NAME_MAX + 1 bytes). Returns 1 if there was one, 0 when the directory is empty, -errno.
 */
static int
empty_one_level(int fd, char *child)
{
	cleanup_dir DIR *d = NULL;
	struct dirent *entry;
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (copy < 0)
		return -errno;
	d = fdopendir(copy);
	if (!d) {
		close_p(&copy);
		return -errno;
	}
	rewinddir(d);
	while ((errno = 0, entry = readdir(d))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(fd, entry->d_name, 0) == 0 || errno == ENOENT)
			continue;
		if (errno != EISDIR && errno != EPERM)
			return -errno;
		if (unlinkat(fd, entry->d_name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			continue;
		if (errno != ENOTEMPTY && errno != EEXIST)
			return -errno;
		(void)strcpy(child, entry->d_name);
		return 1;
	}
	return -errno;
}

int
tree_remove_at(int dir_fd, const char *name)
{
	cleanup_close int top = -1, at = -1;
	struct stat top_st, st;
	char child[256];
	int r;

	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	top = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (top < 0 || fstat(top, &top_st) < 0)
		return -errno;
	/*
	 * Always restart from the top: one descriptor, no stack, and a directory that a task moves about while this runs can
	 * lead nowhere else, because each step is one component without links and on the same device.
	 */
	for (;;) {
		int next = fcntl(top, F_DUPFD_CLOEXEC, 3);

		close_p(&at);
		at = next;
		if (at < 0)
			return -errno;
		while ((r = empty_one_level(at, child)) == 1) {
			next = openat(at, child, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (next < 0 && errno == ENOENT)
				continue;
			if (next < 0)
				return -errno;
			close_p(&at);
			at = next;
			if (fstat(at, &st) < 0)
				return -errno;
			if (st.st_dev != top_st.st_dev)
				return -EBUSY;
		}
		if (r < 0)
			return r;
		if (fstat(at, &st) < 0)
			return -errno;
		if (st.st_dev == top_st.st_dev && st.st_ino == top_st.st_ino)
			break;
	}
	return unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}
