/* SPDX-License-Identifier: Apache-2.0 */
/* local_claims.h: the claims that allocs hold on CSI volumes. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_CLAIM_LOCAL_CLAIMS_H
#define DROVER_SUPERVISOR_SERVER_CLAIM_LOCAL_CLAIMS_H

#include "supervisor/server/claim/local_volumes.h"

struct local_alloc;

/* Counts the claims that allocs hold, after allocs and volumes were loaded. */
void local_claims_load(struct local *l);
/* Checks whether an alloc with this index could claim the volume now. Returns 0, or -errno with the
 * sentence. */
int local_claim_check(struct local *l, const char *namespace, int64_t index,
    const struct volume_request *vr, struct err *e);
/* Takes the claims of an alloc that is being placed, so that no other alloc is placed for the same
 * volume. */
void local_claims_reserve(struct local *l, struct sup_alloc *sa);
/* source_ops.claim and .release */
void local_claim_acquire(struct source *s, struct sup_alloc *sa, const struct volume_request *vr,
    claim_cb *cb, void *arg);
void local_claim_release(struct source *s, struct sup_alloc *sa, const struct volume_request *vr);
/* Releases all claims that a destroyed alloc still holds. */
void local_claims_release_all(struct local *l, struct local_alloc *la);
/* Returns the first alloc that is not over and has a claim, or NULL. */
const char *local_volume_holder(struct local *l, struct local_volume *lv);
/* Forgets the volume with the claims of allocs that are over; *ret_forgotten (to be freed; NULL:
 * nothing) says what is left behind. Returns false, and does nothing, if an alloc that is not over
 * has a claim. */
bool local_volume_abandon(struct local *l, struct local_volume *lv, char **ret_forgotten);

#endif
