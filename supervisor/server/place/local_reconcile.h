/* SPDX-License-Identifier: Apache-2.0 */
/* local_reconcile.h: makes the allocs of a job match its wanted version, slot by slot. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_RECONCILE_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_RECONCILE_H

#include "supervisor/server/job/local_evals.h"
#include "supervisor/server/job/local_slots.h"

/*
 * Compares the job with its allocs and acts under ev, which is open. ev is closed when everything
 * is done, which may include waiting for allocs to end. Without ev an evaluation is made if there
 * is anything to do. again: allocs that ended by themselves are replaced too.
 */
void local_reconcile_job(struct local *l, struct local_job *j, struct local_eval *ev, bool again);
/* Does the same for one slot; without ev it finds or makes an evaluation if there is anything to
 * do.
 */
void local_reconcile_slot(struct local *l, struct local_slot *slot, struct local_eval *ev);
/* Tries to place the slot's next alloc. Returns false if it does not fit; the blocked evaluation,
 * which follows ev, then says why. */
bool local_reconcile_place(struct local *l, struct local_slot *slot, struct local_eval *ev);
/* Moves the canary's alloc into the slot, whose alloc is stopped. */
void local_reconcile_promote(struct local *l, struct local_slot *slot, struct local_slot *canary);
/* Calls local_reconcile_job() at the agent's start, under the evaluation that was open when the
 * agent ended. */
void local_reconcile_resume(struct local *l, struct local_job *j);

#endif
