/* SPDX-License-Identifier: Apache-2.0 */
/* local_unplaced.h: what of a job has no room, and the evaluation that waits for it. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_UNPLACED_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_UNPLACED_H

#include "supervisor/server/local.h"

/* The slot has no place for want of that; or it has one, or wants none any more. Each may come
 * again. */
void local_unplaced_add(struct local *l, struct local_slot *slot, const struct local_lack *lack);
void local_unplaced_remove(struct local *l, struct local_slot *slot);
/* Forgets what nobody wants any more. */
void local_want_trim(struct local *l, struct local_want *want);
/* Notes in ev why the group does not fit. Takes over *m. True: it is news. */
bool local_unplaced_note(struct local_eval *ev, const char *group, struct alloc_metric *m);
/* The blocked evaluation that follows ev; made where there is none. NULL: no memory. */
struct local_eval *local_unplaced_block(
    struct local *l, struct local_job *j, struct local_eval *ev);
/* All slots of the job have their place, perhaps: then what was blocked is done. */
void local_unplaced_unblock(struct local *l, struct local_job *j);
#endif
