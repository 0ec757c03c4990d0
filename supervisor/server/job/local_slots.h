/* SPDX-License-Identifier: Apache-2.0 */
/* local_slots.h: the places of a job's allocs, "job.group[index]". Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_LOCAL_SLOTS_H
#define DROVER_SUPERVISOR_SERVER_JOB_LOCAL_SLOTS_H

#include <sys/queue.h>

#include "supervisor/server/capacity/local_shortage.h"
#include "supervisor/server/job/local_job.h"

struct local_alloc;
struct local_eval;
struct sd_event_source;

/* The slots that wait for the same thing, oldest first: whether it is there is checked once for all
 * of them. place/local_unplaced.c */
struct local_want {
	struct local_shortage shortage;
	const void *kept_by; /* the alloc or the dimension that the last check found in the way */
	struct local_slot *first, *last;
	struct local_want *prev, *next;
};

/* At most one of a slot's allocs is not over. A canary's slot is another one than that of the same
 * index. */
struct local_slot {
	struct local_job *job;
	struct local_group *group;
	int64_t index;
	bool canary;
	struct local_alloc *current; /* the newest; NULL: none is known */
	/* place/local_reconcile.c */
	struct local_eval *waits; /* counts this slot until its current alloc is over, or may be
				     rescheduled */
	struct sd_event_source *reschedule;
	/* place/local_unplaced.c */
	struct local_want *want; /* NULL: it has its place, or needs none */
	uint64_t want_version;   /* the version of the job that was not placed */
	struct local_slot *prev_wanting, *next_wanting;
	/* local_marks.c */
	STAILQ_ENTRY(local_slot) next_marked;
	bool marked;
};

/* A group of any version of the job. Stays as long as the job. */
struct local_group {
	char *name;
	struct local_slot **slots, **canaries;
	size_t n_slots, n_canaries;
	struct local_want other; /* of slots that are short of something other than capacity */
};

/* Makes the slot, and those before it, if they are new. NULL: no memory. */
struct local_slot *local_slot_get(struct local_job *j, const char *group, int64_t index);
struct local_slot *local_canary_get(struct local_job *j, const char *group, int64_t index);
struct local_group *local_group_find(const struct local_job *j, const char *name); /* NULL */
/* Frees all groups and slots of the job; none is in a local_want any more. */
void local_slots_free(struct local_job *j);

#endif
