/* SPDX-License-Identifier: Apache-2.0 */
/* csl_store.h: the volumes as files, durable before each answer. Runs in: drover-csi-local. */
#ifndef DROVER_CSL_STORE_H
#define DROVER_CSL_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "proto/csi_local.pb-c.h"

/*
 * Below the root, all 0700:  lock            held while a plugin runs
 *                            meta/<id>       a CslVolume; the volume exists exactly while this file
 * does volumes/<id>/   its data, 0777, reached only through its mounts trash/<id>/     data of
 * deleted volumes, removed in the background
 */
struct csl_store;

/*
 * Makes what is missing below root (its parent must exist), takes the lock (waits up to 10 s for a
 * predecessor), reads all volumes and starts the thread that empties the trash. -EBUSY if another
 * plugin runs there.
 */
int csl_store_open(const char *root, struct csl_store **ret, struct err *e);

/* NULL if there is none. The record stays the store's; it is valid until the volume is deleted. */
CslVolume *csl_store_by_id(struct csl_store *s, const char *id);
CslVolume *csl_store_by_name(struct csl_store *s, const char *name);
/* In the order of ids: the first one not below id. NULL at the end. */
CslVolume *csl_store_from_id(struct csl_store *s, const char *id);
CslVolume *csl_store_after(struct csl_store *s, const CslVolume *v);

int csl_store_create(
    struct csl_store *s, const char *name, int64_t capacity, CslVolume **ret, struct err *e);
/* The caller has looked that it is not in use. v is gone afterwards. */
int csl_store_delete(struct csl_store *s, CslVolume *v, struct err *e);
int csl_store_resize(struct csl_store *s, CslVolume *v, int64_t capacity, struct err *e);
/* The directory of v's data, O_PATH. The caller closes it. -errno. */
int csl_store_dir(struct csl_store *s, const CslVolume *v, struct err *e);

/* The mount of v on target as it was noted in this boot, or NULL. */
const CslMount *csl_store_mount(const CslVolume *v, const char *target);
/* Notes a mount before it is made, and forgets it after it is gone; both durable. */
int csl_store_mount_add(struct csl_store *s, CslVolume *v, const char *target, bool staging,
    uint64_t attrs, struct err *e);
int csl_store_mount_drop(struct csl_store *s, CslVolume *v, const char *target, struct err *e);

#endif
