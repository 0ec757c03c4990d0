/* SPDX-License-Identifier: Apache-2.0 */
/* exe_tree.h: detached mounts. Runs in: executor, as root, and the child of a container. */
#ifndef DROVER_EXECUTOR_EXE_TREE_H
#define DROVER_EXECUTOR_EXE_TREE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mount.h>

#define TREE_FLAGS (OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH)
#define PLAIN      (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* Sets attributes of a detached mount, and makes it private. ids: the user namespace by which its
 * ids are mapped, which only root of the machine may do; -1: none. Returns 0 or -errno. */
int exe_tree_set(int tree, uint64_t flags, bool recursive, int ids);
/* Clones the single mount that fd is in, rooted at fd. Returns a descriptor that the caller closes,
 * or -errno. */
int exe_tree_clone(int fd, uint64_t flags, int ids);
/* Clones the mount of a directory below root, to which no link may lead. */
int exe_tree_clone_below(int root, const char *path, uint64_t flags, int ids);
/* Attaches a detached mount at a path below `at`; with an empty path at `at` itself. Returns 0 or
 * -errno. */
int exe_tree_attach(int tree, int at, const char *path);
/* Makes a new file system for the task, detached; options as for exe_fs_attach(). Returns a
 * descriptor that the caller closes, or -errno. */
int exe_fs_new(const char *type, const char *const *options, unsigned flags);
/* Makes a file system for the task and attaches it at dir and path; with an empty path at dir
 * itself. options: name, value, …, NULL; an option with value NULL is a flag that an older kernel
 * may not know. Returns 0 or -errno. */
int exe_fs_attach(
    const char *type, const char *const *options, unsigned flags, int dir, const char *path);

#endif
