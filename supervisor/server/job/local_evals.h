/* SPDX-License-Identifier: Apache-2.0 */
/* local_evals.h: evaluations: why a job was examined, and with what result. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_LOCAL_EVALS_H
#define DROVER_SUPERVISOR_SERVER_JOB_LOCAL_EVALS_H

#include "model/eval.h"
#include "supervisor/server/job/local_job.h"

struct local_eval {
	struct local_key key;
	struct eval ev;
	struct dirty row;
	struct local_job *job;         /* NULL: the job is forgotten */
	LIST_ENTRY(local_eval) of_job; /* newest first */
	LIST_ENTRY(local_eval) older;  /* all, newest first */
	TAILQ_ENTRY(local_eval) closed_entry;
	bool closed;        /* in the list of closed evaluations, which are trimmed */
	unsigned n_waiting; /* slots; place/local_reconcile.c */
	bool gone;          /* the row is being deleted; then this is freed */
	bool used;          /* for local_evals_forget(): it placed an alloc that is known */
	struct local_news news;
};

void local_evals_init(struct local *l);
void local_evals_free(struct local *l);
int local_evals_load(struct local *l, struct err *e);

/* Makes an open evaluation of the job. */
struct local_eval *local_eval_new(struct local *l, struct local_job *j, const char *trigger);
/* Gives ev, which was made in this turn (NULL: nothing to do), the priority that a request asked
 * for; 0: that of its job stays. */
void local_eval_set_priority(struct local_eval *ev, int64_t priority);
struct local_eval *local_eval_find(const struct local *l, const char *id); /* or NULL */
/* Returns the newest evaluation of all jobs, or NULL; LIST_NEXT(ev, older) is the one before. */
struct local_eval *local_eval_newest(const struct local *l);
/* Writes it under a new index. */
void local_eval_changed(struct local *l, struct local_eval *ev);
/* Closes an evaluation; without effect if it is closed already. */
void local_eval_close(
    struct local *l, struct local_eval *ev, enum eval_status status, const char *description);
/* The job is forgotten: closes its evaluations, which stay. */
void local_evals_forget_job(struct local *l, struct local_job *j);
/* Forgets evaluations that were closed before that time and placed no alloc that is still known. */
void local_evals_forget(struct local *l, int64_t before_ns);

#endif
