// SPDX-License-Identifier: Apache-2.0
/* mnt_release.c: releases mounts and quota of tasks and allocs that have ended. Runs in:
 * mount-helper, as root. Asked by: supervisor. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/path.h"
#include "mount-helper/mnt.h"

/* No task can create entries in this directory, so no link can lead elsewhere. */
static int
unmount_one(int alloc_fd, const char *task)
{
	cleanup_close int fd = fd_open_same_mount(alloc_fd, task, O_PATH | O_DIRECTORY);
	char path[64];

	if (fd < 0)
		return fd == -ENOTDIR || fd == -ELOOP || fd == -EXDEV ? 0 : fd;
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d/secrets", fd);
	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
		return -errno;
	return 0;
}

int
mnt_secrets_unmount(const struct mnt *m, const char *alloc, const char *only, struct err *e)
{
	cleanup_dir DIR *d = NULL;
	const char *task;
	int r = dir_open_at(m->root_fds[MNT_PLACE_ALLOC], alloc, &d);

	if (r == -ENOENT)
		return 0;
	while (r >= 0 && (task = dir_next(d)))
		if (!*only || strcmp(task, only) == 0)
			r = unmount_one(dirfd(d), task);
	return r < 0 ? err_set(e, r, "unmount the secrets of alloc %s", alloc) : 0;
}

int
mnt_on_alloc_release(struct mnt *m, const struct mnt_alloc_release_req *req,
    struct mnt_alloc_release_rep *rep, int *ret_fd, struct err *e)
{
	char alloc[ID_UUID_SIZE];
	int r = id_alloc_read(&req->alloc, alloc, e);

	if (r < 0 || (r = mnt_secrets_unmount(m, alloc, req->task, e)) < 0)
		return r;
	if (!req->task[0])
		mnt_quota_drop(m, alloc);
	CRASH_POINT(MNT_AFTER_RELEASE);
	return 0;
}
