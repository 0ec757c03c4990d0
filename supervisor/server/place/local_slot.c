// SPDX-License-Identifier: Apache-2.0
/* local_slot.c: the decision about one slot of a job. Runs in: supervisor. */
#include "supervisor/server/place/local_slot.h"

/* The alloc has ended or will end, and is to be replaced. Two allocs with one name never run at the
 * same time. */
static enum local_slot_action
place_or_wait(const struct local_slot_facts *f)
{
	return f->ended && !f->holds_claims ? LOCAL_SLOT_PLACE : LOCAL_SLOT_WAIT;
}

enum local_slot_action
local_slot_decide(const struct local_slot_facts *f)
{
	if (!f->wanted)
		return f->exists && !f->stopped && !f->ended ? LOCAL_SLOT_STOP : LOCAL_SLOT_KEEP;
	if (!f->exists)
		return LOCAL_SLOT_PLACE;
	if (f->stopped)
		return place_or_wait(f);
	if (f->ended) {
		if (f->lease_ended || f->again || f->outdated != LOCAL_CURRENT ||
		    f->reschedule == LOCAL_AGAIN_NOW)
			return place_or_wait(f);
		/* A completed alloc, or one without attempts left, waits for a request. */
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

struct local_slot_steps
local_slot_get_steps(const struct local_slot_facts *f, enum local_slot_action action)
{
	return (struct local_slot_steps){
		.waits = action == LOCAL_SLOT_WAIT || action == LOCAL_SLOT_REPLACE ||
			 action == LOCAL_SLOT_LATER,
		.keeps_timer = action == LOCAL_SLOT_LATER,
		.keeps_unplaced = action == LOCAL_SLOT_PLACE,
		.counts_attempt =
		    f->reschedule == LOCAL_AGAIN_NOW && !f->again && f->outdated == LOCAL_CURRENT,
		.releases_alloc = action == LOCAL_SLOT_KEEP && !f->wanted && f->ended,
	};
}

bool
local_slot_needs_eval(enum local_slot_action action)
{
	return action != LOCAL_SLOT_KEEP && action != LOCAL_SLOT_STOP;
}

enum local_slot_eval
local_slot_choose_eval(enum local_slot_action action, bool waits, bool blocked)
{
	if (waits)
		return LOCAL_EVAL_WAITING;
	if (action == LOCAL_SLOT_PLACE && blocked)
		return LOCAL_EVAL_BLOCKED;
	return local_slot_needs_eval(action) ? LOCAL_EVAL_NEW : LOCAL_EVAL_NONE;
}

bool
local_slot_is_arranged(const struct local_slot_state *s, enum local_slot_action action)
{
	if (action == LOCAL_SLOT_PLACE)
		return s->unplaced && s->same_version;
	return s->waits && (action == LOCAL_SLOT_WAIT || action == LOCAL_SLOT_LATER);
}

void
local_slot_spend_budget(struct local_slot_facts *f, int64_t *budget)
{
	if (!f->held || *budget <= 0)
		return;
	f->outdated = LOCAL_UPDATE_REPLACE;
	--*budget;
}
