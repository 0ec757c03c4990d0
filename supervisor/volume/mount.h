/* SPDX-License-Identifier: Apache-2.0 */
/* mount.h: one mount of a volume for an alloc, as mount.c takes it in and out and volumes.c is
 * asked for it. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_VOLUME_MOUNT_H
#define DROVER_SUPERVISOR_VOLUME_MOUNT_H

#include "supervisor/core/sup_turn.h"
#include "supervisor/volume/mount_record.h"
#include "supervisor/volume/volumes.h"

/* How far a mount is; the number is in its row. What a crash leaves at a -ING step is done again:
 * all calls are idempotent. */
enum mount_step {
	MOUNT_MOUNTING = 1,
	MOUNT_PUBLISHED = 3,
	MOUNT_UNPUBLISHING = 4,
	MOUNT_UNSTAGING = 5,
	MOUNT_GONE = 6, /* the row goes */
};

struct mount {
	struct mount *next;
	struct sup *sup;
	struct dirty row;
	struct mount_record rec; /* what is in the row */
	struct volume_mount_state state;
	struct csi_volume volume; /* while it is being mounted: secrets are in no row */
	struct csi_capability capability;
	enum mount_step step;
	const struct action *at; /* while it is busy */
	bool busy, waiting;      /* a call is out; or another mount of the volume is busy */
	bool growing;            /* the call is mount_expand()'s, which has its own callback */
	bool unmounting;         /* the direction */
	bool cancelled;          /* nobody wants it mounted any more */
	bool begun;              /* something may be there to undo; else there is only the row */
	uint64_t call;
	struct plugin_call *plugin_call;
	struct sd_event_source *timer;
	uint64_t retry_usec;
	volume_cb *cb;
	void *arg;
};

struct volumes {
	struct mount *first;
	volume_gone_cb *gone; /* NULL: nothing depends on it */
};

/* In the list of sup->volumes, without a row yet. NULL: no memory. */
struct mount *mount_new(struct sup *sup);
void mount_free(struct mount *m);
/* Out of the record: what a request to the privileged side holds, and the step. */
void mount_fill_state(struct mount *m);
void mount_set_step(struct mount *m, enum mount_step step);

/* Goes on from wherever it is, into its direction, or waits for its volume. The end is its
 * callback's. */
void mount_advance(struct mount *m);
/* Takes it out again, for nobody in particular. */
void mount_undo(struct mount *m);
/* Of one that is published: tells its plugin of the new size. Negative with *e: the callback does
 * not come. */
int mount_expand(struct mount *m, int64_t required_bytes, int64_t limit_bytes, volume_size_cb *cb,
    void *arg, struct err *e);
/* Ends what is under way with r and *e: calls the callback, tries again later what was to be
 * undone. */
void mount_finish(struct mount *m, int r, const struct err *e);

#endif
