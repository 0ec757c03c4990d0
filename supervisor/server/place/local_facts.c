// SPDX-License-Identifier: Apache-2.0
/* local_facts.c: collects the facts about a slot, for the decision about it. Runs in: supervisor.
 */
#include "supervisor/server/place/local_facts.h"

#include "common/clock.h"
#include "supervisor/server/deploy/local_rollout.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_outdated.h"
#include "supervisor/server/job/local_reschedule.h"

/* Returns true if the deployment keeps the slot's alloc, which is of another version, and its
 * replacements at their version for now. */
static bool
is_kept(const struct local_slot *slot, const struct job *wanted)
{
	const struct local_alloc *la = slot->current;
	bool ends = alloc_server_terminal(&la->sa->a) || alloc_client_terminal(&la->sa->a);

	if (slot->canary)
		return false;
	switch (local_rollout_gate(slot->job, wanted, slot->group->name)) {
	case LOCAL_GATE_OPEN:
		return false;
	case LOCAL_GATE_ROLLING:
		/* An alloc that ends anyway may be replaced by the new version. */
		return !ends;
	case LOCAL_GATE_SHUT:
	case LOCAL_GATE_WAITING:
		break;
	}
	return true;
}

struct job_ref *
local_facts_next_version(const struct local_slot *slot)
{
	struct job_ref *wanted = local_job_wanted_ref(slot->job);
	const struct task_group *group = job_group(&wanted->job, slot->group->name);

	if (slot->current && is_kept(slot, &wanted->job) &&
	    local_alloc_outdated(slot->current->sa, &wanted->job, group) == LOCAL_UPDATE_REPLACE)
		return slot->current->sa->job;
	return wanted;
}

static bool
is_wanted(const struct local_slot *slot, const struct job *wanted, const struct task_group *group)
{
	if (wanted->stop || slot->job->purge || job_is_parent(wanted) || !group ||
	    slot->index >= group->count)
		return false;
	if (slot->canary)
		return local_rollout_wants_canary(slot);
	return slot->current ||
	       local_rollout_gate(slot->job, wanted, slot->group->name) != LOCAL_GATE_WAITING;
}

struct local_slot_facts
local_facts_get(const struct local_slot *slot, const struct job *wanted, bool again)
{
	const struct task_group *group = job_group(wanted, slot->group->name);
	const struct local_alloc *la = slot->current;
	struct local_slot_facts f = {
		.wanted = is_wanted(slot, wanted, group),
		.again = again,
		.exists = la != NULL,
	};

	if (!la)
		return f;
	f.stopped = alloc_server_terminal(&la->sa->a);
	f.ended = alloc_client_terminal(&la->sa->a);
	/* Completed batch work does not run again. */
	if (la->sa->a.client_status == CLIENT_COMPLETE &&
	    (wanted->type == JOB_BATCH || wanted->type == JOB_SYSBATCH))
		f.again = false;
	f.holds_claims = la->n_claims > 0;
	f.lease_ended = la->sa->a.client_status == CLIENT_LOST;
	f.outdated = f.wanted ? local_alloc_outdated(la->sa, wanted, group) : LOCAL_CURRENT;
	if (f.outdated == LOCAL_UPDATE_REPLACE && is_kept(slot, wanted)) {
		f.held = true;
		f.outdated = LOCAL_CURRENT;
	}
	if (f.wanted && f.ended && !f.stopped) {
		int64_t at = local_reschedule_at(la->sa);

		f.reschedule = at == LOCAL_RESCHEDULE_NEVER ? LOCAL_AGAIN_NEVER
			       : at > clock_real_ns()       ? LOCAL_AGAIN_LATER
							    : LOCAL_AGAIN_NOW;
	}
	return f;
}
