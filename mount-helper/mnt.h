/* SPDX-License-Identifier: Apache-2.0 */
/* mnt.h: types and functions that the mount-helper's files share. Runs in: mount-helper, as root.
 */
#ifndef DROVER_MOUNT_HELPER_MNT_H
#define DROVER_MOUNT_HELPER_MNT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/csi_place.h"
#include "common/err.h"
#include "common/id.h"
#include "common/proc.h"
#include "common/worker.h"
#include "proto/agent_config.h"
#include "proto/ipc_records.h"

enum mnt_place { MNT_PLACE_ALLOC, MNT_PLACE_CSI, MNT_PLACE_SOCK, MNT_PLACES };

struct mnt {
	const struct proc_args *args;
	const struct agent_policy *policy;
	int root_fds[MNT_PLACES]; /* indexed by enum mnt_place; directories that no task can change
				   */
	struct workers workers;
};

extern const struct proc_spec mnt_spec;

/* mnt_roots.c: opens the roots, before the drop. */
int mnt_roots_open(void *state, const struct proc_args *args, struct err *e);

/* The handlers, see proc_handle_fn. */
#define MNT_CALL(NAME, call, ...)                                                                  \
	int mnt_on_##call(struct mnt *m, const struct mnt_##call##_req *req,                       \
	    struct mnt_##call##_rep *rep, int *ret_fd, struct err *e);
#include "proto/ipc_msgs.def"

/* mnt_release.c: unmounts the secrets of an alloc's raw_exec tasks; only: of this task, unless it
 * is empty. Returns 0 or -errno. */
int mnt_secrets_unmount(const struct mnt *m, const char *alloc, const char *only, struct err *e);

/* mnt_quota.c: removes the limit of an alloc that is being removed; its project id becomes free
 * with the directory. */
void mnt_quota_drop(const struct mnt *m, const char *alloc);

/* mnt_plugin.c: opens the root of a plugin by its path below csi/, O_PATH. Returns 1 if it is a
 * mount point, 0 if not (after a reboot, until the plugin is started again), -ENOENT, or -EBUSY if
 * another file system is mounted on it. */
int mnt_plugin_root_open(const struct mnt *m, const char *root, int *ret_fd, struct err *e);

#endif
