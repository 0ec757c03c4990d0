/* SPDX-License-Identifier: Apache-2.0 */
/* local_job.h: jobs and their versions. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_LOCAL_JOB_H
#define DROVER_SUPERVISOR_SERVER_JOB_LOCAL_JOB_H

#include "supervisor/server/base/local.h"
#include "supervisor/server/base/local_map.h"
#include "supervisor/server/base/local_news.h"
#include "supervisor/table/alloc_table.h"

struct job_submission;
struct local_alloc;
struct local_deployment;
struct local_eval;
struct local_family;
struct local_group;
struct local_slot;

/* One version of a job and its row. */
struct local_version {
	SLIST_ENTRY(local_version) older;
	struct local_job *job;
	struct job_ref *ref;
	struct dirty row;
	char *source;    /* until its first commit; NULL: none */
	bool source_due; /* the row of the source is not written yet */
	bool gone;       /* the row is being deleted; then this is freed */
	bool forgotten;  /* gone, and the whole job with it */
};

struct local_job {
	struct local_key key; /* "<namespace>/<id>" */
	struct local *l;
	char *name;
	SLIST_HEAD(, local_version) versions; /* newest first: the first one is wanted */
	bool purge;     /* forgotten when its last alloc is removed; hidden from the API */
	uint64_t index; /* of the last change of the job, its allocs and its evaluations */
	struct local_news news;
	/* local_slots.c */
	struct local_group **groups;
	size_t n_groups;
	/* Newest first: local_allocs.c, deploy/local_deployment.c, local_evals.c */
	LIST_HEAD(, local_alloc) allocs;
	SLIST_HEAD(, local_deployment) deployments;
	LIST_HEAD(, local_eval) evals;
	/* place/local_unplaced.c */
	struct local_eval *blocked; /* while slots are unplaced */
	size_t n_unplaced;
	/* local_family.c */
	struct local_family *family; /* of a child */
	LIST_ENTRY(local_job) sibling;
	TAILQ_ENTRY(local_job) dead; /* of children that are dead */
	int64_t dead_s;              /* when the child died, in s since 1970; 0: not in that list */
	/* drive/local_periodic.c */
	LIST_ENTRY(local_job) timed_entry;
	bool timed;        /* in the list of jobs that are launched at times */
	int64_t next_s;    /* the next launch, in s since 1970; -1: none */
	int64_t checked_s; /* all launches until then are done or skipped */
	struct dirty checked_row;
	/* local_marks.c */
	STAILQ_ENTRY(local_job) next_marked;
	STAILQ_HEAD(, local_slot) marked_slots;
	STAILQ_ENTRY(local_job) next_deploying;
	bool marked, deployment_marked, deployment_due;
};

void local_jobs_init(struct local *l);
void local_jobs_free(struct local *l);
int local_jobs_load(struct local *l, struct err *e);

static inline struct job_ref *
local_job_wanted_ref(const struct local_job *j)
{
	return SLIST_FIRST(&j->versions)->ref;
}
/* Returns the version that is wanted. */
static inline const struct job *
local_job_wanted(const struct local_job *j)
{
	return &local_job_wanted_ref(j)->job;
}

/* For journal.h: a line about the job. */
#define ABOUT_JOB(j)                                                                               \
	(&(struct journal_about){ .namespace = local_job_wanted(j)->namespace, .job = (j)->name })
/* Returns NULL for an unknown job; local_job_find() also for a purged one. */
struct local_job *local_job_find(struct local *l, const char *namespace, const char *id);
struct local_job *local_job_find_any(struct local *l, const char *namespace, const char *id);
/* Returns all jobs, sorted by name; the caller frees the array of *ret_n. */
struct local_key **local_jobs_sorted(const struct local *l, size_t *ret_n);
static inline struct local_job *
local_job_of(struct local_key *key)
{
	return key ? container_of(key, struct local_job, key) : NULL;
}

/* Makes *job (completed, valid; emptied) the wanted version. submission: its source; NULL: that of
 * the version of which *job is a copy. A job equal to the current version makes no new one;
 * *ret_changed says whether it did. */
struct local_job *local_job_put(
    struct local *l, struct job *job, const struct job_submission *submission, bool *ret_changed);
/* Marks the wanted version as stable: a job is rolled back to it when a newer version fails. */
void local_job_set_stable(struct local *l, struct local_job *j);
/* Returns the newest stable version, or NULL. */
const struct job *local_job_stable(const struct local_job *j);
/* Returns true if a purged job still has allocs. */
bool local_jobs_purging(const struct local *l);
/* Hides the job; it is forgotten when its last alloc is removed. */
void local_job_purge(struct local *l, struct local_job *j);
/* Deletes old versions that nothing uses. */
void local_job_trim(struct local *l, struct local_job *j);
/* Removes the job, which has no allocs and no deployments any more; its rows are deleted. */
void local_job_forget(struct local *l, struct local_job *j);
/* Records that the job, or an alloc, evaluation or deployment of it, has changed at this index. */
void local_job_touch(struct local_job *j, uint64_t index);
/* Return this version, or the one with this tag; NULL if there is none. */
struct local_version *local_job_version(const struct local_job *j, uint64_t version);
struct local_version *local_job_tagged(const struct local_job *j, const char *tag);
/* Returns the name of the version's tag, or NULL. */
const char *local_version_tag(const struct local_version *v);
/* Gives the version a tag, the member VersionTag of its job, which is taken over; NULL removes it.
 * A tagged version is kept until its job is purged, and does not count among those that are kept.
 */
void local_version_set_tag(struct local *l, struct local_version *v, json_t *tag);
/* Returns a reference to a version of a job, or NULL. */
struct job_ref *local_jobs_ref(
    struct sup *sup, const char *namespace, const char *id, uint64_t version);
/* Writes the key of the row that has the last checked time of a periodic job. */
#define LOCAL_LAUNCH_KEY_SIZE 600
void local_launch_key(const struct job *job, char ret[LOCAL_LAUNCH_KEY_SIZE]);

#endif
