/* SPDX-License-Identifier: Apache-2.0 */
/* path.h: directories by descriptor: made, checked, removed. Runs in: launcher, mount-helper,
 * exec-helper. */
#ifndef DROVER_COMMON_PATH_H
#define DROVER_COMMON_PATH_H

#include <dirent.h>
#include <sys/types.h>

#include "common/err.h"

/*
 * Makes directory name below dir_fd with exactly this mode (whatever the umask) and owner, or
 * checks the one that is there: a directory, no link. Owner and mode of one that was there are not
 * changed. Returns 1 made, 0 was there, -errno
 * (-EEXIST: something else has the name; -ELOOP: a link). *ret_fd (may be NULL) is an
 * O_DIRECTORY|O_RDONLY descriptor for the caller to close. Nothing stays behind on failure.
 */
int dir_make_at(int dir_fd, const char *name, mode_t mode, uid_t uid, gid_t gid, int *ret_fd);
/* The same, and one that was there gets this owner and mode too. For directories that only root can
 * reach. */
int dir_ensure_at(int dir_fd, const char *name, mode_t mode, uid_t uid, gid_t gid, int *ret_fd);

/*
 * Removes name below dir_fd and everything in it, never following a link and never crossing into
 * another mount: a mount point below, also a bind of the same file system, gives -EBUSY and stays.
 * A name that is not there is success. Any depth costs time in proportion to its entries; after a
 * failure what is left may have lost its shape.
 */
int tree_remove_at(int dir_fd, const char *name);

/*
 * Opens path, O_PATH, if only root can change what it leads to: each directory and link on the way
 * and what it ends at belongs to root, and nobody else can write it. A directory on the way in
 * which others can make names must be sticky, as /tmp is, and the next component must not be a
 * link. With make (a mode, 0: do not) a last component that is missing is made as a directory. The
 * caller closes the descriptor. -EPERM with *e naming the component that others can change, or
 * another -errno.
 */
int path_open_owned(const char *path, mode_t make, struct err *e);
/*
 * As path_open_owned(), but path has to be a directory, which may belong to anybody: what it leads
 * to is root's to say, what is in it is not. Nothing is asked of the file systems on the way beyond
 * what the kernel knows of them, so one that does not answer keeps nobody.
 */
int path_open_place(const char *path, struct err *e);

/*
 * The directory path below dir_fd, to be read: 0, *ret is the caller's to closedir(). -ELOOP for a
 * link, -EXDEV for a mount point (nothing that is mounted there is asked), or another -errno.
 * dir_next() gives its next name but "." and "..", or NULL, with errno 0 at the end.
 */
int dir_open_at(int dir_fd, const char *path, DIR **ret);
const char *dir_next(DIR *d);

#endif
