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
	LIST_ENTRY(local_alloc) of_job; /* newest first */
	TAILQ_ENTRY(local_alloc) done_entry;
	struct job_ref *runs_by;  /* the version that its runner's tasks point into, after an
				     update in place; or NULL */
	struct local_usage usage; /* of the node, until it is over */
	bool over;                /* its usage and its ports are released */
	bool done;                /* in the list of allocs that may be destroyed */
	bool destroyed;           /* client_alloc_destroy() was called */
	bool collected;           /* destroyed for its disk space only: it occupies its slot */
	/* claim/local_claims.c */
	unsigned n_claims;
	uint64_t held; /* bit for each request of the group that has not been released */
	struct claim_wait *claim_wait; /* claim/local_attach.c: its claim is not answered yet */
	struct local_news news;
};

static inline struct local_alloc *
local_alloc_of(struct sup_alloc *sa)
{
	return sa->source_data;
}

void local_allocs_init(struct local *l);
void local_allocs_free(struct local *l);
int local_allocs_load(struct local *l, struct err *e);

/* Enters sa into its slot; reserves its usage and ports if it is not over. Returns NULL if sa's
 * name has no index. */
struct local_alloc *local_alloc_new(struct local *l, struct sup_alloc *sa, struct local_job *j);
/* Forgets it, at a new index; sa stays. */
void local_alloc_remove(struct local *l, struct local_alloc *la);
/* To be called when its index has changed. */
void local_alloc_changed(struct local *l, struct local_alloc *la);
/* Its client status is terminal: releases its usage and ports. */
void local_alloc_end(struct local *l, struct local_alloc *la);
/* Stops it, for this reason; without effect if it was stopped already. */
void local_alloc_stop(struct local *l, struct local_alloc *la, const char *why);
/* Stops it because another alloc replaces it. */
void local_alloc_stop_replaced(struct local *l, struct local_alloc *la);
/* Lets it skip its shutdown_delay: when it is stopped, or now. */
void local_alloc_skip_delay(struct local *l, struct local_alloc *la);
/* It is over and its slot does not need it: destroys it when gc_max_allocs newer ones are over
 * too, or at once if the job is purged. */
void local_alloc_retire(struct local *l, struct local_alloc *la);
/* The job is purged: destroys its allocs that are over. */
void local_allocs_retire(struct local *l, struct local_job *j);
/* Destroys retired allocs without claims whose tasks ended before that time. */
void local_allocs_forget(struct local *l, int64_t before_ns);
/* source_ops.collect and .collect_oldest */
bool local_alloc_collect(struct source *s, struct sup_alloc *sa);
bool local_alloc_collect_oldest(struct source *s);

#endif
