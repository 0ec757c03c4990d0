/* SPDX-License-Identifier: Apache-2.0 */
/* local_allocs.h: what the server knows of each alloc, from its placement to its removal. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_LOCAL_ALLOCS_H
#define DROVER_SUPERVISOR_SERVER_JOB_LOCAL_ALLOCS_H

#include "supervisor/server/capacity/local_usage.h"
#include "supervisor/server/job/local_slots.h"

/* sup_alloc.source_data */
struct local_alloc {
	struct sup_alloc *sa;
	struct local_job *job;
	struct local_slot *slot;
	struct local_alloc *prev, *next; /* of the job */
	struct local_alloc *prev_done, *next_done;
	struct job_ref *runs_by;  /* the version whose tasks its runner holds: an update in place
				     does not free them */
	struct local_usage usage; /* of the node, until it is over */
	bool over;                /* its usage and its ports are given back */
	bool done;                /* in the list of those that may be destroyed */
	bool destroyed;           /* client_alloc_destroy() was called */
	bool collected;           /* too, but it stands for its slot still */
	/* claim/local_claims.c */
	unsigned n_claims;
	uint64_t held; /* bit per request of the group that has not been released */
	struct local_news news;
};

static inline struct local_alloc *
local_alloc_of(struct sup_alloc *sa)
{
	return sa->source_data;
}

int local_allocs_init(struct local *l);
void local_allocs_free(struct local *l);
int local_allocs_load(struct local *l, struct err *e);

/* Enters sa; takes its usage and ports if it is not over. NULL: no memory. */
struct local_alloc *local_alloc_new(struct local *l, struct sup_alloc *sa, struct local_job *j);
/* Forgets it, at a new index; sa stays. */
void local_alloc_remove(struct local *l, struct local_alloc *la);
/* Its index has changed. */
void local_alloc_changed(struct local *l, struct local_alloc *la);
/* Its client status is terminal: gives back its usage and ports. */
void local_alloc_end(struct local *l, struct local_alloc *la);
/* Tells it to stop, unless that is done. */
void local_alloc_stop(struct local *l, struct local_alloc *la, const char *why);
/* The same, because another alloc takes its place. */
void local_alloc_succeeded(struct local *l, struct local_alloc *la);
/* Its shutdown_delay is skipped when it stops, or now, if it is in it. */
void local_alloc_hurry(struct local *l, struct local_alloc *la);
/* It is over and its slot does not need it: destroyed once gc_max_allocs newer ones are too. */
void local_alloc_done(struct local *l, struct local_alloc *la);
/* The job is purged: none of its allocs that are over is kept. */
void local_allocs_release(struct local *l, struct local_job *j);
/* Destroys allocs that nothing needs and whose tasks ended before that time. */
void local_allocs_forget(struct local *l, int64_t before_ns);
/* Removes from the node what is left of an alloc that has ended; false: there is nothing. */
bool local_alloc_collect(struct source *s, struct sup_alloc *sa);
bool local_alloc_collect_oldest(struct source *s);

#endif
