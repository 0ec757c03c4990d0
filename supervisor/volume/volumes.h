/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volumes.h: volumes on this node: created, staged, published, proven, and taken away again (semantics.md 6.7, DESIGN 5, 8).
 * A row of table mount is durable before each CSI call. Calls of one volume go one after the other. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUMES_H
#define DROVER_SUPERVISOR_VOLUMES_H

#include "common/id.h"
#include "model/job.h"
#include "model/volume.h"
#include "proto/ids.pb-c.h"
#include "supervisor/alloc/alloc_table.h"
#include "supervisor/sup.h"

int volumes_new(struct sup *sup, struct err *e); /* reads the rows */
void volumes_free(struct sup *sup);

typedef void volume_cb(struct sup *sup, void *arg, int r, const struct err *e);

/* One mount of one request of one alloc. Lives while its row does. */
struct volume_mount_state {
	char *alias;
	VolumePlace place; /* its strings belong to this */
	MountProof proof;
	bool published, read_only;
};

/* Stage (where the plugin needs it), publish, prove. Idempotent: what is mounted and proven is used. */
void volume_mount(struct sup *sup, struct sup_alloc *sa, const struct volume_request *request,
    const struct csi_volume *volume, volume_cb *cb, void *arg);
/* Unpublish, remove the directories, unstage after the last user. Ignorable errors are swallowed (6.6). */
void volume_unmount(struct sup *sup, struct sup_alloc *sa, const struct volume_request *request, volume_cb *cb, void *arg);
/* NULL: nothing is published for it. */
const struct volume_mount_state *volume_find(struct sup *sup, const struct sup_alloc *sa, const char *alias);
/* Does any row of this alloc, or of this volume, exist? */
bool volume_alloc_has_mounts(struct sup *sup, const struct sup_alloc *sa);

/* Through the controller half: fills external_id, capacity, context, topologies of *vol, which must live until the callback. */
void volume_create(struct sup *sup, struct csi_volume *vol, volume_cb *cb, void *arg);
void volume_delete(struct sup *sup, const struct csi_volume *vol, volume_cb *cb, void *arg);

/* For leaks: is this path below <data>/csi one that a row explains? */
bool volume_place_is_known(struct sup *sup, const char *path);

#endif
