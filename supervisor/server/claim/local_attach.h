/* SPDX-License-Identifier: Apache-2.0 */
/* local_attach.h: attaches claimed volumes to this node, through the controllers of their plugins.
 * Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_CLAIM_LOCAL_ATTACH_H
#define DROVER_SUPERVISOR_SERVER_CLAIM_LOCAL_ATTACH_H

#include "supervisor/server/claim/local_volumes.h"

/* Answers a claim that was taken, when the volume is attached, if its plugin requires that. The
 * answer's volume has the publish context. The callback may come within the call. */
void local_attach(struct local *l, struct local_volume *lv, struct sup_alloc *sa,
    const struct volume_request *vr, claim_cb *cb, void *arg);
/* source_ops.claim_cancel. A call of the controller goes on; its result is detached later. */
void local_attach_cancel(struct source *s, struct sup_alloc *sa);
/* Answers the claims that can be answered now, and calls the controller for the next one. */
void local_attach_next(struct local *l, struct local_volume *lv);
/* Forgets the claims that wait, without an answer. */
void local_attach_drop(struct local_volume *lv);

#endif
