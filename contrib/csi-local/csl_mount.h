/* SPDX-License-Identifier: Apache-2.0 */
/* csl_mount.h: bind mounts of volume directories. Runs in: drover-csi-local, with CAP_SYS_ADMIN. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_MOUNT_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_MOUNT_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* Attributes of every mount; those of the request are added. */
#define CSL_MOUNT_ATTRS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* Checks whether the directory dir_fd is mounted at target. Returns 1 if it is, 0 if target is not
 * a mount point or does not exist, -EBUSY if something else is mounted there, or -errno. */
int csl_mount_state(int dir_fd, const char *target, struct err *e);

/* Mounts the directory source_fd on the directory target with attrs (MOUNT_ATTR_…). The attributes,
 * such as read-only, hold from the first moment. A link as target's last component is not followed.
 */
int csl_mount_bind(int source_fd, const char *target, uint64_t attrs, struct err *e);

/* Unmounts the directory dir_fd from target, as often as it is mounted there; succeeds if it is not
 * mounted. -EBUSY while in use. */
int csl_mount_undo(int dir_fd, const char *target, struct err *e);

/* Adds the attribute of the mount(8) option flag to *attrs. -EINVAL for an unknown option. */
int csl_mount_flag(const char *flag, uint64_t *attrs);

#endif
