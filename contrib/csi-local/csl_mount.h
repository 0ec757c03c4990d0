/* SPDX-License-Identifier: Apache-2.0 */
/* csl_mount.h: bind mounts of volume directories. Runs in: drover-csi-local, with CAP_SYS_ADMIN. */
#ifndef DROVER_CSL_MOUNT_H
#define DROVER_CSL_MOUNT_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* Every volume is mounted with these; what a request adds is or-ed. */
#define CSL_MOUNT_ATTRS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/*
 * Is the directory dir_fd mounted at target? 1 yes; 0 target is no mount point or does not exist;
 * -EBUSY something else is mounted there; -errno.
 */
int csl_mount_state(int dir_fd, const char *target, struct err *e);

/*
 * Mounts the directory source_fd on the directory target with attrs (MOUNT_ATTR_…): it appears
 * there read-only from the first moment on, or not at all. Links are not followed in target's last
 * component.
 */
int csl_mount_bind(int source_fd, const char *target, uint64_t attrs, struct err *e);

/* Unmounts dir_fd's directory from target, however often it is there; nothing there is success.
 * -EBUSY while in use. */
int csl_mount_undo(int dir_fd, const char *target, struct err *e);

/* Adds what the mount(8) word flag means to *attrs. -EINVAL for a word that is not known here. */
int csl_mount_flag(const char *flag, uint64_t *attrs);

#endif
