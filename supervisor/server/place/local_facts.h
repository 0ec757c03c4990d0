/* SPDX-License-Identifier: Apache-2.0 */
/* local_facts.h: collects the facts about a slot, for the decision about it (local_slot.h). Runs
 * in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_FACTS_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_FACTS_H

#include "supervisor/server/job/local_slots.h"
#include "supervisor/server/place/local_slot.h"

/* Returns the facts as if this version of the job were wanted. again: see local_slot.h. */
struct local_slot_facts local_facts_get(
    const struct local_slot *slot, const struct job *wanted, bool again);
/* Returns the version of the job for the slot's next alloc. */
struct job_ref *local_facts_next_version(const struct local_slot *slot);

#endif
