// SPDX-License-Identifier: Apache-2.0
/* exe_secrets.c: the task's secrets, a small tmpfs of its own, and the files that come with a start
 * or later. Runs in: executor, as root; the files are written by its child, as the task's user. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/id.h"
#include "executor/exe.h"
#include "proto/task_spec.h"

#define INODES_PER_MIB 1024

/* A directory that the task made under a name that is needed is renamed to a random name. */
static void
put_aside(int dir, const char *name)
{
	char aside[ID_HEX_SIZE];
	struct id id = id_random();

	id_to_hex(&id, aside);
	(void)renameat(dir, name, dir, aside);
}

/* Whoever reads the file meanwhile sees the old contents or the new ones. What the task planted
 * under the name is replaced, never written through. */
static int
write_file(int dir, const char *name, const char *data, size_t len)
{
	cleanup_close int fd = -1;
	char fresh[ID_HEX_SIZE];
	struct id id = id_random();
	int r;

	id_to_hex(&id, fresh);
	fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = fd_write_full(fd, data, len);
	if (r == 0 && renameat(dir, fresh, dir, name) < 0) {
		put_aside(dir, name);
		r = renameat(dir, fresh, dir, name) < 0 ? -errno : 0;
	}
	if (r < 0)
		(void)unlinkat(dir, fresh, 0);
	return r;
}

/* Opens `local`, or the directory below it that *name goes through, made where it is missing; *name
 * becomes its last part. No link is followed: the file would not be where it is promised. */
static int
open_local(const char **name)
{
	int dir = open("local", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const char *slash;

	while (dir >= 0 && (slash = strchr(*name, '/'))) {
		cleanup_close int up = dir;
		char part[NAME_PATH_MAX + 1] = "";

		memcpy(part, *name, (size_t)(slash - *name));
		*name = slash + 1;
		(void)mkdirat(up, part, 0755);
		dir = openat(up, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	return dir < 0 ? -errno : dir;
}

int
exe_secrets_write(struct exe *x)
{
	struct spec_entry entry;
	const char *name = NULL;
	size_t at = 0;
	int r = 0;

	while (r == 0 && spec_next(x->spec.map, x->spec.size, &at, &entry) == 1) {
		const char *in_local = name ? spec_local_name(name) : NULL;
		cleanup_close int dir = -1;

		if (entry.tag == SPEC_SECRET_NAME)
			name = entry.text;
		if (entry.tag != SPEC_SECRET_DATA)
			continue;
		/* `secrets` is a link where an older version made it, which only root can have. */
		dir = in_local ? open_local(&in_local)
			       : open("secrets", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = dir < 0 ? -errno : write_file(dir, in_local ?: name, entry.text, entry.len);
	}
	return r;
}

/* Bounded in bytes and files, so that a task fills its own secrets and nobody else's. What it
 * writes there is charged to its own memory limit. */
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

/*
 * In the host's mount namespace, where raw_exec tasks are. Until the alloc is removed: a task that
 * is started again finds it.
 */
static int
mount_in_host(struct exe *x)
{
	const struct exe_user *user = &x->setup->user;
	cleanup_close int dir = open_secrets(x);
	struct statx stx;

	/* A link to where an older version kept them. */
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
