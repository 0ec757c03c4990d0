/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_release.h: releases claims of allocs that are over or gone: after the volume is unmounted
 * for the alloc, and detached from the node after the last one. The row of the volume has how far
 * each release is, so that it goes on after any crash, without the alloc and without the job. Runs
 * in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_CLAIM_LOCAL_RELEASE_H
#define DROVER_SUPERVISOR_SERVER_CLAIM_LOCAL_RELEASE_H

#include "supervisor/server/claim/local_volumes.h"
#include "supervisor/volume/volumes.h"

struct local_alloc;

/* Continues all releases at the start, and whenever a plugin starts to answer. */
void local_releases_init(struct local *l);
void local_releases_start(struct local *l);
void local_releases_free(struct local *l);

/* The volume is unmounted for this alloc: begins the release of its claim. */
void local_release_begin(struct local *l, struct local_volume *lv, const char *alloc_id);
/* Frees the claim at once, whatever its release still waits for. */
void local_claim_free(struct local *l, struct local_volume *lv, const struct csi_claim *c);
/* Continues what can go on for the claims of a volume: releases, then claims that wait. */
void local_claims_step(struct local *l, struct local_volume *lv);
/* Returns the alloc of a claim; NULL if it is not known any more. */
struct local_alloc *local_claimer(struct local *l, const char *alloc_id);
/* Returns whether the claim's alloc is over or gone. */
bool local_claim_is_over(struct local *l, const struct csi_claim *c);

/* Returns whether a claim is left whose alloc is over. */
bool local_volume_is_left(struct local *l, struct local_volume *lv);
/* Retries the releases of the volume at once. The callback, which may come within the call, gets 0
 * when no claim of an alloc that is over is left, or what the release waits for. */
void local_release_ask(struct local *l, struct local_volume *lv, volume_cb *cb, void *arg);
/* Begins to detach a volume that nobody claims from this node of its plugin; claims wait until that
 * has ended. Returns false if somebody claims it. */
bool local_detach_unclaimed(struct local *l, struct local_volume *lv, const char *node);
/* Forgets who waits for releases, and timers. */
void local_release_drop(struct local_volume *lv);

/* How far a claim is: its state, and for a release what it waits for. */
struct claim_outlook {
	enum claim_state state;
	char waits_for[ERR_MSG_SIZE]; /* "" if it waits for nothing */
	const char *error;            /* of the last try to detach it; or NULL */
	unsigned failures;
	uint64_t next_ms; /* until the next try; 0: none is planned */
};
void local_claim_look(
    struct local *l, struct local_volume *lv, const struct csi_claim *c, struct claim_outlook *ret);

#endif
