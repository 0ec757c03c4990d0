// SPDX-License-Identifier: Apache-2.0
/* local_register.c: jobs are registered, changed and stopped, with all that follows. Runs in:
 * supervisor. */
#include "supervisor/server/drive/local_register.h"

#include <errno.h>

#include "common/cleanup.h"
#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/drive/local_periodic.h"
#include "supervisor/server/job/local_evals.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/server/place/local_reconcile.h"

struct local_job *
local_job_change(struct local *l, struct job *job)
{
	bool changed;
	struct local_job *j = local_job_put(l, job, &changed);

	if (j && changed) {
		local_periodic_follow(l, j);
		local_deployment_follow(l, j);
	}
	return j;
}

int
local_job_register(struct local *l, struct job *job, const char *trigger, struct local_job **ret,
    struct local_eval **ret_ev)
{
	struct local_job *j = local_job_change(l, job);
	struct local_eval *ev = NULL;

	if (!j)
		return -ENOMEM;
	if (!job_is_parent(local_job_wanted(j))) {
		ev = local_eval_new(l, j, trigger);
		if (!ev)
			return -ENOMEM;
		local_reconcile_job(l, j, ev, true);
		local_mark_job(l, j);
	}
	*ret = j;
	*ret_ev = ev;
	return 0;
}

int
local_job_stop(struct local *l, struct local_job *j, bool purge, struct local_eval **ret_ev)
{
	cleanup_done(job) struct job stopped;
	bool parent = job_is_parent(local_job_wanted(j));

	if (job_copy(local_job_wanted(j), &stopped) < 0)
		return -ENOMEM;
	stopped.stop = true;
	if (!local_job_change(l, &stopped))
		return -ENOMEM;
	*ret_ev = parent ? NULL : local_eval_new(l, j, "job-deregister");
	if (!*ret_ev && !parent)
		return -ENOMEM;
	if (purge)
		local_job_purge(l, j);
	if (!parent)
		local_reconcile_job(l, j, *ret_ev, false);
	local_mark_job(l, j);
	return 0;
}
