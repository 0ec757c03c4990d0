// SPDX-License-Identifier: Apache-2.0
/* exe_tree.c: detached mounts: clones of what a descriptor refers to, and new file systems. Runs
 * in: executor, as root, and the child of a container. */
#include "executor/exe_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "executor/exe_start.h"

int
exe_tree_set(int tree, uint64_t flags, bool recursive, int ids)
{
	struct mount_attr attr = { .attr_set = flags | (ids < 0 ? 0 : MOUNT_ATTR_IDMAP),
		.propagation = MS_PRIVATE,
		.userns_fd = ids < 0 ? 0 : (uint64_t)ids };
	unsigned at = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0);

	return mount_setattr(tree, "", at, &attr, sizeof attr) < 0 ? -errno : 0;
}

int
exe_tree_clone(int fd, uint64_t flags, int ids)
{
	cleanup_close int tree = open_tree(fd, "", TREE_FLAGS);
	int r = tree < 0 ? -errno : exe_tree_set(tree, flags, false, ids);

	return r < 0 ? r : steal_fd(&tree);
}

int
exe_tree_clone_below(int root, const char *path, uint64_t flags, int ids)
{
	cleanup_close int fd = fd_open_beneath(root, path, O_PATH | O_DIRECTORY, 0);

	return fd < 0 ? fd : exe_tree_clone(fd, flags, ids);
}

int
exe_tree_attach(int tree, int at, const char *path)
{
	return move_mount(tree, "", at, path,
		   MOVE_MOUNT_F_EMPTY_PATH | (*path ? 0 : MOVE_MOUNT_T_EMPTY_PATH)) < 0
		   ? -errno
		   : 0;
}

int
exe_fs_new(const char *type, const char *const *options, unsigned flags)
{
	cleanup_close int fs = fsopen(type, FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0)
		return -errno;
	for (; *options; options += 2)
		if (!options[1])
			(void)fsconfig(fs, FSCONFIG_SET_FLAG, options[0], NULL, 0);
		else if (fsconfig(fs, FSCONFIG_SET_STRING, options[0], options[1], 0) < 0)
			return -errno;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, flags);
	return fd < 0 ? -errno : fd;
}

int
exe_fs_attach(
    const char *type, const char *const *options, unsigned flags, int dir, const char *path)
{
	cleanup_close int fd = exe_fs_new(type, options, flags);

	return fd < 0 ? fd : exe_tree_attach(fd, dir, path);
}
