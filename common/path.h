/* SPDX-License-Identifier: Apache-2.0 */
/* path.h: makes, checks and removes directories by descriptor. Runs in: launcher, mount-helper,
 * file-helper, exec-helper, the container's child. */
#ifndef DROVER_COMMON_PATH_H
#define DROVER_COMMON_PATH_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

#include "common/err.h"

/*
 * Makes directory name below dir_fd with exactly this mode (whatever the umask) and owner. If name
 * exists, it must be a directory and no link; its owner and mode are not changed. Returns 1 if it
 * was made, 0 if it existed, or -errno (-EEXIST: something else has the name; -ELOOP: a link).
 * *ret_fd (may be NULL) is an O_DIRECTORY|O_RDONLY descriptor for the caller to close. A failure
 * leaves nothing behind.
 */
int dir_make_at(int dir_fd, const char *name, mode_t mode, uid_t uid, gid_t gid, int *ret_fd);
/* As dir_make_at(), but also sets owner and mode of an existing directory. For directories that
 * only root can reach. */
int dir_ensure_at(int dir_fd, const char *name, mode_t mode, uid_t uid, gid_t gid, int *ret_fd);

/*
 * Removes name below dir_fd and everything in it. It follows no links and enters no other mount:
 * for a mount point below, also a bind mount of the same file system, it returns -EBUSY and leaves
 * it. Returns 0, also if name does not exist, or -errno. The time is proportional to the number of
 * entries at any depth. After a failure, directories that remain may have been moved.
 */
int tree_remove_at(int dir_fd, const char *name);

/*
 * Opens path with O_PATH if only root can change what it leads to: each directory and link on the
 * way, and the file itself, must belong to root and not be writable by others. A directory on the
 * way that others can write must be sticky, as /tmp is, and then the next component must not be a
 * link. If make (a mode) is not 0 and the last component does not exist, it is made as a directory.
 * Returns a descriptor that the caller closes, or -errno; -EPERM with *e naming the component that
 * others can change.
 */
int path_open_owned(const char *path, mode_t make, struct err *e);
/*
 * As path_open_owned(), but path must be a directory, and that directory itself may belong to
 * anybody. The file systems on the way are not asked for attributes that the kernel does not have
 * cached, so one that does not answer does not block the caller. *ret_private: only root can enter
 * one of the directories above it.
 */
int path_open_place(const char *path, bool *ret_private, struct err *e);

/*
 * Opens path below dir, which is taken over, one component after the other. open_part() opens a
 * component, or makes it, and decides what may be on the way: it gets each one, also "..". Returns
 * a descriptor that the caller closes, or -errno; a negative dir is returned as it is.
 */
int path_walk(int dir, const char *path, int (*open_part)(int dir, const char *name));

/*
 * Opens directory path below dir_fd for reading. Returns 0 and sets *ret, which the caller closes
 * with closedir(), or returns -errno: -ELOOP for a link, -EXDEV for a mount point (the mounted file
 * system is not accessed). dir_next() returns the next name other than "." and "..", or NULL: with
 * errno 0 at the end.
 */
int dir_open_at(int dir_fd, const char *path, DIR **ret);
const char *dir_next(DIR *d);

#endif
