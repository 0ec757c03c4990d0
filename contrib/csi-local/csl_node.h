/* SPDX-License-Identifier: Apache-2.0 */
/* csl_node.h: a volume on this node, for the methods of the Node service. Runs in:
 * drover-csi-local. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_NODE_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_NODE_H

#include "contrib/csi-local/csl.h"
#include "contrib/csi-local/csl_mount.h"

/* A volume while a call of this node works on it: no other node does. */
struct csl_local {
	CslVolume *volume;
	CslNodeVolume *mounts; /* of this node */
	int data_fd, lock_fd;
};

/* Holds and opens a volume. Returns 0 or a status; csl_local_done() is due in both cases. */
int csl_local_open(struct csl_op *op, const char *volume_id, struct csl_local *ret);
void csl_local_done(struct csl_local *l);
#define cleanup_local __attribute__((cleanup(csl_local_done)))
#define CSL_LOCAL_NONE                                                                             \
	{                                                                                          \
		.data_fd = -1, .lock_fd = -1                                                       \
	}

int csl_check_path(struct csl_op *op, const char *path, const char *what);

/* csl_access.c: whether this node may have the volume in this way, beside others that have it. For
 * staging, target is NULL. Returns 0 or a status. */
int csl_access_check(struct csl_op *op, const struct csl_local *l,
    const Csi__V1__VolumeCapability *cap, const char *target, bool readonly);
/* Whether the volume is attached to this node, with this publish context; true without -attach. */
int csl_attachment_check(
    struct csl_op *op, const CslVolume *v, Csi__V1__StringEntry *const *at, size_t n, bool writes);

#endif
