// SPDX-License-Identifier: Apache-2.0
/* local_why.c: what a deployment waits for, and what becomes of an alloc that has ended, or is to:
 * whether another follows, when, or why none does. Runs in: supervisor. */
#include "supervisor/server/place/local_why.h"

#include "common/duration.h"
#include "supervisor/alloc/alloc_why.h"
#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_reschedule.h"

static void
say_no_more(const struct sup_alloc *sa, struct causes *c)
{
	const struct reschedule_policy *p = sa->group->reschedule_policy;
	enum job_kind type = sa->job->job.type;
	char interval[DURATION_SIZE];

	if (type == JOB_SYSTEM || type == JOB_SYSBATCH) {
		causes_add(c, 0, "", "None is placed in its stead: %s jobs are not rescheduled.",
		    job_kind_names[type]);
		return;
	}
	if (!p || p->attempts <= 0) {
		causes_add(
		    c, 0, "", "None is placed in its stead: its reschedule policy allows none.");
		return;
	}
	duration_format(p->interval, interval);
	causes_add(c, 0, "",
	    "None is placed in its stead: its reschedule policy allows no more than %lld in %s.",
	    (long long)p->attempts, interval);
}

static void
say_successor(const struct local_alloc *la, struct causes *c)
{
	int64_t at = local_reschedule_at(la->sa), left = at - local_now_ns();
	char text[DURATION_SIZE];

	if (at == LOCAL_RESCHEDULE_NEVER) {
		say_no_more(la->sa, c);
		return;
	}
	duration_format(left > 0 ? left / NS_PER_S * NS_PER_S : 0, text);
	causes_add(c, 0, "",
	    "Another is placed in its stead in %s: its reschedule policy has a delay.", text);
}

/* Of one that runs: its deployment waits for it. */
static void
say_deployment(struct local *l, const struct alloc *a, struct causes *c)
{
	const struct local_deployment *dep = local_deployment_find(l, str(a->deployment_id));
	const struct deployment_status *s = a->deployment_status;

	if (!dep || !deployment_is_active(&dep->d) || a->desired_status != DESIRED_RUN ||
	    a->client_status != CLIENT_RUNNING)
		return;
	if (dep->d.status == DEPLOYMENT_PAUSED)
		causes_add(c, 0, "", "Its deployment %s is paused.", dep->d.id);
	else if (!s || (!s->canary && s->healthy == OPT_UNSET))
		causes_add(c, 0, "",
		    "It has not been found healthy yet, which deployment %s waits for.", dep->d.id);
}

void
local_why(struct source *s, struct sup_alloc *sa, struct causes *c)
{
	const struct local_alloc *la = local_alloc_of(sa);
	const struct alloc *a = &sa->a;

	say_deployment(local_of(s), a, c);
	if (!la || la->slot->current != la || *str(a->next_allocation))
		return;
	if (la->slot->want)
		causes_add(c, 0, "", "There is no place yet for another in its stead.");
	else if (a->desired_status == DESIRED_RUN && a->client_status == CLIENT_FAILED)
		say_successor(la, c);
	else if (la->slot->waits && !la->over)
		causes_add(c, 0, "", "Another waits for its place until it has ended.");
	else if (la->slot->waits)
		causes_add(
		    c, 0, "", "Another waits for its place until its volumes are given back.");
}
