/* SPDX-License-Identifier: Apache-2.0 */
/* claims.h: who may use a volume: pure rules over struct csi_volume. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_CLAIM_CLAIMS_H
#define DROVER_SUPERVISOR_SERVER_CLAIM_CLAIMS_H

#include "model/volume.h"

bool claim_is_writer_mode(enum csi_access access);
bool volume_in_use(const struct csi_volume *vol);
bool volume_read_schedulable(const struct csi_volume *vol);
bool volume_write_schedulable(const struct csi_volume *vol);
/* Whether a claim could be taken just now, without taking it. 0, or as volume_claim(). */
int volume_claim_check(const struct csi_volume *vol, const struct csi_claim *claim, struct err *e);

/*
 * Applies the claim: state CLAIM_TAKEN (and mode not GC) takes, anything else checkpoints a release
 * or, ready-to-free, frees. A claim that is there already changes nothing. Returns 0; -EBUSY
 * "volume max claims reached: volume v is written by alloc a"; -EAGAIN "volume is currently
 * unschedulable: …"; -EINVAL for modes that do not fit; -ENOMEM. On failure vol is unchanged.
 */
int volume_claim(struct csi_volume *vol, const struct csi_claim *claim, struct err *e);

/* The alloc's claim, wherever it is, or NULL. */
const struct csi_claim *volume_find_claim(const struct csi_volume *vol, const char *alloc_id);
/*
 * Gives every read or write claim whose alloc is gone or ended, and that nobody releases yet, a
 * past claim with state unpublishing. ended(arg, alloc_id) answers for an alloc. Returns how many
 * were made, or -ENOMEM.
 */
int volume_find_past_claims(
    struct csi_volume *vol, bool (*ended)(void *arg, const char *alloc_id), void *arg);

#endif
