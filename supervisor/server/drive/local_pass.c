// SPDX-License-Identifier: Apache-2.0
/*
 * local_pass.c: the one pass that decides about everything the books have marked. Runs in:
 * supervisor.
 */
#include "supervisor/server/deploy/local_deployment.h"

/* j may be freed at the return. */
static void
examine_job(struct local *l, struct local_job *j)
{
	struct local_slot *slot;

	while ((slot = local_marks_take_slot(j)))
		local_reconcile_slot(l, slot, NULL);
	if (local_marks_take_deployment(j))
		local_deployment_examine(l, j);
	if (local_family_examine(l, j))
		local_periodic_arm(l);
	local_job_trim(l, j);
}

/* Placing and stopping mark again, so it goes on until nothing is marked. */
void
local_pass_run(struct local *l)
{
	struct local_job *j;
	bool all, more;

	do {
		while ((j = local_marks_take_job(l)))
			examine_job(l, j);
		more = local_marks_take_retry(l, &all);
		if (more)
			local_retry_run(l, all);
		if (local_marks_take_timer(l)) {
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
	STAILQ_INIT(&l->marks.jobs);
	l->marks.pass.run = on_marked;
}
