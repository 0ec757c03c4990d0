/* SPDX-License-Identifier: Apache-2.0 */
/* csl_store.h: stores the volumes as files; changes are durable before each answer. Runs in:
 * drover-csi-local. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_STORE_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "proto/csi_local.pb-c.h"

/*
 * Below the root, all 0700:
 *   lock           held while a plugin runs
 *   meta/<id>      a CslVolume: the volume exists as long as this file
 *   volumes/<id>/  its data, 0777, reached only through its mounts
 *   trash/<id>/    data of deleted volumes, removed in the background
 */
struct csl_store;

/*
 * Makes what is missing below root (its parent must exist), takes the lock (waits up to 10 s for a
 * predecessor), reads all volumes and starts the thread that empties the trash. -EBUSY if another
 * plugin runs there.
 */
int csl_store_open(const char *root, struct csl_store **ret, struct err *e);

/* Returns NULL if the volume does not exist. The store owns the record, which is valid until the
 * volume is deleted. */
CslVolume *csl_store_by_id(struct csl_store *s, const char *id);
CslVolume *csl_store_by_name(struct csl_store *s, const char *name);
/* Returns the first volume whose id is not below id, in the order of ids. NULL at the end. */
CslVolume *csl_store_from_id(struct csl_store *s, const char *id);
CslVolume *csl_store_after(struct csl_store *s, const CslVolume *v);

int csl_store_create(
    struct csl_store *s, const char *name, int64_t capacity, CslVolume **ret, struct err *e);
/* Deletes v, which becomes invalid. The caller has checked that it is not in use. */
int csl_store_delete(struct csl_store *s, CslVolume *v, struct err *e);
int csl_store_resize(struct csl_store *s, CslVolume *v, int64_t capacity, struct err *e);
/* Opens the directory of v's data with O_PATH; the caller closes it. Returns -errno on failure. */
int csl_store_dir(struct csl_store *s, const CslVolume *v, struct err *e);

/* Returns the recorded mount of v on target in this boot, or NULL. */
const CslMount *csl_store_mount(const CslVolume *v, const char *target);
/* Record a mount before it is made, and remove the record after the unmount. Both are durable. */
int csl_store_mount_add(struct csl_store *s, CslVolume *v, const char *target, bool staging,
    uint64_t attrs, struct err *e);
int csl_store_mount_drop(struct csl_store *s, CslVolume *v, const char *target, struct err *e);

#endif
