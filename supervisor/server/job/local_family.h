/* SPDX-License-Identifier: Apache-2.0 */
/* local_family.h: children of jobs: the jobs that were launched or dispatched from another one.
 * Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_LOCAL_FAMILY_H
#define DROVER_SUPERVISOR_SERVER_JOB_LOCAL_FAMILY_H

#include "supervisor/server/job/local_job.h"
#include "model/job_stub.h"

/* The children of one job, which may itself be forgotten already. */
struct local_family {
	struct local_key key; /* "<namespace>/<parent's id>" */
	char *name;
	LIST_HEAD(, local_job) children; /* newest first */
	size_t n;
};

void local_families_init(struct local *l);
void local_families_free(struct local *l);

/* Adds j to the family of its parent, if it has one. */
void local_family_join(struct local *l, struct local_job *j);
void local_family_leave(struct local *l, struct local_job *j);
/* Returns NULL if the job has no children. */
struct local_family *local_family_of(struct local *l, const struct job *parent);
/* Checks whether the job may have one more child. Returns 0, or -EAGAIN with the sentence. */
int local_family_check(struct local *l, const struct job *parent, struct err *e);
void local_family_count(struct local *l, const struct job *parent, struct job_children *ret);
/* Adds j to the dead children if it is one now; the oldest of too many are purged. Returns true if
 * the time of local_family_collect_at() has changed. */
bool local_family_examine(struct local *l, struct local_job *j);
/* Purges the children that have been dead for job_gc_threshold. */
void local_family_collect(struct local *l, int64_t now_s);
/* Returns when the next child is to be purged, in s since 1970; 0: there is none. */
int64_t local_family_collect_at(const struct local *l);

#endif
