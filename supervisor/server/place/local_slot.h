/* SPDX-License-Identifier: Apache-2.0 */
/* local_slot.h: what is to be done about "job.group[index]": the decision, without its effects.
 * Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_SLOT_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_SLOT_H

#include <stdbool.h>

#include "supervisor/server/job/local_outdated.h"

/* May what failed by itself have a successor, by the group's reschedule block? */
enum local_again {
	LOCAL_AGAIN_NEVER,
	LOCAL_AGAIN_LATER,
	LOCAL_AGAIN_NOW,
};

/* What is known of a slot and its newest alloc. */
struct local_slot_facts {
	bool wanted; /* the job runs, has the group, and its count reaches this index */
	bool again;  /* an operator asks for what should run: also for what has ended by itself */
	bool exists; /* there is an alloc; the rest is about it */
	bool told_to_stop; /* DesiredStatus stop or evict */
	bool ended;        /* ClientStatus is terminal */
	bool holds_claims;
	/* It was stopped by its lease. Its tasks are gone, by the record of their executor or
	 * because their cgroup is: none is dead here before, so nothing has to be waited for. */
	bool lease_ended;
	enum local_again reschedule; /* of one that failed */
	enum local_outdated outdated;
	bool held; /* it would be replaced, but its deployment lets it stay for now */
};

enum local_slot_action {
	LOCAL_SLOT_KEEP,
	LOCAL_SLOT_PLACE,
	LOCAL_SLOT_UPDATE,  /* take the new version without a restart */
	LOCAL_SLOT_STOP,    /* and nothing after it */
	LOCAL_SLOT_REPLACE, /* stop, then wait */
	LOCAL_SLOT_WAIT,    /* place when it has ended and given back its volumes */
	LOCAL_SLOT_LATER,   /* look again when it may be rescheduled */
};

enum local_slot_action local_slot_decide(const struct local_slot_facts *f);

/* What goes with an action. */
struct local_slot_steps {
	bool waits;       /* the slot goes on to be counted by the evaluation that waits for it */
	bool keeps_timer; /* of its reschedule */
	bool keeps_unplaced; /* it stays with the slots that could not be placed */
	bool counts_attempt; /* its alloc failed, and its successor counts as a reschedule */
	bool releases_alloc; /* nothing needs the alloc any more */
};

struct local_slot_steps local_slot_get_steps(
    const struct local_slot_facts *f, enum local_slot_action action);

/* The evaluation under which an action happens for which nobody has asked. */
enum local_slot_eval {
	LOCAL_EVAL_NONE,    /* it needs none */
	LOCAL_EVAL_WAITING, /* the one that waits for the slot's alloc to end */
	LOCAL_EVAL_BLOCKED, /* the one of the job's unplaced slots */
	LOCAL_EVAL_NEW,
};

/* waits, blocked: there is such an evaluation. */
enum local_slot_eval local_slot_choose_eval(
    enum local_slot_action action, bool waits, bool blocked);
bool local_slot_needs_eval(enum local_slot_action action);

#endif
