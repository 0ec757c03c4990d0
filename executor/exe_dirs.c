// SPDX-License-Identifier: Apache-2.0
/* exe_dirs.c: opens a task's directories and gives them to its user. Runs in: executor, as root. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "executor/exe_start.h"
#include "proto/alloc_group.h"
#include "proto/container_ids.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* The task's own directory and those in it belong to its user. /tmp has its usual mode, for
 * children of the task that change their user. The task's own is last: when the user has it, the
 * others are the user's too, also if a start failed half way. */
static const struct own_dir {
	const char *name;
	mode_t mode;
} own_dirs[] = {
	{ "local", 0700 },
	{ "private", 0700 },
	{ "tmp", 01777 },
	{ ".", 0700 },
};

/* Finds the group that lets a raw_exec task's user enter the alloc's directory. A directory of an
 * older version is open to all. */
static int
find_group(struct exe *x)
{
	struct stat st;
	struct id id;

	memcpy(id.b, x->setup->alloc, sizeof id.b);
	if (fstatat(EXE_FD_ALLOC, x->setup->alloc_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return exe_failed(x, EXE_STEP_DIRS, errno, EXE_DIRS_NONE);
	if (is_alloc_group(&id, st.st_gid))
		x->alloc_gid = st.st_gid;
	else if (!(st.st_mode & S_IXOTH))
		return exe_failed(x, EXE_STEP_DIRS, EACCES, EXE_DIRS_CLOSED);
	return 0;
}

int
exe_dirs_open(struct exe *x)
{
	const struct exe_setup *s = x->setup;
	char path[sizeof s->alloc_name + sizeof s->keep.task + 1];

	(void)snprintf(path, sizeof path, "%s/%s", s->alloc_name, s->keep.task);
	x->task_dir = fd_open_beneath(EXE_FD_ALLOC, path, O_PATH | O_DIRECTORY, 0);
	if (x->task_dir < 0)
		return exe_failed(x, EXE_STEP_DIRS, -x->task_dir, EXE_DIRS_NONE);
	return s->driver == DRIVER_RAW_EXEC && s->user.uid != 0 ? find_group(x) : 0;
}

/* Files of all containers belong to one range of ids, which the mounts of each map to its own. */
static uid_t
owner_of(const struct exe *x)
{
	return x->container ? CONTAINER_ID_FILES : x->setup->user.uid;
}

static gid_t
group_of(const struct exe *x)
{
	return x->container ? CONTAINER_ID_FILES : x->setup->user.gid;
}

/* Children of such a task may change their user and still need its directory. */
static bool
may_change_user(const struct exe_setup *s)
{
	return s->driver == DRIVER_RAW_EXEC ? s->user.uid == 0 : (s->caps & CAP_BIT(SETUID)) != 0;
}

/* Works on a descriptor, so that a user who can change the task's directory cannot redirect it. In
 * an earlier run the user may have moved a directory of somebody else here, or removed ours. */
static int
give(struct exe *x, const struct own_dir *d, bool was_given)
{
	const uid_t uid = owner_of(x);
	const gid_t gid = group_of(x);
	cleanup_close int dir = openat(x->task_dir, d->name, DIR_FLAGS);
	mode_t mode = d->name[0] == '.' && may_change_user(x->setup) ? 0711 : d->mode;
	bool made = dir < 0 && errno == ENOENT && mkdirat(x->task_dir, d->name, 0700) == 0;
	struct stat st;

	if (made)
		dir = openat(x->task_dir, d->name, DIR_FLAGS);
	if (dir < 0 || fstat(dir, &st) < 0)
		return -errno;
	/* The user may also have replaced the directory that was just made. */
	if (was_given && st.st_uid != (made ? 0 : uid))
		return -EPERM;
	if ((st.st_uid != uid || st.st_gid != gid) && fchown(dir, uid, gid) < 0)
		return -errno;
	return (st.st_mode & 07777) != mode && fchmod(dir, mode) < 0 ? -errno : 0;
}

/* Gives artifacts, which file-helper leaves to the executors' user, to the task's, up to 256 levels
 * deep. Other tasks may change the shared directory meanwhile. Takes over dir_fd. */
static int
give_artifacts(const struct exe *x, int dir_fd, unsigned depth)
{
	cleanup_dir DIR *d = fdopendir(dir_fd);
	int r = d ? 0 : -errno;

	for (struct dirent *at; r == 0 && (at = readdir(d));) {
		cleanup_close int fd = openat(dir_fd, at->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		struct stat st;

		if (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0)
			continue;
		if (fd < 0 || fstat(fd, &st) < 0)
			r = -errno;
		else if (S_ISDIR(st.st_mode) && depth < 256)
			r = give_artifacts(x, openat(fd, ".", DIR_FLAGS), depth + 1);
		if (r == 0 && st.st_uid == x->setup->keep.executor_uid &&
		    fchownat(fd, "", owner_of(x), group_of(x), AT_EMPTY_PATH) < 0)
			r = -errno;
		r = r == -ENOENT ? 0 : r;
	}
	return r;
}

int
exe_dirs_give(struct exe *x)
{
	struct stat st;
	bool was_given;
	int r = 0;

	if (fstat(x->task_dir, &st) < 0)
		return exe_failed(x, EXE_STEP_DIRS, errno, EXE_DIRS_NONE);
	was_given = st.st_uid == owner_of(x) && st.st_uid != 0;
	if (x->setup->own_artifacts && !was_given)
		r = give_artifacts(x, openat(x->task_dir, ".", DIR_FLAGS), 0);
	if (r == 0 && x->setup->own_shared && !was_given)
		r = give_artifacts(x, openat(x->task_dir, "../alloc", DIR_FLAGS), 0);
	for (uint32_t i = 0; r == 0 && i < ELEMENTSOF(own_dirs); i++)
		r = give(x, &own_dirs[i], was_given);
	return r < 0 ? exe_failed(x, EXE_STEP_DIRS, -r, EXE_DIRS_NONE) : 0;
}
