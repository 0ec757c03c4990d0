/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volumes.h: volumes on this node: created, staged, published, proven, and taken away again
 *. A row of table mount is durable before the first CSI call of
 * mounting and of undoing, and says enough to begin either again from its first step. Calls of one
 * volume go one after the other. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_VOLUMES_H
#define DROVER_SUPERVISOR_VOLUME_VOLUMES_H

#include "model/job.h"
#include "model/volume.h"
#include "proto/ipc_records.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/core/sup.h"

int volumes_new(struct sup *sup, struct err *e); /* reads the rows */
void volumes_free(struct sup *sup);

typedef void volume_cb(struct sup *sup, void *arg, int r, const struct err *e);

/* What a start request needs of one published request. */
struct volume_mount_state {
	struct volume_place place;
	struct mount_proof proof;
	bool published, read_only;
};

/*
 * It will be mounted: writes its row now, so that the commit that takes the claim is the one that
 * has to be synced before the first CSI call. Nothing else happens; volume_unmount() takes it back.
 */
void volume_plan(struct sup *sup, struct sup_alloc *sa, const struct volume_request *request,
    const struct csi_volume *volume);
/* Is it mounted already, or is its plugin known by now? After a restart of the agent that takes a
 * while. */
bool volume_can_mount(struct sup *sup, const struct sup_alloc *sa,
    const struct volume_request *request, const struct csi_volume *volume);
/*
 * Stage (where the plugin needs it), publish, prove. Idempotent: what is mounted and proven is
 * used. The callback may come within the call. One at a time per alloc and request.
 */
void volume_mount(struct sup *sup, struct sup_alloc *sa, const struct volume_request *request,
    const struct csi_volume *volume, volume_cb *cb, void *arg);
/*
 * The alloc is to be stopped: a mount that waits (for the plugin's answer, its turn) ends now with
 * -ECANCELED, by its callback within the call; any other ends by itself soon. What the plugin has
 * done by then is undone by volume_unmount().
 */
void volume_mount_cancel(struct sup *sup, const struct sup_alloc *sa, const char *alias);
/*
 * Unpublish, remove the directories, unstage after the last user, and report that the volume is
 * gone. What the plugin no longer knows counts as done. After a failure the row stays; it is tried
 * again in the background until it works.
 */
void volume_unmount(struct sup *sup, struct sup_alloc *sa, const struct volume_request *request,
    volume_cb *cb, void *arg);
/* Nobody waits for the end of volume_unmount() any more: it goes on without its callback. */
void volume_unmount_leave(struct sup *sup, const struct sup_alloc *sa, const char *alias);
/* What it waits for, as a sentence: "volume data: NodeStageVolume of plugin local has not been
 * answered yet". False: for nothing. */
bool volume_say_pending(
    struct sup *sup, const struct sup_alloc *sa, const char *alias, char *buf, size_t size);
/*
 * The volume has grown at its plugin: makes what sa has mounted of it take the new size. -ENOENT
 * if that is nothing (sa may be NULL), -EAGAIN while another call for the volume is under way. The
 * callback may come within the call.
 */
typedef void volume_size_cb(
    struct sup *sup, void *arg, int r, int64_t capacity_bytes, const struct err *e);
void volume_expand_here(struct sup *sup, const struct sup_alloc *sa, const char *volume,
    int64_t required_bytes, int64_t limit_bytes, volume_size_cb *cb, void *arg);
/* NULL: nothing is mounted for that alias of the group. */
const struct volume_mount_state *volume_find(
    struct sup *sup, const struct sup_alloc *sa, const char *alias);
/* Fills what names the volume (ids, plugin) of a mount that is published; false if it is not. */
bool volume_get_mounted(
    struct sup *sup, const struct sup_alloc *sa, const char *alias, struct csi_volume *ret);
bool volume_plugin_has_mounts(struct sup *sup, const char *plugin);
bool volume_alloc_has_mounts(struct sup *sup, const struct sup_alloc *sa);
/* Anything of this volume on this node? */
bool volume_has_mounts(struct sup *sup, const char *namespace, const char *id);

/* A volume of this alloc, by its alias in the group, is mounted no more; its row goes in this turn,
 * which is synced. The callback is one for all volumes, from now on. */
typedef void volume_gone_cb(struct sup *sup, const struct id *alloc, const char *alias);
void volumes_report_gone(struct sup *sup, volume_gone_cb *cb);
/* After a restart: undoes the mounts of allocs that no hook will unmount (sa NULL: there is no such
 * alloc). */
void volumes_undo_left(struct sup *sup, bool (*has_hooks)(const struct sup_alloc *sa));
/* A plugin has been found healthy: what failed is tried again now. */
void volumes_plugin_answers(struct sup *sup, const char *plugin);
/* At the end of a drain: says for each mount that is left that it is. */
void volumes_warn_left(struct sup *sup);

/* By the controller half: fills external_id, capacity, context, topologies of *vol, which must live
 * until the callback. */
void volume_create(struct sup *sup, struct csi_volume *vol, volume_cb *cb, void *arg);
void volume_delete(struct sup *sup, const struct csi_volume *vol, volume_cb *cb, void *arg);

/*
 * The other calls that servers make to a controller. *vol has external_id, plugin_id,
 * requested_capabilities, mount_options, secrets, parameters and context, and need not outlive the
 * call. node: the plugin's own id of it. What the plugin does not know is detached.
 */
typedef void volume_attach_cb(struct sup *sup, void *arg, int r,
    const struct string_map *publish_context, const struct err *e);
void volume_validate(struct sup *sup, const struct csi_volume *vol, volume_cb *cb, void *arg);
void volume_attach(struct sup *sup, const struct csi_volume *vol, const char *node, bool read_only,
    volume_attach_cb *cb, void *arg);
void volume_detach(
    struct sup *sup, const struct csi_volume *vol, const char *node, volume_cb *cb, void *arg);

/* For leaks: is this path below <data>/csi ("node/hp/staging/v/rw-…") one that a row explains? */
bool volume_path_is_known(struct sup *sup, const char *path);

#endif
