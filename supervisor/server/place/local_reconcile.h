/* SPDX-License-Identifier: Apache-2.0 */
/* local_reconcile.h: makes the allocs of a job what its wanted version says, slot by slot. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_RECONCILE_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_RECONCILE_H

#include "supervisor/server/job/local_evals.h"
#include "supervisor/server/job/local_slots.h"

/*
 * Compares the job with its allocs and acts: under ev, which is open and ends, now or when the last
 * alloc that must end first has. NULL: one is made if there is something to do. again: allocs that
 * ended by themselves are replaced too.
 */
void local_reconcile_job(struct local *l, struct local_job *j, struct local_eval *ev, bool again);
/* The same for one slot; without an evaluation it finds or makes one if there is something to do.
 */
void local_reconcile_slot(struct local *l, struct local_slot *slot, struct local_eval *ev);
/* Tries to place the slot's next alloc. False: it does not fit, and the blocked evaluation, which
 * follows ev, says why. */
bool local_reconcile_place(struct local *l, struct local_slot *slot, struct local_eval *ev);
/* The canary's alloc becomes the slot's; the slot's alloc is stopped. */
void local_reconcile_promote(struct local *l, struct local_slot *slot, struct local_slot *canary);
/* The same as local_reconcile_job(), at the agent's start, under the evaluation that was open when
 * it ended. */
void local_reconcile_resume(struct local *l, struct local_job *j);

#endif
