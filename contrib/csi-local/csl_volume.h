/* SPDX-License-Identifier: Apache-2.0 */
/* csl_volume.h: a volume, its use and its condition, for several methods. Runs in:
 * drover-csi-local. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_VOLUME_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_VOLUME_H

#include "contrib/csi-local/csl.h"

/* Reads the volume of a request. Returns 0, INVALID_ARGUMENT if id is empty, NOT_FOUND if it does
 * not exist, INTERNAL if it cannot be read. */
int csl_volume_get(struct csl_op *op, const char *id, CslVolume **ret);
/* The volume as answers describe it. */
Csi__V1__Volume *csl_volume_answer(struct csl_op *op, const CslVolume *v);
/* The nodes that have the volume: where it is attached, or without -attach where it is mounted.
 * Returns their number. */
size_t csl_volume_nodes(struct csl_op *op, const CslVolume *v, char ***ret);
/* Returns a mount of the volume on any node, with the node's name, or NULL. */
const CslMount *csl_volume_mounted(struct csl_op *op, const char *id, const char **ret_node);
Csi__V1__VolumeCondition *csl_volume_condition(struct csl_op *op, const CslVolume *v);
/* The sum of the capacities of all volumes. */
int64_t csl_volumes_size(struct csl_op *op);

/* csl_snapshot.c: makes and saves a snapshot; group is "" or a group's id. Holds the volume.
 * Returns 0 or a status. */
int csl_snapshot_make(struct csl_op *op, const char *volume_id, const char *name, const char *group,
    int64_t created_ns, CslSnapshot **ret);
Csi__V1__Snapshot *csl_snapshot_answer(struct csl_op *op, const CslSnapshot *s);

#endif
