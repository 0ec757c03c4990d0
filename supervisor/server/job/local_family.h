/* SPDX-License-Identifier: Apache-2.0 */
/* local_family.h: the jobs that were made of another one: launched or dispatched. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_LOCAL_FAMILY_H
#define DROVER_SUPERVISOR_SERVER_JOB_LOCAL_FAMILY_H

#include "supervisor/server/job/local_job.h"
#include "model/job_stub.h"

/* The children of one job, which itself may be forgotten already. */
struct local_family {
	struct local_key key; /* "<namespace>/<parent's id>" */
	char *name;
	struct local_job *children; /* newest first */
	size_t n;
};

int local_families_init(struct local *l);
void local_families_free(struct local *l);

/* Enters j with its siblings, if it is a child. 0 or -ENOMEM. */
int local_family_join(struct local *l, struct local_job *j);
void local_family_leave(struct local *l, struct local_job *j);
/* NULL: the job has no children. */
struct local_family *local_family_of(struct local *l, const struct job *parent);
/* May it have one child more? 0 or -EAGAIN with the sentence. */
int local_family_check(struct local *l, const struct job *parent, struct err *e);
void local_family_count(struct local *l, const struct job *parent, struct job_children *ret);
/* A child whose work is over is kept for a while, and forgotten then. True: when the next one is
 * forgotten has changed. */
bool local_family_examine(struct local *l, struct local_job *j);
/* Forgets the children that have been over for long enough. */
void local_family_collect(struct local *l, int64_t now_s);
/* When the next child is forgotten, in s since 1970; 0: there is none. */
int64_t local_family_collect_at(const struct local *l);

#endif
