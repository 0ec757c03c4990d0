/* SPDX-License-Identifier: Apache-2.0 */
/* claims.h: which alloc may use a volume: rules over struct csi_volume, without effects. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_CLAIM_CLAIMS_H
#define DROVER_SUPERVISOR_SERVER_CLAIM_CLAIMS_H

#include "model/volume.h"

bool claim_is_writer_mode(enum csi_access access);
bool volume_in_use(const struct csi_volume *vol);
bool volume_read_schedulable(const struct csi_volume *vol);
bool volume_write_schedulable(const struct csi_volume *vol);
/* Checks whether the claim could be taken now. Returns 0, or the error that volume_claim()
 * would return. */
int volume_claim_check(const struct csi_volume *vol, const struct csi_claim *claim, struct err *e);

/*
 * Applies the claim. State CLAIM_TAKEN (and a mode other than GC) takes it, CLAIM_READY_TO_FREE
 * removes it, and other states record how far its release is. Taking a claim again changes nothing.
 * Returns 0; -EBUSY "volume max claims reached: volume v is written by alloc a"; -EAGAIN "volume is
 * currently unschedulable: …"; -EINVAL for modes that do not match. On failure vol is unchanged.
 */
int volume_claim(struct csi_volume *vol, const struct csi_claim *claim, struct err *e);

/* Returns the alloc's claim among those to write, to read or in release, or NULL. */
const struct csi_claim *volume_find_claim(const struct csi_volume *vol, const char *alloc_id);
/* Returns the alloc's claim to write or to read, which has what its controller did, or NULL. */
struct csi_claim *volume_held_claim(struct csi_volume *vol, const char *alloc_id);
/* Returns the i-th of the claims to write and to read; NULL after the last. */
struct csi_claim *volume_nth_claim(struct csi_volume *vol, size_t i);
/* Records how far the release of a claim is. *claim may be one of the volume's own. */
void volume_release_claim(
    struct csi_volume *vol, const struct csi_claim *claim, enum claim_state state);

/* Returns a claim of another alloc of the same node that uses the node's attachment, attached ones
 * first; NULL if there is none. */
const struct csi_claim *volume_other_attachment(
    struct csi_volume *vol, const struct csi_claim *claim);
/* Checks whether the claim could share the node's attachment. Returns 0, or -EBUSY with a sentence.
 */
int volume_attach_check(struct csi_volume *vol, const struct csi_claim *claim, struct err *e);

#endif
