/* SPDX-License-Identifier: Apache-2.0 */
/* csl_mount.h: bind mounts of volumes. Runs in: drover-csi-local, with CAP_SYS_ADMIN. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_MOUNT_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_MOUNT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

/* Attributes of every mount; those of the request are added. A device must work as one. */
#define CSL_MOUNT_ATTRS  (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define CSL_DEVICE_ATTRS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)

/* The source of a mount: a volume's directory or, if device is not 0, the node of a loop device. */
struct csl_source {
	int fd; /* opened with O_PATH; not needed for csl_mount_state() of a device */
	dev_t device;
};

/* Checks whether the source is mounted at target. Returns 1 if it is, 0 if target is not a mount
 * point or does not exist, -EBUSY if something else is mounted there, or -errno. */
int csl_mount_state(const struct csl_source *s, const char *target, struct err *e);

/* Mounts the source on target, a directory or for a device a file, with attrs (MOUNT_ATTR_…). The
 * attributes, such as read-only, hold from the first moment. A link as target's last component is
 * not followed. */
int csl_mount_bind(const struct csl_source *s, const char *target, uint64_t attrs, struct err *e);

/* Unmounts the source from target, as often as it is mounted there; succeeds if it is not mounted.
 * -EBUSY while in use. */
int csl_mount_undo(const struct csl_source *s, const char *target, struct err *e);

/* Adds the attribute of the mount(8) option flag to *attrs. -EINVAL for an unknown option. */
int csl_mount_flag(const char *flag, uint64_t *attrs);

#endif
