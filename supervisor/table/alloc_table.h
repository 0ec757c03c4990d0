/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_table.h: every alloc this node knows, by id, with its row. The source writes the server's
 * fields, the alloc runner the client's; both call alloc_changed() and the row follows at the end
 * of the turn. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_TABLE_ALLOC_TABLE_H
#define DROVER_SUPERVISOR_TABLE_ALLOC_TABLE_H

#include "common/id.h"
#include "model/alloc.h"
#include "model/job.h"
#include "supervisor/core/sup.h"
#include "supervisor/core/sup_turn.h"

/* One version of a job, shared by all its allocs. Never changed once made. */
struct job_ref {
	unsigned refs;
	uint64_t key; /* names its row, with namespace and id: the version, unless the source sets
			 another */
	struct job job;
};

/* Takes over what *job holds (which is emptied). One reference is the caller's. */
struct job_ref *job_ref_new(struct job *job);
struct job_ref *job_ref_get(struct job_ref *j);
void job_ref_put(struct job_ref *j);

struct alloc_runner;

struct sup_alloc {
	struct sup_alloc *next_by_id;  /* hash chain */
	struct sup_alloc *prev, *next; /* all, oldest first */
	struct id id;
	struct alloc a; /* a.job is NULL always: job is the one */
	struct job_ref *job;
	const struct task_group *group; /* in job */
	struct alloc_runner *runner;    /* NULL when nothing of it is on the node any more */
	char *client_json; /* what the client keeps beside (restart counts, hook data), opaque here;
			      NULL none */
	struct dirty row;
	bool gone; /* alloc_forget() was called: the row is deleted at the end of the turn, then it
		      is freed */
	void *source_data;               /* the source's own; it frees it */
	struct source_service *services; /* the source's: what is registered of it */
};

struct alloc_table {
	struct sup_alloc **buckets;
	unsigned n_buckets, n;
	struct sup_alloc *first, *last;
	struct id *unreadable; /* of rows that were left alone; zeros: without an id */
	unsigned n_unreadable;
};

int alloc_table_new(struct sup *sup, struct err *e);
void alloc_table_free(struct sup *sup);

/* Adds one; takes over *a (emptied) and a reference of job. Its id must be new. The row is written
 * this turn. */
struct sup_alloc *alloc_add(struct sup *sup, struct alloc *a, struct job_ref *job);
struct sup_alloc *alloc_find(struct sup *sup, const struct id *id);
/* Has it a row that could not be read? What became of it nobody knows: it is not run again. */
bool alloc_is_unreadable(const struct sup *sup, const struct id *id);
/* The row is written at the end of this turn. */
void alloc_changed(struct sup *sup, struct sup_alloc *sa);
/* Takes it out of the table and deletes the row; sa is freed after the commit. It must have no
 * runner. */
void alloc_forget(struct sup *sup, struct sup_alloc *sa);
/* Reads all rows; job(ns, id, key) gives a reference or NULL (then the alloc is an error that
 * is logged and kept). */
int alloc_table_load(struct sup *sup,
    struct job_ref *(*job)(struct sup *, const char *, const char *, uint64_t), struct err *e);

#define alloc_foreach(sup, sa) for (struct sup_alloc *sa = (sup)->allocs->first; sa; sa = sa->next)

/* The struct task of this name in the alloc's group; NULL. */
const struct task *alloc_task(const struct sup_alloc *sa, const char *name);

#endif
