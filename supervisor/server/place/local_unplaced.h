/* SPDX-License-Identifier: Apache-2.0 */
/* local_unplaced.h: the slots that could not be placed, and the blocked evaluations that say why.
 * Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_UNPLACED_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_UNPLACED_H

#include "model/alloc.h"
#include "supervisor/server/job/local_evals.h"
#include "supervisor/server/job/local_slots.h"

TAILQ_HEAD(local_queues, local_queue);

void local_unplaced_init(struct local *l);
void local_unplaced_free(struct local *l);

/* Adds a slot that could not be placed, for this reason; a slot that is there moves if its reason
 * is another. */
void local_unplaced_add(
    struct local *l, struct local_slot *slot, const struct local_shortage *shortage);
/* Removes a slot that is placed or not wanted any more; without effect if it is not there. */
void local_unplaced_remove(struct local *l, struct local_slot *slot);
/* The job is forgotten: removes all its slots. */
void local_unplaced_forget_job(struct local *l, struct local_job *j);

/* Return the shortages of capacity (usage or ports), and all others. */
struct local_queues *local_unplaced_capacity(struct local *l);
struct local_queues *local_unplaced_other(struct local *l);
/* Keeps this one in its list, even empty, until the next call; NULL: none. */
void local_unplaced_hold(struct local *l, struct local_queue *queue);

/* Sets the reason in ev why the group was not placed. Takes over *m. Returns false if it is the
 * same as before. */
bool local_unplaced_set_reason(struct local_eval *ev, const char *group, struct alloc_metric *m);
/* Returns the job's blocked evaluation, which follows ev; makes it if there is none. */
struct local_eval *local_unplaced_block(
    struct local *l, struct local_job *j, struct local_eval *ev);
/* Ends the blocked evaluation if all slots of the job are placed. */
void local_unplaced_unblock(struct local *l, struct local_job *j);

#endif
