/* SPDX-License-Identifier: Apache-2.0 */
/* local_slots.h: slots: the places of a job's allocs, "job.group[index]". Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_LOCAL_SLOTS_H
#define DROVER_SUPERVISOR_SERVER_JOB_LOCAL_SLOTS_H

#include "supervisor/core/sup_timer.h"
#include "supervisor/server/capacity/local_shortage.h"
#include "supervisor/server/job/local_job.h"

struct local_alloc;
struct local_eval;
struct sd_event_source;

/* The slots that have the same shortage, oldest first: one check is made for all of them.
 * place/local_unplaced.c */
struct local_queue {
	struct local_shortage shortage;
	const void *obstacle; /* the alloc or dimension that the last check found in the way */
	TAILQ_HEAD(, local_slot) slots;
	TAILQ_ENTRY(local_queue) entry;
};

/* At most one of a slot's allocs is not over. A group's canaries have slots of their own, with
 * indexes of their own. */
struct local_slot {
	struct local_job *job;
	struct local_group *group;
	int64_t index;
	bool canary;
	struct local_alloc *current; /* the newest alloc; NULL: none is known */
	/* place/local_reconcile.c */
	struct local_eval *waits; /* the evaluation that waits until the current alloc is over, or
				     may be rescheduled */
	struct sup_timer reschedule;
	/* place/local_unplaced.c */
	struct local_queue *queue; /* why it is not placed; NULL: it is placed, or not wanted */
	uint64_t unplaced_version; /* the version of the job that could not be placed */
	TAILQ_ENTRY(local_slot) queue_entry;
	/* local_marks.c */
	STAILQ_ENTRY(local_slot) next_marked;
	bool marked;
};

/* A group of any version of the job. It exists as long as the job. */
struct local_group {
	char *name;
	struct local_slot **slots, **canaries;
	size_t n_slots, n_canaries;
	struct local_queue other; /* the slots with LOCAL_SHORT_OTHER */
};

/* Make the slot, and those before it, if they are new. NULL: the index is below 0. */
struct local_slot *local_slot_get(struct local_job *j, const char *group, int64_t index);
struct local_slot *local_canary_get(struct local_job *j, const char *group, int64_t index);
struct local_group *local_group_find(const struct local_job *j, const char *name); /* or NULL */
/* Frees all groups and slots of the job. No slot may be in a local_queue any more. */
void local_slots_free(struct local_job *j);

#endif
