/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_allocs.h: the allocs that the servers have given to this node. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_ALLOCS_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_ALLOCS_H

#include "supervisor/cluster/node/nomad.h"

/* A job that came with an alloc, and its row. It exists while an alloc refers to it. */
struct nomad_job {
	struct nomad_job *next;
	struct job_ref *ref;
	unsigned n_allocs;
	struct dirty row;
	bool gone;
};

/* sup_alloc.source_data */
struct nomad_alloc {
	struct sup_alloc *sa;
	struct nomad_job *job;
	struct job_ref *runs_by;  /* the job version that its runner uses */
	struct nomad_alloc *next; /* link in the list of pending updates */
	bool pending;             /* it is in the list of pending updates */
	bool sending;             /* it is part of the call in progress */
	bool acked;               /* an update was sent to the servers ... */
	uint64_t acked_digest;    /* ... with this hash */
	uint64_t sending_digest;
	enum client_status acked_status, sending_status;
	unsigned seen;  /* number of the last list that contained it */
	bool removed;   /* the servers have removed it: it is being destroyed */
	bool claimed;   /* one of its volumes may be claimed */
	bool destroyed; /* client_alloc_destroy() was called for it */
	struct nomad_alloc *prev_done, *next_done;
	bool done; /* link in the list of allocs that may be destroyed */
};

/* An alloc that could not be accepted. It is reported to the servers and not requested again. */
struct nomad_invalid {
	struct nomad_invalid *next;
	struct alloc update;
	uint64_t alloc_modify_index;
	bool told, sending;
	unsigned seen; /* number of the last list that contained it */
};

static inline struct nomad_alloc *
nomad_alloc_of(struct sup_alloc *sa)
{
	return sa->source_data;
}

int nomad_allocs_load(struct nomad *n, struct err *e);
/* To be called after the restore: reports allocs that had ended before this supervisor started,
 * because they have no runner and their last update may not have been sent. */
void nomad_allocs_start(struct nomad *n);
/* Handles one entry of a new list. Returns true if the alloc must be pulled. */
void nomad_allocs_begin_list(struct nomad *n);
bool nomad_alloc_is_news(struct nomad *n, const char *id, uint64_t alloc_modify_index);
/* Returns how many allocs that are wanted here are missing in the list. */
unsigned nomad_allocs_lacking(const struct nomad *n);
/* Adds a new alloc or a newer version; takes over the contents of *a. */
void nomad_alloc_put(struct nomad *n, struct alloc *a);
void nomad_alloc_put_invalid(struct nomad *n, struct alloc *a, const struct err *e);
/* Handles the end of a list: allocs that are not in it were removed by the servers. */
void nomad_allocs_remove_others(struct nomad *n);
void nomad_alloc_updated(struct source *s, struct sup_alloc *sa);
void nomad_alloc_destroyed(struct source *s, struct sup_alloc *sa);
/* Removes the alloc from the node; false if it has not ended or nothing is left. */
bool nomad_alloc_collect(struct source *s, struct sup_alloc *sa);
bool nomad_alloc_collect_oldest(struct source *s);
void nomad_allocs_free(struct nomad *n);

#endif
