// SPDX-License-Identifier: Apache-2.0
/* exe_secrets.c: mounts the task's secrets, a small tmpfs. Runs in: executor, as root. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "executor/exe_start.h"
#include "executor/exe_tree.h"

#define INODES_PER_MIB 1024

/* Limited in bytes and files, so that a task can only fill its own secrets. Its data is charged to
 * the task's memory limit. */
static int
mount_on(struct exe *x, int dir, const char *path)
{
	const struct exe_setup *s = x->setup;
	char size[16], inodes[24], uid[16], gid[16];
	const char *const options[] = { "mode", "0700", "size", size, "nr_inodes", inodes, "uid",
		uid, "gid", gid, "noswap", NULL, NULL };

	(void)snprintf(size, sizeof size, "%um", s->secrets_mb);
	(void)snprintf(
	    inodes, sizeof inodes, "%llu", (unsigned long long)s->secrets_mb * INODES_PER_MIB);
	(void)snprintf(uid, sizeof uid, "%u", s->user.uid);
	(void)snprintf(gid, sizeof gid, "%u", s->user.gid);
	return exe_fs_attach(
	    "tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, dir, path);
}

static int
open_secrets(struct exe *x)
{
	int dir = openat(x->task_dir, "secrets", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return dir < 0 ? -errno : dir;
}

/* Mounts in the host's namespace, for raw_exec tasks. The mount stays until the task has ended for
 * good, so a restarted task finds it. */
static int
mount_in_host(struct exe *x)
{
	const struct exe_user *user = &x->setup->user;
	cleanup_close int dir = open_secrets(x);
	struct statx stx;

	/* A link of an older version to its secrets. */
	if (dir == -ENOTDIR && unlinkat(x->task_dir, "secrets", 0) < 0)
		return -errno;
	if ((dir == -ENOTDIR || dir == -ENOENT) && mkdirat(x->task_dir, "secrets", 0700) == 0)
		dir = open_secrets(x);
	if (dir < 0)
		return dir;
	if (statx(dir, "", AT_EMPTY_PATH, 0, &stx) < 0)
		return -errno;
	if (!(stx.stx_attributes & STATX_ATTR_MOUNT_ROOT))
		return mount_on(x, dir, "");
	return fchown(dir, user->uid, user->gid) < 0 || fchmod(dir, 0700) < 0 ? -errno : 0;
}

int
exe_secrets_mount(struct exe *x)
{
	int r =
	    x->setup->driver == DRIVER_EXEC ? mount_on(x, AT_FDCWD, "/secrets") : mount_in_host(x);

	return r < 0 ? exe_failed(x, EXE_STEP_SECRETS, -r, 0) : 0;
}
