// SPDX-License-Identifier: Apache-2.0
/* path.c: makes, checks and removes directories by descriptor. Runs in: launcher, mount-helper,
 * exec-helper. */
#include "common/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"

static int
dir_own(int fd, mode_t mode, uid_t uid, gid_t gid)
{
	/* The mode is set after the owner, because chown(2) clears the set-group-id bit. */
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

int
path_walk(int dir, const char *path, int (*open_part)(int dir, const char *name))
{
	char name[NAME_MAX + 1];

	while (dir >= 0 && *(path += strspn(path, "/"))) {
		size_t len = strcspn(path, "/");
		bool fits =
		    (size_t)snprintf(name, sizeof name, "%.*s", (int)len, path) < sizeof name;
		int next = fits ? open_part(dir, name) : -ENAMETOOLONG;

		(void)close(dir);
		dir = next;
		path += len;
	}
	return dir;
}

int
dir_open_at(int dir_fd, const char *path, DIR **ret)
{
	int fd = fd_open_same_mount(dir_fd, path, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return fd;
	*ret = fdopendir(fd);
	if (*ret)
		return 0;
	close_p(&fd);
	return -errno;
}

const char *
dir_next(DIR *d)
{
	struct dirent *entry;

	do {
		errno = 0;
		entry = readdir(d);
	} while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
	return entry ? entry->d_name : NULL;
}

/* Moves directory name from dir_fd to top_fd under an unused name. */
static int
lift(int dir_fd, const char *name, int top_fd, unsigned *serial)
{
	char lifted[16];

	for (;;) {
		(void)snprintf(lifted, sizeof lifted, ".%u", (*serial)++);
		if (renameat2(dir_fd, name, top_fd, lifted, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
}

/*
 * Makes one pass over directory name below dir_fd and removes what it can. A directory that is not
 * empty is first moved to the top of the tree, so that a deep tree needs neither a stack nor a
 * descriptor per level; top_fd is -1 in the pass over the top itself, which makes a pass over each
 * directory in it. Returns the number of entries that it saw, or -errno.
 */
static int
sweep(int dir_fd, const char *name, int top_fd, unsigned *serial)
{
	cleanup_dir DIR *d = NULL;
	int fd, seen = 0, r = dir_open_at(dir_fd, name, &d);
	const char *n;

	if (r < 0)
		return r == -EXDEV ? -EBUSY : r;
	fd = dirfd(d);
	while ((n = dir_next(d))) {
		seen++;
		if (unlinkat(fd, n, 0) == 0 || errno == ENOENT)
			continue;
		if (errno != EISDIR)
			return -errno;
		if (unlinkat(fd, n, AT_REMOVEDIR) == 0 || errno == ENOENT)
			continue;
		if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)
			return -errno;
		r = top_fd >= 0 ? lift(fd, n, top_fd, serial) : sweep(fd, n, fd, serial);
		/* The entry may have been replaced or removed meanwhile; the next pass handles
		 * it. */
		if (r < 0 && r != -ENOENT && r != -ENOTDIR && r != -ELOOP)
			return r;
	}
	return errno ? -errno : seen;
}

int
tree_remove_at(int dir_fd, const char *name)
{
	unsigned serial = 0;
	int seen, empty = 0;

	do {
		if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
			return 0;
		if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != ENOTEMPTY && errno != EEXIST)
			return -errno;
		seen = sweep(dir_fd, name, -1, &serial);
		empty += seen == 0;
	} while (seen >= 0 && empty < 16);
	return seen == -ENOENT ? 0 : seen < 0 ? seen : -ENOTEMPTY;
}
