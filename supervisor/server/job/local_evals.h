/* SPDX-License-Identifier: Apache-2.0 */
/* local_evals.h: evaluations: why a job was examined, and what came of it. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_LOCAL_EVALS_H
#define DROVER_SUPERVISOR_SERVER_JOB_LOCAL_EVALS_H

#include "model/eval.h"
#include "supervisor/server/job/local_job.h"

struct local_eval {
	struct local_key key;
	struct eval ev;
	struct dirty row;
	struct local_job *job; /* NULL: the job is forgotten */
	struct local_eval *newer_of_job, *older_of_job;
	struct local_eval *prev, *next; /* all, oldest first */
	struct local_eval *prev_closed, *next_closed;
	bool closed;        /* in the list of those that are trimmed */
	unsigned n_waiting; /* slots; place/local_reconcile.c */
	bool gone;
	bool used; /* local_evals_forget(): an alloc that is known was placed by it */
	struct local_news news;
};

int local_evals_init(struct local *l);
void local_evals_free(struct local *l);
int local_evals_load(struct local *l, struct err *e);

/* An open evaluation of the job. NULL: no memory. */
struct local_eval *local_eval_new(struct local *l, struct local_job *j, const char *trigger);
struct local_eval *local_eval_find(const struct local *l, const char *id);
/* The newest of all jobs; ->prev is the next older one. */
struct local_eval *local_eval_newest(const struct local *l);
/* Writes it under a new index. */
void local_eval_changed(struct local *l, struct local_eval *ev);
/* Does nothing if it is closed already. */
void local_eval_close(
    struct local *l, struct local_eval *ev, enum eval_status status, const char *description);
/* The job is forgotten; its evaluations stay, closed. */
void local_evals_forget_job(struct local *l, struct local_job *j);
/* Forgets those that were closed before that time and placed no alloc that is still known. */
void local_evals_forget(struct local *l, int64_t before_ns);

#endif
