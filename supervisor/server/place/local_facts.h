/* SPDX-License-Identifier: Apache-2.0 */
/* local_facts.h: what is known of a slot, for the decision about it (local_slot.h). Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_FACTS_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_FACTS_H

#include "supervisor/server/job/local_slots.h"
#include "supervisor/server/place/local_slot.h"

/* If this version of its job were wanted. again: an operator asks. */
struct local_slot_facts local_facts_get(
    const struct local_slot *slot, const struct job *wanted, bool again);
/* The version of the job that the slot's next alloc is of. */
struct job_ref *local_facts_next_version(const struct local_slot *slot);

#endif
