/* SPDX-License-Identifier: Apache-2.0 */
/* local_slot.h: the decision about one slot, "job.group[index]", without its effects. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_SLOT_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "supervisor/server/job/local_outdated.h"

/* Whether a failed alloc may be replaced, by the group's reschedule block. */
enum local_again {
	LOCAL_AGAIN_NEVER,
	LOCAL_AGAIN_LATER,
	LOCAL_AGAIN_NOW,
};

/* Facts about a slot and its newest alloc. */
struct local_slot_facts {
	bool wanted;  /* the job runs, has the group, and its count reaches this index */
	bool again;   /* an operator's request: allocs that ended by themselves run again too */
	bool exists;  /* there is an alloc; the other facts are about it */
	bool stopped; /* DesiredStatus stop or evict */
	bool ended;   /* ClientStatus is terminal */
	bool holds_claims;
	bool lease_ended;            /* it was stopped because its lease ended, and is replaced */
	enum local_again reschedule; /* if it failed */
	enum local_outdated outdated;
	bool held; /* it would be replaced, but its deployment keeps it for now */
};

enum local_slot_action {
	LOCAL_SLOT_KEEP,
	LOCAL_SLOT_PLACE,
	LOCAL_SLOT_UPDATE,  /* update to the new version in place, without a restart */
	LOCAL_SLOT_STOP,    /* without a replacement */
	LOCAL_SLOT_REPLACE, /* stop, then wait */
	LOCAL_SLOT_WAIT,    /* place when the alloc has ended and released its volumes */
	LOCAL_SLOT_LATER,   /* decide again when the alloc may be rescheduled */
};

enum local_slot_action local_slot_decide(const struct local_slot_facts *f);

/* The steps that accompany an action. */
struct local_slot_steps {
	bool waits;          /* an evaluation goes on waiting for the slot */
	bool keeps_timer;    /* of its reschedule */
	bool keeps_unplaced; /* the slot stays among those that could not be placed */
	bool counts_attempt; /* the alloc failed, and its replacement counts as an attempt */
	bool releases_alloc; /* the alloc is not needed any more */
};

struct local_slot_steps local_slot_get_steps(
    const struct local_slot_facts *f, enum local_slot_action action);

/* The evaluation of an action that was not requested. */
enum local_slot_eval {
	LOCAL_EVAL_NONE,    /* the action needs none */
	LOCAL_EVAL_WAITING, /* the one that waits for the slot's alloc to end */
	LOCAL_EVAL_BLOCKED, /* the one of the job's unplaced slots */
	LOCAL_EVAL_NEW,
};

/* waits, blocked: such an evaluation exists. */
enum local_slot_eval local_slot_choose_eval(
    enum local_slot_action action, bool waits, bool blocked);
bool local_slot_needs_eval(enum local_slot_action action);

/* A slot that waits already. */
struct local_slot_state {
	bool waits;        /* an evaluation waits for it */
	bool unplaced;     /* it could not be placed */
	bool same_version; /* if unplaced: the version that could not be placed is still wanted */
};

/* Returns true if the slot already waits for this action, so that it needs to be taken again only
 * on request. Another version of an unplaced slot may fit. */
bool local_slot_is_arranged(const struct local_slot_state *s, enum local_slot_action action);
/* Lets a slot that its deployment holds be replaced, while *budget is above 0. */
void local_slot_spend_budget(struct local_slot_facts *f, int64_t *budget);

#endif
