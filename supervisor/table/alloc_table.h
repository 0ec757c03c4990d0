/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_table.h: all allocs of this node, by id, with their rows. The source writes the server's
 * fields, the alloc runner the client's; both call alloc_changed(), and the row is written at the
 * end of the turn. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_TABLE_ALLOC_TABLE_H
#define DROVER_SUPERVISOR_TABLE_ALLOC_TABLE_H

#include "common/hash.h"
#include "common/id.h"
#include "common/list.h"
#include "model/alloc.h"
#include "model/job.h"
#include "model/engine/text.h"
#include "supervisor/core/sup.h"
#include "supervisor/core/sup_turn.h"

/* One version of a job, shared by all its allocs. It is never changed. */
struct job_ref {
	unsigned refs;
	uint64_t key; /* part of its row's key, with namespace and id: the version, unless the
			 source sets another number */
	struct job job;
};

/* Makes a job_ref from the contents of *job, which is emptied. The caller gets one reference. */
struct job_ref *job_ref_new(struct job *job);
/* Adds a reference. job_ref_put() drops one; the last frees j. */
struct job_ref *job_ref_get(struct job_ref *j);
void job_ref_put(struct job_ref *j);

struct alloc_runner;

struct sup_alloc {
	struct hash_link by_id;
	TAILQ_ENTRY(sup_alloc) link; /* in alloc_table.list, oldest first */
	struct id id;
	struct alloc a; /* a.job is always NULL; use `job` */
	struct job_ref *job;
	const struct task_group *group; /* points into job */
	struct alloc_runner *runner;    /* NULL if nothing of the alloc is on the node any more */
	char *client_json; /* further data of the client (restart counts, hook data), opaque here;
			      NULL: none */
	struct dirty row;
	bool tokens_kept; /* the row has a.signed_identities, or those that cannot be decrypted */
	bool gone; /* alloc_forget() was called: the row is deleted at the end of the turn, then the
	       alloc is freed */
	void *source_data;                    /* owned by the source */
	LIST_HEAD(, source_service) services; /* those that the source has registered */
};

/* A place among all allocs, which others may add and forget meanwhile. */
struct alloc_cursor {
	LIST_ENTRY(alloc_cursor) link;
	struct sup_alloc *next;
};

struct alloc_table {
	TAILQ_HEAD(, sup_alloc) list;
	LIST_HEAD(, alloc_cursor) cursors;
	struct hash_table by_id;
	unsigned n;
	struct text json;      /* of the row that is being written */
	struct id *unreadable; /* ids of unreadable rows; zeros: the id is unknown */
	unsigned n_unreadable;
};

void alloc_table_new(struct sup *sup);
void alloc_table_free(struct sup *sup);

/* Adds an alloc; takes over *a (emptied) and a reference of job. Its id must be new. The row is
 * written in this turn. NULL if the id is not a UUID; nothing is taken over then. */
struct sup_alloc *alloc_add(struct sup *sup, struct alloc *a, struct job_ref *job);
struct sup_alloc *alloc_find(struct sup *sup, const struct id *id);
/* Returns true if the alloc has an unreadable row. Its state is unknown, so it must not be run
 * again. */
bool alloc_is_unreadable(const struct sup *sup, const struct id *id);
/* Marks the alloc's row to be written at the end of this turn. */
void alloc_changed(struct sup *sup, struct sup_alloc *sa);
/* The same after a change of a.signed_identities, which the row has encrypted (seal.h). */
void alloc_tokens_changed(struct sup *sup, struct sup_alloc *sa);
/* Removes the alloc from the table and deletes its row; sa is freed after the commit. It must have
 * no runner. */
void alloc_forget(struct sup *sup, struct sup_alloc *sa);
/* Visits the allocs, oldest first, in as many turns as the caller needs. */
void alloc_cursor_begin(struct sup *sup, struct alloc_cursor *c);
struct sup_alloc *alloc_cursor_next(struct alloc_cursor *c); /* NULL after the last */
void alloc_cursor_end(struct alloc_cursor *c);               /* once */
/* Reads all rows; job(ns, id, key) returns a reference, or NULL (then the alloc is logged as an
 * error and its row is kept). */
int alloc_table_load(struct sup *sup,
    struct job_ref *(*job)(struct sup *, const char *, const char *, uint64_t), struct err *e);

static inline struct sup_alloc *
alloc_first(struct sup *sup)
{
	return TAILQ_FIRST(&sup->allocs->list);
}

static inline struct sup_alloc *
alloc_next(struct sup_alloc *sa)
{
	return TAILQ_NEXT(sa, link);
}

/* Visits the allocs, oldest first. The body may forget sa. */
#define alloc_foreach(sup, sa)                                                                     \
	for (struct sup_alloc *sa = alloc_first(sup); sa; sa = alloc_next(sa))

/* For journal.h: a line about the alloc, one of its tasks, or one of its volumes. */
#define ABOUT_ALLOC(sa)        ABOUT_PART(sa, NULL, NULL)
#define ABOUT_TASK(sa, name)   ABOUT_PART(sa, name, NULL)
#define ABOUT_VOLUME(sa, name) ABOUT_PART(sa, NULL, name)
#define ABOUT_PART(sa, task_name, volume_name)                                                     \
	(&(struct journal_about){ .alloc_id = (sa)->a.id,                                          \
	    .namespace = (sa)->a.namespace,                                                        \
	    .job = (sa)->a.job_id,                                                                 \
	    .task = (task_name),                                                                   \
	    .volume = (volume_name) })

/* Finds the task of this name in the alloc's group; NULL if there is none. */
const struct task *alloc_task(const struct sup_alloc *sa, const char *name);

/* Returns where this task's output goes: as its job says, else as the configuration. */
enum exec_log_store task_log_store(const struct agent_config *config, const struct task *task);

#endif
