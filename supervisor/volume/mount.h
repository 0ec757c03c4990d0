/* SPDX-License-Identifier: Apache-2.0 */
/* mount.h: one mount of a volume for an alloc, at the request of volumes.c: mount.c has its row and
 * its turn among the mounts of the volume, mount_steps.c the steps of mounting and unmounting. Runs
 * in: supervisor. */
#ifndef DROVER_SUPERVISOR_VOLUME_MOUNT_H
#define DROVER_SUPERVISOR_VOLUME_MOUNT_H

#include "common/hash.h"
#include "common/list.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/volume/mount_record.h"
#include "supervisor/volume/plugin_calls.h"
#include "supervisor/volume/volume_stats.h"
#include "supervisor/volume/volumes.h"

/* The state of a mount; the number is in its row. A step in -ING that a crash interrupts is done
 * again, because all calls are idempotent. */
enum mount_step {
	MOUNT_MOUNTING = 1,
	MOUNT_PUBLISHED = 3,
	MOUNT_UNPUBLISHING = 4,
	MOUNT_UNSTAGING = 5,
	MOUNT_GONE = 6, /* unmounted: the row is being deleted */
};

struct mount {
	LIST_ENTRY(mount) link;
	struct hash_link by_volume, by_alloc, by_id;
	bool indexed;
	struct sup *sup;
	struct dirty row;
	struct mount_record rec; /* what is in the row */
	struct volume_mount_state state;
	struct csi_volume volume; /* while it is being mounted: its secrets are not in the row */
	struct csi_capability capability;
	enum mount_step step;
	const struct mount_action *at; /* the action in progress, while it is busy */
	bool busy, waiting;            /* has a call out; waits for another mount of the volume */
	bool growing;                  /* the call is that of the first of growths */
	STAILQ_HEAD(, growth) growths; /* what mount_expand() was asked for */
	bool unmounting;               /* else it is mounting or mounted */
	bool cancelled;                /* the mounting was cancelled */
	bool begun;                    /* there may be something to undo besides the row */
	bool settling;                 /* unmounted; checked once more for late mounts */
	bool detached;                 /* the plugin has said that it is unmounted */
	bool cleared;                  /* mount_clear_targets() has begun during this mounting */
	struct mount *clearing;        /* the mount of the volume that it looks at */
	uint64_t hung_channel;         /* for volume_repair.c: its file system did not answer */
	unsigned asked;                /* for volume_repair.c */
	uint64_t call;
	struct plugin_call *plugin_call;
	struct sup_timer timer;
	uint64_t retry_usec, settle_usec;
	struct err refused; /* the error of an unpublish, until the directory is known to be free */
	struct err note;    /* what drover unmounted by itself; code 0: nothing */
	struct volume_trouble trouble;
	struct volume_level *level; /* volume_stats.c; NULL: there are no statistics */
	volume_cb *cb;
	void *arg;
};

struct volumes {
	LIST_HEAD(, mount) mounts; /* newest first */
	struct hash_table by_volume, by_alloc, by_id;
	volume_gone_cb *gone;   /* NULL: nothing depends on it */
	volume_grown_cb *grown; /* as gone */
	volume_lost_cb *lost;   /* as gone */
	volume_state_cb *state; /* as gone */
	struct volume_repair *repair;
	struct volume_stats *stats;
	struct volume_watch *watch;
};

/* For journal.h: a line about the mount. */
#define ABOUT_MOUNT(m)                                                                             \
	(&(struct journal_about){ .alloc_id = (m)->rec.alloc,                                      \
	    .namespace = (m)->rec.namespace,                                                       \
	    .volume = (m)->rec.volume_id })

/* Makes a mount in the list of sup->volumes, without a row yet. */
struct mount *mount_new(struct sup *sup);
void mount_free(struct mount *m);
/* Fills in, from the record, the step and what requests to the privileged helpers need. */
void mount_fill_state(struct mount *m);
void mount_set_step(struct mount *m, enum mount_step step);
/* Return the next mount of the same volume, or of the alloc: from NULL to NULL. */
struct mount *mount_next_of_volume(const struct mount *m, struct mount *at);
struct mount *mount_next_of_alloc(struct sup *sup, const struct id *alloc, struct mount *at);
/* As these, for the volume with this id, which may have had several plugins. */
struct mount *mount_next_of_id(
    struct sup *sup, const char *namespace, const char *id, struct mount *at);
#define MOUNT_PATH_SIZE 640
/* Writes the path of the staging directory, or of the alloc's, relative to the data directory. */
void mount_path(const struct mount *m, bool staging, char buf[MOUNT_PATH_SIZE]);
/* Returns a mount whose staging directory, or whose directory for its alloc, is this one; NULL if
 * no row has it. */
struct mount *mount_find_place(struct sup *sup, const struct volume_place *place, bool staging);

/* Continues to mount or unmount from the current step, or waits for another call of the volume.
 * mount_finish() is called at the end. */
void mount_advance(struct mount *m);
/* Advances the mount after this time. */
void mount_advance_after(struct mount *m, uint64_t usec);
/* Lets other mounts of the volume proceed. */
void mount_pause(struct mount *m);
/* Unmounts in the background, without a callback. */
void mount_undo(struct mount *m);
/* Notes that a call of the mount, which has ended or is to be cancelled, may have taken effect. */
void mount_note_effect(struct mount *m);
/* Cancels the call to the plugin that is out, if any. */
void mount_cancel_call(struct mount *m);
/* Notifies the plugin of the new size of a published volume, after the volume's other calls. The
 * callback may come within the call. */
void mount_expand(struct mount *m, const struct volume_size *size, volume_size_cb *cb, void *arg);
/* As volume_say_pending(). */
bool mount_say_pending(const struct mount *m, char *buf, size_t size);
/* Ends the mounting or unmounting: calls the callback with r and *e. A failed unmounting is retried
 * later. */
void mount_finish(struct mount *m, int r, const struct err *e);

/* Adds an event of the node, as Nomad's client does. *e is the failure; NULL: it succeeded. */
void mount_report(const struct mount *m, const struct err *e);

void mount_set_lost(struct mount *m, enum volume_lost lost);

/* mount_steps.c: begins the first action of mounting, or of unmounting. */
void mount_begin(struct mount *m);
/* Ends the action in progress and begins the next one. */
void mount_begin_next(struct mount *m);
/* Returns true if nothing is mounted where the volume is published. A block device may be no mount,
 * so it is never missing. */
bool mount_is_missing(const struct mount *m);
/* Returns true if something was mounted on the staging directory, and nothing is any more. */
bool mount_staging_is_missing(const struct mount *m);

/* mount_clear.c: whether the process of the volume's FUSE file system has ended, or its device is
 * gone or another one. r and found (NULL if r < 0) are the result of a proof. */
bool mount_has_ended(const struct mount *m, int r, const struct mount_proof *found);
/* Returns true if the plugin has refused a call, so that it has no further effect. */
bool mount_is_refused(const CsiCallRep *rep, int r);
/* Actions of mount_steps.c: remove all published mounts of the volume that have ended, whatever
 * alloc they are for, and then the staged one. Those of other allocs are reported as lost. */
void mount_clear_targets(struct mount *m);
void mount_clear_staging(struct mount *m);

#endif
