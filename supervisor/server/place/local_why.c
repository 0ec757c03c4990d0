// SPDX-License-Identifier: Apache-2.0
/* local_why.c: says whether an alloc that has ended, or is to end, is replaced: when, or why not;
 * and what its deployment waits for. Runs in: supervisor. */
#include "supervisor/server/place/local_why.h"

#include "common/clock.h"
#include "common/duration.h"
#include "supervisor/alloc/causes.h"
#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_reschedule.h"
#include "supervisor/server/place/local_fate.h"

static struct local_fate_facts
get_fate_facts(const struct local_alloc *la)
{
	const struct sup_alloc *sa = la->sa;
	const struct reschedule_policy *p = sa->group->reschedule_policy;
	enum job_kind type = sa->job->job.type;

	return (struct local_fate_facts){
		.current = la->slot->current == la && !*str(sa->a.next_allocation),
		.unplaced = la->slot->queue != NULL,
		.wanted = sa->a.desired_status == DESIRED_RUN,
		.failed = sa->a.client_status == CLIENT_FAILED,
		.reschedules = local_reschedule_at(sa) != LOCAL_RESCHEDULE_NEVER,
		.system = type == JOB_SYSTEM || type == JOB_SYSBATCH,
		.policy = p && p->attempts > 0,
		.waits = la->slot->waits != NULL,
		.over = la->over,
	};
}

static void
add_delay(const struct sup_alloc *sa, struct causes *c)
{
	int64_t left = local_reschedule_at(sa) - clock_real_ns();
	char text[DURATION_SIZE];

	duration_format(left > 0 ? left / NS_PER_S * NS_PER_S : 0, text);
	causes_add(
	    c, 0, "", "A replacement is placed in %s: its reschedule policy has a delay.", text);
}

static void
add_attempts(const struct reschedule_policy *p, struct causes *c)
{
	char interval[DURATION_SIZE];

	duration_format(p->interval, interval);
	causes_add(c, 0, "",
	    "No replacement is placed: its reschedule policy allows no more than %lld in %s.",
	    (long long)p->attempts, interval);
}

static void
add_fate(const struct sup_alloc *sa, enum local_fate fate, struct causes *c)
{
	switch (fate) {
	case LOCAL_FATE_NONE:
		break;
	case LOCAL_FATE_UNPLACED:
		causes_add(c, 0, "", "Its replacement cannot be placed yet.");
		break;
	case LOCAL_FATE_LATER:
		add_delay(sa, c);
		break;
	case LOCAL_FATE_NEVER_TYPE:
		causes_add(c, 0, "", "No replacement is placed: %s jobs are not rescheduled.",
		    job_kind_names[sa->job->job.type]);
		break;
	case LOCAL_FATE_NEVER_RULE:
		causes_add(
		    c, 0, "", "No replacement is placed: its reschedule policy allows none.");
		break;
	case LOCAL_FATE_NEVER_AGAIN:
		add_attempts(sa->group->reschedule_policy, c);
		break;
	case LOCAL_FATE_ENDS:
		causes_add(c, 0, "", "Its replacement is placed when it has ended.");
		break;
	case LOCAL_FATE_UNMOUNTS:
		causes_add(c, 0, "", "Its replacement is placed when its volumes are released.");
		break;
	}
}

/* Adds what the deployment of a running alloc waits for. */
static void
add_deployment(struct local *l, const struct alloc *a, struct causes *c)
{
	const struct local_deployment *dep = local_deployment_find(l, str(a->deployment_id));
	const struct deployment_status *s = a->deployment_status;

	if (!dep || !deployment_is_active(&dep->d) || a->desired_status != DESIRED_RUN ||
	    a->client_status != CLIENT_RUNNING)
		return;
	if (dep->d.status == DEPLOYMENT_PAUSED)
		causes_add(c, 0, "", "Its deployment %s is paused.", dep->d.id);
	else if (!s || (!s->canary && s->healthy == OPT_UNSET))
		causes_add(c, 0, "", "Deployment %s waits until it is found healthy.", dep->d.id);
}

void
local_why(struct source *s, struct sup_alloc *sa, struct causes *c)
{
	const struct local_alloc *la = local_alloc_of(sa);
	struct local_fate_facts f;

	add_deployment(local_of(s), &sa->a, c);
	if (!la)
		return;
	f = get_fate_facts(la);
	add_fate(sa, local_fate_decide(&f), c);
}
