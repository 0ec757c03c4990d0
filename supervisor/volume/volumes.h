/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volumes.h: volumes on this node: create, stage, publish, prove and unmount them. The row of a
 * mount is durable before the first CSI call of mounting and of unmounting, and has enough to begin
 * either again from its first step. The calls of one volume go one after the other. Runs in:
 * supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_VOLUMES_H
#define DROVER_SUPERVISOR_VOLUME_VOLUMES_H

#include "model/job.h"
#include "model/volume.h"
#include "proto/ipc_records.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/core/sup.h"
#include "supervisor/volume/volume_lost.h"

int volumes_new(struct sup *sup, struct err *e); /* reads the rows */
void volumes_free(struct sup *sup);

/* With r >= 0, e is NULL or says what drover had to do by itself. */
typedef void volume_cb(struct sup *sup, void *arg, int r, const struct err *e);

/* What a start request needs of one published volume. */
struct volume_mount_state {
	struct volume_place place;
	struct mount_proof proof;
	bool published, read_only;
	enum volume_lost lost; /* by the last volume_mount() that found it published */
};

/* What has gone wrong with a mount, and when it is tried next. */
struct volume_trouble {
	char *error;      /* of the last try */
	unsigned tries;   /* 0: nothing has gone wrong, the rest means nothing */
	int64_t since_ns; /* CLOCK_REALTIME of the first failure, and of the next try */
	int64_t next_ns;
};
/* Returns the trouble with unmounting the volume from any alloc, whose id is *ret_alloc; NULL if
 * there is none. Valid until the next turn. */
const struct volume_trouble *volume_trouble_of(
    struct sup *sup, const char *namespace, const char *id, const char **ret_alloc);
/* Writes what has failed, how often, since when, and when it is tried next. */
void volume_trouble_say(const struct volume_trouble *t, char *buf, size_t size);

/*
 * Writes the row of a mount that will follow, so that the commit that takes the claim is also the
 * one that must be synced before the first CSI call. Does nothing else; volume_unmount() undoes it.
 */
void volume_plan(struct sup *sup, struct sup_alloc *sa, const struct volume_request *request,
    const struct csi_volume *volume);
/* Returns true if the volume is mounted or its plugin is known. After a restart of the agent it
 * takes a while until plugins are. */
bool volume_can_mount(struct sup *sup, const struct sup_alloc *sa,
    const struct volume_request *request, const struct csi_volume *volume);
/*
 * Stages the volume (if the plugin needs it), publishes and proves it. Idempotent: a mount that is
 * proven is used. The callback may come within the call. An alloc has one such request at a time
 * for each volume.
 */
void volume_mount(struct sup *sup, struct sup_alloc *sa, const struct volume_request *request,
    const struct csi_volume *volume, volume_cb *cb, void *arg);
/*
 * Cancels the mounting of an alloc that is to be stopped. One that waits for the plugin's answer or
 * its turn ends with -ECANCELED, with its callback within the call; any other one ends soon by
 * itself. volume_unmount() undoes what the plugin has done by then.
 */
void volume_mount_cancel(struct sup *sup, const struct sup_alloc *sa, const char *alias);
/*
 * Unpublishes the volume, removes the directories, unstages it after the last user, and reports
 * that it is gone. A volume that the plugin does not know counts as unmounted. What the plugin
 * leaves mounted is unmounted without it. After a call whose effect is unknown, checks a few
 * seconds later whether a mount has appeared. After a failure the row is kept and unmounting is
 * retried in the background until it succeeds.
 */
void volume_unmount(struct sup *sup, struct sup_alloc *sa, const struct volume_request *request,
    volume_cb *cb, void *arg);
/* Lets volume_unmount() go on without its callback. */
void volume_unmount_leave(struct sup *sup, const struct sup_alloc *sa, const char *alias);
/* Writes what the mount waits for, as a sentence: "volume data: NodeStageVolume of plugin local has
 * not been answered yet", or what has failed, how often, and when it is tried next. Returns false
 * if it does not wait. */
bool volume_say_pending(
    struct sup *sup, const struct sup_alloc *sa, const char *alias, char *buf, size_t size);
/*
 * Makes the volume that sa has mounted take the new size that it has at its plugin, after the other
 * calls for the volume. The callback gets -ENOTCONN if it is not mounted (sa may be NULL). It may
 * come within the call. A volume with a node_expansion gets it when it is mounted, which
 * volumes_report_grown() reports; without it the mount is used as it is.
 */
struct volume_size {
	int64_t required_bytes, limit_bytes; /* limit_bytes 0: no limit */
	const struct string_map *secrets;    /* copied; NULL: there are none */
};
typedef void volume_size_cb(
    struct sup *sup, void *arg, int r, int64_t capacity_bytes, const struct err *e);
void volume_expand_here(struct sup *sup, const struct sup_alloc *sa, const char *volume,
    const struct volume_size *size, volume_size_cb *cb, void *arg);
/* Returns the mount for this alias of the group; NULL if there is none. */
const struct volume_mount_state *volume_find(
    struct sup *sup, const struct sup_alloc *sa, const char *alias);
/* Fills in the ids and the plugin of a published volume. Returns false if it is not published. */
bool volume_get_mounted(
    struct sup *sup, const struct sup_alloc *sa, const char *alias, struct csi_volume *ret);
/* Return true if there is any mount: by this plugin of this kind, of this alloc. */
bool volume_plugin_has_mounts(struct sup *sup, const char *plugin, enum csi_plugin_kind kind);
bool volume_alloc_has_mounts(struct sup *sup, const struct sup_alloc *sa);
/* Returns true if this volume is mounted, or will be, for the alloc of this id (a UUID). */
bool volume_is_mounted_for(
    struct sup *sup, const char *alloc_id, const char *namespace, const char *id);
/* Retries the unmounts of this volume that have failed at once. */
void volume_retry_unmounts(struct sup *sup, const char *namespace, const char *id);
/* Checks that no alloc has the plugin's volume mounted. Returns 0, or -EBUSY with *e, which names
 * the volume and the alloc. */
int volume_refuse_mounted(
    struct sup *sup, const char *plugin, const char *external_id, struct err *e);
/* Called when a volume of this alloc, by its alias in the group, is unmounted. Its row is deleted
 * in this turn, which is synced. There is one callback for all volumes. */
typedef void volume_gone_cb(struct sup *sup, const struct id *alloc, const char *alias);
void volumes_report_gone(struct sup *sup, volume_gone_cb *cb);
/* Called when a mount has asked the plugin to give it this size, with the result. */
typedef void volume_grown_cb(struct sup *sup, const char *namespace, const char *id,
    int64_t required_bytes, int r, const struct err *e);
void volumes_report_grown(struct sup *sup, volume_grown_cb *cb);
/* Called when volume_mount() has to repair a volume that was published for this alloc (enum
 * volume_lost), and once a minute until it has succeeded. */
typedef void volume_lost_cb(struct sup *sup, const struct id *alloc, const char *alias);
void volumes_report_lost(struct sup *sup, volume_lost_cb *cb);
/* After a restart: undoes the mounts of allocs that no hook will unmount. has_hooks() gets NULL for
 * an alloc that does not exist. */
void volumes_undo_left(struct sup *sup, bool (*has_hooks)(const struct sup_alloc *sa));
/* Called when a plugin has become healthy: retries at once what has failed. */
void volumes_plugin_answers(struct sup *sup, const char *plugin);
/* Compares soon what the plugins report about mounted volumes, besides once a minute. */
void volumes_compare_soon(struct sup *sup);
/* At the end of a drain: logs a warning for each mount that is left. */
void volumes_warn_left(struct sup *sup);
/* For leaks: returns true if a row explains this path below <data>/csi ("node/hp/staging/v/rw"). */
bool volume_path_is_known(struct sup *sup, const char *path);
/* Calls found() for each mount that is published; a volume may have several. */
typedef void volume_published_cb(
    void *arg, const char *namespace, const char *id, const struct volume_place *place, bool block);
void volume_published_each(const struct sup *sup, volume_published_cb *found, void *arg);
/* Calls found() with the path, below the data directory, of each published volume that is not
 * mounted any more, because someone else unmounted it. A block device may be no mount. Returns 0 or
 * -errno. */
int volume_unmounted_each(
    const struct sup *sup, void (*found)(void *arg, const char *path), void *arg);

#endif
