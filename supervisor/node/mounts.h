/* SPDX-License-Identifier: Apache-2.0 */
/* mounts.h: the mounts below the data directory. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_MOUNTS_H
#define DROVER_SUPERVISOR_NODE_MOUNTS_H

#include <stdbool.h>

#include "common/err.h"
#include "common/id.h"

struct sup;

void mounts_new(struct sup *sup);
void mounts_free(struct sup *sup);

/*
 * Sets *ret to the paths of all mounts below the data directory, relative to it: strings one after
 * the other, each with its NUL, then an empty one. Valid until the next call. Returns 0 or -errno.
 */
int mounts_list(const struct sup *sup, const char **ret);

/* Returns 1 if something is mounted on path, relative to the data directory; 0; or -errno. */
int mounts_has(const struct sup *sup, const char *path);

/* Returns 1 if a mount on path shows the directory dir; 0; or -errno. Both are relative to the data
 * directory, and have no character that mountinfo escapes. Reads all of mountinfo. */
int mounts_shows(const char *path, const char *dir);

/* Returns true if path, relative to the data directory, is the secrets directory of a task, where
 * the secrets of raw_exec tasks are mounted. Then *ret_alloc is the id of its alloc, and *ret_task
 * the task's name, of *ret_len bytes, in path. */
bool mount_is_secrets(
    const char *path, struct id *ret_alloc, const char **ret_task, size_t *ret_len);

/*
 * Refuses to remove the directories of the alloc if something is mounted in them that mount-helper
 * does not unmount: a volume that is still published, or a mount of somebody else. Returns 0;
 * -EBUSY; or -errno if mountinfo cannot be read; with *e.
 */
int mounts_refuse(const struct sup *sup, const struct id *alloc, struct err *e);

#endif
