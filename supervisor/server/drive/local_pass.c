// SPDX-License-Identifier: Apache-2.0
/* local_pass.c: the pass that decides about all marked objects. Runs in: supervisor. */
#include "supervisor/server/drive/local_pass.h"

#include "common/cleanup.h"
#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/drive/local_deploy.h"
#include "supervisor/server/drive/local_periodic.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_family.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/server/place/local_reconcile.h"
#include "supervisor/server/place/local_retry.h"
#include "supervisor/server/place/local_unplaced.h"

static void
forget_job(struct local *l, struct local_job *j)
{
	local_periodic_forget(l, j);
	local_deployments_forget(l, j);
	local_unplaced_forget_job(l, j);
	local_job_forget(l, j);
}

/* May free j. */
static void
examine_job(struct local *l, struct local_job *j)
{
	struct local_slot *slot;

	while ((slot = local_marks_pop_slot(j)))
		local_reconcile_slot(l, slot, NULL);
	if (local_marks_clear_deployment(j))
		local_deploy_examine(l, j);
	if (local_family_examine(l, j))
		local_periodic_arm(l);
	if (j->purge && LIST_EMPTY(&j->allocs))
		forget_job(l, j);
	else
		local_job_trim(l, j);
}

/* Placing and stopping allocs sets new marks, so this repeats until none is left. */
void
local_pass_run(struct local *l)
{
	struct local_job *j;
	bool all, more;

	do {
		while ((j = local_marks_pop_job(l)))
			examine_job(l, j);
		more = local_marks_clear_retry(l, &all);
		if (more)
			local_retry_run(l, all);
		if (local_marks_clear_timer(l)) {
			local_periodic_run(l);
			more = true;
		}
	} while (more);
}

static void
on_marked(struct sup *sup, struct deferred *d)
{
	local_pass_run(local_of_sup(sup));
}

void
local_pass_init(struct local *l)
{
	local_marks_init(l, on_marked);
}

static void
start_job(struct local *l, struct local_job *j)
{
	struct local_alloc *la, *next;

	local_reconcile_resume(l, j);
	local_deploy_resume(l, j);
	LIST_FOREACH_SAFE (la, &j->allocs, of_job, next)
		if (la->over && la->slot->current != la)
			local_alloc_retire(l, la);
	local_mark_job(l, j);
}

void
local_pass_start(struct local *l)
{
	size_t n;
	cleanup_free struct local_key **jobs = local_jobs_sorted(l, &n);

	for (size_t i = 0; i < n; i++)
		start_job(l, local_job_of(jobs[i]));
}
