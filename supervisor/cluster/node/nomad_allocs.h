/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_allocs.h: the allocs that the servers have given to this node. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_ALLOCS_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_ALLOCS_H

#include "supervisor/cluster/node/nomad.h"

/* A job that came with an alloc, and its row. It exists while an alloc refers to it. */
struct nomad_job {
	LIST_ENTRY(nomad_job) link;
	struct job_ref *ref;
	unsigned n_allocs; /* allocs that refer to it */
	struct dirty row;
	bool gone;
};

/* sup_alloc.source_data */
struct nomad_alloc {
	struct sup_alloc *sa;
	struct nomad_job *job;
	struct job_ref *runs_by; /* the job version that its runner uses */
	LIST_ENTRY(nomad_alloc) pending_link;
	bool pending;        /* it is in the list of pending updates */
	bool sending;        /* it is part of the call in progress */
	bool acked;          /* the servers have acknowledged an update ... */
	uint64_t acked_hash; /* ... with this hash */
	struct dirty acked_row;
	uint64_t sending_hash;
	enum client_status acked_status, sending_status;
	unsigned seen;  /* number of the last list that contained it */
	bool foreign;   /* it is of an earlier identity of this node: servers do not hear of it */
	bool removed;   /* the servers have removed it: it is being destroyed */
	bool claimed;   /* one of its volumes may be claimed */
	bool destroyed; /* client_alloc_destroy() was called for it */
	TAILQ_ENTRY(nomad_alloc) done_link;
	bool done; /* it is in the list of allocs that may be destroyed */
};

/* An alloc that could not be accepted. It is reported to the servers and not requested again. */
struct nomad_invalid {
	LIST_ENTRY(nomad_invalid) link;
	struct alloc update;
	uint64_t alloc_modify_index;
	bool reported, sending;
	unsigned seen; /* number of the last list that contained it */
};

static inline struct nomad_alloc *
nomad_alloc_of(struct sup_alloc *sa)
{
	return sa->source_data;
}

int nomad_allocs_load(struct nomad *n, struct err *e);
/* To be called after the restore: reports allocs that had ended before this supervisor started,
 * because their last update may not have been sent. Removes those of an earlier identity. */
void nomad_allocs_start(struct nomad *n);
/* Begins a new list. */
void nomad_allocs_begin_list(struct nomad *n);
/* Handles one entry of the list. Returns true if the alloc must be pulled. */
bool nomad_alloc_is_news(struct nomad *n, const char *id, uint64_t alloc_modify_index);
/* Returns how many allocs that are wanted here are missing in the list. */
unsigned nomad_allocs_lacking(const struct nomad *n);
/* Adds a new alloc or a newer version; takes over the contents of *a. */
void nomad_alloc_put(struct nomad *n, struct alloc *a);
/* Reports an alloc that cannot be run as failed, with the reason *e. */
void nomad_alloc_put_invalid(struct nomad *n, struct alloc *a, const struct err *e);
/* Handles the end of a list: allocs that are not in it were removed by the servers. */
void nomad_allocs_remove_others(struct nomad *n);
/* source_ops.alloc_updated and alloc_destroyed. */
void nomad_alloc_updated(struct source *s, struct sup_alloc *sa);
void nomad_alloc_destroyed(struct source *s, struct sup_alloc *sa);
/* Removes the alloc from the node; false if it has not ended or nothing is left. */
bool nomad_alloc_collect(struct source *s, struct sup_alloc *sa);
bool nomad_alloc_collect_oldest(struct source *s);
void nomad_allocs_free(struct nomad *n);

#endif
