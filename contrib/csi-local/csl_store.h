/* SPDX-License-Identifier: Apache-2.0 */
/* csl_store.h: stores volumes, snapshots and groups as files; changes are durable before each
 * answer. Runs in: drover-csi-local. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_STORE_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/id.h"
#include "contrib/csi-local/csl_arena.h"
#include "proto/csi_local.pb-c.h"

/*
 * Below the root, all 0700:
 *   lock                   held by the controller, the only one that changes the first three
 *   meta/<id>              a CslVolume: the volume exists as long as this file
 *   snapshot-meta/<id>     a CslSnapshot
 *   groups/<id>            a CslGroup
 *   volumes/<id>           a volume's data: a directory, 0777, reached only through its mounts; or
 *                          the file of a block device
 *   snapshots/<id>         a snapshot's data, likewise
 *   locks/<id>             held while a node mounts the volume, or while it is deleted
 *   nodes/<node>/lock      held by the plugin of the node, the only one that changes:
 *   nodes/<node>/node      a CslNode
 *   nodes/<node>/<id>      a CslNodeVolume, while the volume has mounts there
 *   trash/<id>             data of what was deleted, removed in the background
 * A controller and the plugins of several nodes can share a root.
 */
struct csl_store;

/* In the order in which they are read at the start. */
enum csl_kind { CSL_GROUP, CSL_VOLUME, CSL_SNAPSHOT, CSL_N_KINDS };

/*
 * Makes what is missing below root (its parent must exist), takes the locks (waits up to 10 s for a
 * predecessor), and finishes what a crash interrupted. node_id is NULL without the node service.
 * -EBUSY if another plugin runs there.
 */
int csl_store_open(
    const char *root, bool controller, const char *node_id, struct csl_store **ret, struct err *e);
/* The file system of the store, for fstatvfs(). */
int csl_store_fd(const struct csl_store *s);

/* --- records: each is read from its file, into the arena, and belongs to the caller --- */

/* Returns NULL if it does not exist (e->code is -ENOENT), is unfinished, or cannot be read. */
void *csl_store_load(
    struct csl_store *s, enum csl_kind kind, const char *id, struct csl_arena *a, struct err *e);
/* Writes a record. It is found by its name and in lists once it is not unfinished. */
int csl_store_save(struct csl_store *s, enum csl_kind kind, const void *record, struct err *e);
/* Deletes a record and its data. */
int csl_store_remove(struct csl_store *s, enum csl_kind kind, const char *id, struct err *e);
/* Finds a record by its name. Returns false if it does not exist. */
bool csl_store_find(
    struct csl_store *s, enum csl_kind kind, const char *name, char ret_id[ID_HEX_SIZE]);
/* Returns up to max ids (0: all) in their order, from the first that is not below `from`. */
size_t csl_store_list(struct csl_store *s, enum csl_kind kind, const char *from, size_t max,
    struct csl_arena *a, char (**ret)[ID_HEX_SIZE]);

/* --- data --- */

/* Makes the empty directory, or the file of size bytes, of a volume. */
int csl_store_make_data(
    struct csl_store *s, const char *id, bool block, int64_t size, struct err *e);
/* Makes the data of kind/id as a copy, and syncs it. */
int csl_store_copy_data(struct csl_store *s, enum csl_kind from_kind, const char *from,
    enum csl_kind kind, const char *id, struct err *e);
/* Opens the data with O_PATH (a directory) or for reading and writing (a file). The caller closes
 * it. Returns -errno on failure. */
int csl_store_data(
    struct csl_store *s, enum csl_kind kind, const char *id, bool block, struct err *e);
/* Waits until no node mounts the volume, or a controller deletes it. The caller closes the
 * descriptor, and reads the record after this. */
int csl_store_lock(struct csl_store *s, const char *id, struct err *e);

/* --- nodes: csl_node_store.c --- */

/* Returns the names of all nodes. */
size_t csl_store_nodes(struct csl_store *s, struct csl_arena *a, const char *(**ret));
/* Returns a node, or NULL. */
CslNode *csl_store_node(struct csl_store *s, const char *node_id, struct csl_arena *a);
/* Records this node. */
int csl_store_node_save(struct csl_store *s, const CslNode *node, struct err *e);
/* Returns the mounts of a volume on a node in this boot; never NULL. */
CslNodeVolume *csl_store_mounts(
    struct csl_store *s, const char *node_id, const char *id, struct csl_arena *a);
/* Record a mount of this node before it is made, and remove the record after the unmount. */
int csl_store_mount_add(struct csl_store *s, const char *id, CslNodeVolume *mounts,
    const CslMount *mount, struct csl_arena *a, struct err *e);
int csl_store_mount_drop(
    struct csl_store *s, const char *id, CslNodeVolume *mounts, const char *target, struct err *e);
/* Returns the recorded mount on target, or NULL. */
CslMount *csl_mount_find(const CslNodeVolume *mounts, const char *target);

#endif
