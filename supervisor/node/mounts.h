/* SPDX-License-Identifier: Apache-2.0 */
/* mounts.h: what is mounted below the data directory. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_MOUNTS_H
#define DROVER_SUPERVISOR_NODE_MOUNTS_H

#include <stdbool.h>

#include "common/err.h"
#include "common/id.h"

struct sup;

/*
 * *ret: the paths of all mounts below the data directory, relative to it, each with its NUL, one
 * behind the other, with an empty one at the end. Valid until the next call. 0 or -errno.
 */
int mounts_list(const struct sup *sup, const char **ret);

/* Is something mounted on path, relative to the data directory? 1, 0 or -errno. */
int mounts_has(const struct sup *sup, const char *path);

/* Is path, relative to the data directory, where a raw_exec task's secrets are mounted? Then
 * ret_alloc is the text of its alloc's id. */
bool mount_is_secrets(const char *path, char ret_alloc[ID_UUID_SIZE]);

/*
 * May the directories of the alloc be removed? 0; -EBUSY with *e when something is mounted in them
 * that mount-helper does not unmount: a volume that is still published, or what somebody else
 * mounted there. -errno with *e when mountinfo cannot be read.
 */
int mounts_refuse(const struct sup *sup, const struct id *alloc, struct err *e);

#endif
