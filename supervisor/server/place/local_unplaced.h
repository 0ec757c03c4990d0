/* SPDX-License-Identifier: Apache-2.0 */
/* local_unplaced.h: the slots that could not be placed, and the evaluation that says why. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_UNPLACED_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_UNPLACED_H

#include "model/alloc.h"
#include "supervisor/server/job/local_evals.h"
#include "supervisor/server/job/local_slots.h"

struct local_wants {
	struct local_want *first, *last;
};

int local_unplaced_init(struct local *l);
void local_unplaced_free(struct local *l);

/* The slot could not be placed, for this reason; or it is placed, or need not be any more. Each may
 * be repeated. */
void local_unplaced_add(
    struct local *l, struct local_slot *slot, const struct local_shortage *shortage);
void local_unplaced_remove(struct local *l, struct local_slot *slot);
/* The job is forgotten: removes all its slots. */
void local_unplaced_forget_job(struct local *l, struct local_job *j);

/* The slots that are short of usage or ports; of anything else. */
struct local_wants *local_unplaced_capacity(struct local *l);
struct local_wants *local_unplaced_other(struct local *l);
/* This one stays in its list, even empty, until the next call. NULL: none has to. */
void local_unplaced_hold(struct local *l, struct local_want *want);

/* Notes in ev why the group does not fit. Takes over *m. True: it is news. */
bool local_unplaced_note(struct local_eval *ev, const char *group, struct alloc_metric *m);
/* The blocked evaluation that follows ev; made where there is none. NULL: no memory. */
struct local_eval *local_unplaced_block(
    struct local *l, struct local_job *j, struct local_eval *ev);
/* Ends the blocked evaluation if all slots of the job are placed. */
void local_unplaced_unblock(struct local *l, struct local_job *j);

#endif
