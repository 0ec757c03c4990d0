/* SPDX-License-Identifier: Apache-2.0 */
/* local_job.h: jobs and their versions. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_LOCAL_JOB_H
#define DROVER_SUPERVISOR_SERVER_JOB_LOCAL_JOB_H

#include <sys/queue.h>

#include "supervisor/server/base/local.h"
#include "supervisor/server/base/local_map.h"
#include "supervisor/server/base/local_news.h"
#include "supervisor/table/alloc_table.h"

struct local_alloc;
struct local_deployment;
struct local_eval;
struct local_family;
struct local_group;
struct local_slot;

/* One version of a job and its row. */
struct local_version {
	struct local_version *older;
	struct local_job *job;
	struct job_ref *ref;
	struct dirty row;
	bool gone;      /* the row is deleted, then this is freed */
	bool forgotten; /* gone, and the whole job with it */
};

struct local_job {
	struct local_key key; /* "<namespace>/<id>" */
	struct local *l;
	char *name;
	struct local_version *versions; /* newest first: the first one is wanted */
	bool purge;     /* forgotten when its last alloc is removed; hidden from the API */
	uint64_t index; /* of the last change of it, its allocs and its evaluations */
	struct local_news news;
	/* local_slots.c */
	struct local_group **groups;
	size_t n_groups;
	/* Newest first: local_allocs.c, deploy/local_deployment.c, local_evals.c */
	struct local_alloc *allocs;
	struct local_deployment *deployments;
	struct local_eval *last_eval;
	/* place/local_unplaced.c */
	struct local_eval *blocked; /* while slots are unplaced */
	size_t n_unplaced;
	/* local_family.c */
	struct local_family *family; /* of a child */
	struct local_job *prev_sibling, *next_sibling;
	struct local_job *prev_dead, *next_dead; /* of children whose work is over */
	int64_t dead_s; /* when its work was over, in s since 1970; 0: it is not in that list */
	/* drive/local_periodic.c */
	struct local_job *prev_timed, *next_timed;
	bool timed;       /* its times make children */
	int64_t next_s;   /* the next launch, in s since 1970; -1: none */
	int64_t looked_s; /* all launches up to then are done or skipped */
	struct dirty looked_row;
	/* local_marks.c */
	STAILQ_ENTRY(local_job) next_marked;
	STAILQ_HEAD(, local_slot) marked_slots;
	STAILQ_ENTRY(local_job) next_deploying;
	bool marked, deployment_marked, deployment_due;
};

int local_jobs_init(struct local *l);
void local_jobs_free(struct local *l);
int local_jobs_load(struct local *l, struct err *e);

/* The version that is wanted. */
static inline const struct job *
local_job_wanted(const struct local_job *j)
{
	return &j->versions->ref->job;
}
/* NULL: unknown, or purged. */
struct local_job *local_job_find(struct local *l, const char *namespace, const char *id);
struct local_job *local_job_find_any(struct local *l, const char *namespace, const char *id);
/* All jobs, sorted by name; the caller frees the array of *ret_n. NULL: none, or no memory. */
struct local_key **local_jobs_sorted(const struct local *l, size_t *ret_n);
static inline struct local_job *
local_job_of(struct local_key *key)
{
	return (struct local_job *)(void *)key;
}

/*
 * Makes *job (completed, valid; emptied) the wanted version. A job equal to the current version
 * makes no new one. *ret_changed says whether it did. NULL: no memory.
 */
struct local_job *local_job_put(struct local *l, struct job *job, bool *ret_changed);
/* The wanted version is one to come back to, when a newer one fails. */
void local_job_set_stable(struct local *l, struct local_job *j);
/* The newest version that is one to come back to; NULL: none is. */
const struct job *local_job_stable(const struct local_job *j);
/* Hides the job; it is forgotten when its last alloc is removed. */
void local_job_purge(struct local *l, struct local_job *j);
/* Drops old versions that nothing needs. */
void local_job_trim(struct local *l, struct local_job *j);
/* Removes the job, which has no allocs and no deployments any more; its rows are deleted. */
void local_job_forget(struct local *l, struct local_job *j);
/* The job, or something of it, has changed at this index. */
void local_job_touch(struct local_job *j, uint64_t index);
struct job_ref *local_jobs_ref(
    struct sup *sup, const char *namespace, const char *id, uint64_t version);
/* The key of the row of a periodic job's launches. */
#define LOCAL_LAUNCH_KEY_SIZE 600
void local_launch_key(const struct job *job, char ret[LOCAL_LAUNCH_KEY_SIZE]);

#endif
