// SPDX-License-Identifier: Apache-2.0
/* local_register.c: registers, changes and stops jobs. Runs in: supervisor. */
#include "supervisor/server/drive/local_register.h"

#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/drive/local_periodic.h"
#include "supervisor/server/job/local_evals.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/server/place/local_reconcile.h"

struct local_job *
local_job_change(struct local *l, struct job *job, const struct job_submission *submission)
{
	bool changed;
	struct local_job *j = local_job_put(l, job, submission, &changed);

	if (changed) {
		local_periodic_update(l, j);
		local_deployment_replace(l, j);
	}
	return j;
}

void
local_job_register(struct local *l, struct job *job, const struct job_submission *submission,
    const char *trigger, struct local_job **ret, struct local_eval **ret_ev)
{
	struct local_job *j = local_job_change(l, job, submission);

	*ret = j;
	*ret_ev = NULL;
	if (job_is_parent(local_job_wanted(j)))
		return;
	*ret_ev = local_eval_new(l, j, trigger);
	local_reconcile_job(l, j, *ret_ev, true);
	local_mark_job(l, j);
}

struct local_eval *
local_job_stop(struct local *l, struct local_job *j, bool purge)
{
	cleanup_done(job) struct job stopped;
	struct local_eval *ev = NULL;

	job_copy(local_job_wanted(j), &stopped);
	stopped.stop = true;
	(void)local_job_change(l, &stopped, NULL);
	if (!job_is_parent(local_job_wanted(j)))
		ev = local_eval_new(l, j, "job-deregister");
	if (purge)
		local_job_purge(l, j);
	if (ev)
		local_reconcile_job(l, j, ev, false);
	local_mark_job(l, j);
	return ev;
}
