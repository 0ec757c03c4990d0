// SPDX-License-Identifier: Apache-2.0
/* csl_mount.c: bind mounts of volumes. Runs in: drover-csi-local, with CAP_SYS_ADMIN. */
#include "contrib/csi-local/csl_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "common/cleanup.h"

/* The plugin never makes more than this many mounts of one volume on one target. */
#define STACK_MAX 16

int
csl_mount_state(const struct csl_source *s, const char *target, struct err *e)
{
	const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
	struct statx at, dir;
	bool same;

	if (statx(AT_FDCWD, target, flags, STATX_TYPE | STATX_INO, &at) < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "check %s", target);
	if (!(at.stx_attributes & STATX_ATTR_MOUNT_ROOT))
		return 0;
	if (s->device) {
		same = S_ISBLK(at.stx_mode) &&
		       makedev(at.stx_rdev_major, at.stx_rdev_minor) == s->device;
	} else {
		if (statx(s->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &dir) < 0)
			return err_set(e, -errno, "check the volume's directory");
		same = at.stx_dev_major == dir.stx_dev_major &&
		       at.stx_dev_minor == dir.stx_dev_minor && at.stx_ino == dir.stx_ino;
	}
	return same ? 1 : err_say(e, -EBUSY, "something else is mounted on %s", target);
}

int
csl_mount_bind(const struct csl_source *s, const char *target, uint64_t attrs, struct err *e)
{
	struct mount_attr attr = {
		.attr_set = attrs,
		.attr_clr = (attrs & MOUNT_ATTR__ATIME ? MOUNT_ATTR__ATIME : 0) |
			    (s->device ? MOUNT_ATTR_NODEV : 0),
		.propagation = MS_PRIVATE,
	};
	cleanup_close int tree = -1, at = -1;

	at = open(target, O_PATH | (s->device ? 0 : O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC);
	if (at < 0)
		return err_set(e, -errno, "open %s", target);
	tree = open_tree(s->fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (tree < 0)
		return err_set(e, -errno, "clone the volume's mount for %s", target);
	if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
		return err_set(e, -errno, "set the flags of the mount for %s", target);
	if (move_mount(tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_set(e, -errno, "mount on %s", target);
	return 0;
}

int
csl_mount_undo(const struct csl_source *s, const char *target, struct err *e)
{
	int r = 0;

	for (int i = 0; i < STACK_MAX; i++) {
		r = csl_mount_state(s, target, e);
		if (r <= 0)
			return r;
		if (umount2(target, UMOUNT_NOFOLLOW) < 0)
			return err_set(e, -errno, "unmount %s", target);
	}
	return err_say(
	    e, -EBUSY, "unmount %s: it is mounted there more than %d times", target, STACK_MAX);
}

int
csl_mount_flag(const char *flag, uint64_t *attrs)
{
	static const struct {
		const char *word;
		uint64_t attr;
	} known[] = {
		{ "rw", 0 },
		{ "nosuid", MOUNT_ATTR_NOSUID },
		{ "nodev", MOUNT_ATTR_NODEV },
		{ "ro", MOUNT_ATTR_RDONLY },
		{ "noexec", MOUNT_ATTR_NOEXEC },
		{ "noatime", MOUNT_ATTR_NOATIME },
		{ "nodiratime", MOUNT_ATTR_NODIRATIME },
	};

	for (size_t i = 0; i < ELEMENTSOF(known); i++)
		if (strcmp(known[i].word, flag) == 0) {
			*attrs |= known[i].attr;
			return 0;
		}
	return -EINVAL;
}
