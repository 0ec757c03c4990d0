// SPDX-License-Identifier: Apache-2.0
/* local_slot.c: the decision about one slot of a job. Runs in: supervisor. */
#include "supervisor/server/place/local_slot.h"

/* The alloc has ended, or will, and its successor is wanted: two allocs of one name never run at
 * once. */
static enum local_slot_action
succeed(const struct local_slot_facts *f)
{
	return f->ended && !f->holds_claims ? LOCAL_SLOT_PLACE : LOCAL_SLOT_WAIT;
}

enum local_slot_action
local_slot_decide(const struct local_slot_facts *f)
{
	if (!f->wanted)
		return f->exists && !f->told_to_stop && !f->ended ? LOCAL_SLOT_STOP
								  : LOCAL_SLOT_KEEP;
	if (!f->exists)
		return LOCAL_SLOT_PLACE;
	if (f->told_to_stop)
		return succeed(f);
	if (f->ended) {
		if (f->lease_ended || f->again || f->outdated != LOCAL_CURRENT ||
		    f->reschedule == LOCAL_AGAIN_NOW)
			return succeed(f);
		/* What completed, or failed beyond its attempts, stays so until somebody asks. */
		return f->reschedule == LOCAL_AGAIN_LATER ? LOCAL_SLOT_LATER : LOCAL_SLOT_KEEP;
	}
	switch (f->outdated) {
	case LOCAL_UPDATE_REPLACE:
		return LOCAL_SLOT_REPLACE;
	case LOCAL_UPDATE_IN_PLACE:
		return LOCAL_SLOT_UPDATE;
	case LOCAL_CURRENT:
		break;
	}
	return LOCAL_SLOT_KEEP;
}
