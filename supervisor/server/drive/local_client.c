// SPDX-License-Identifier: Apache-2.0
/* local_client.c: reports of the client about its allocs: changes the books and marks. Runs in:
 * supervisor. */
#include "supervisor/server/drive/local_client.h"

#include <string.h>

#include "supervisor/server/claim/local_claims.h"
#include "supervisor/server/claim/local_services.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_marks.h"

/* Returns true if the executor stopped the task because of its lease, or alloc/hook_lease.c did not
 * let it start after a restart of the agent. */
static bool
is_lease_event(const struct task_event *ev)
{
	return string_map_get(&ev->details, EVENT_DETAIL_LEASE) ||
	       strstr(str(ev->setup_error), "hook \"heartbeat_stop\"");
}

bool
local_alloc_stopped_by_lease(const struct alloc *a)
{
	for (size_t i = 0; i < a->task_states.n; i++) {
		const struct task_state *s = &a->task_states.v[i].value;

		for (size_t k = 0; k < s->events.n; k++) {
			if (is_lease_event(&s->events.v[k]))
				return true;
		}
	}
	return false;
}

/* Returns true if the change may let the deployment take its next step. */
static bool
concerns_deployment(const struct alloc *a)
{
	return *str(a->deployment_id) &&
	       (alloc_client_terminal(a) ||
		   (a->deployment_status && a->deployment_status->healthy != OPT_UNSET));
}

void
local_alloc_written(struct source *s, struct sup_alloc *sa)
{
	struct local_alloc *la = local_alloc_of(sa);

	if (la)
		local_alloc_changed(local_of(s), la);
}

void
local_alloc_updated(struct source *s, struct sup_alloc *sa)
{
	struct local *l = local_of(s);
	struct local_alloc *la = local_alloc_of(sa);

	if (!la || la->destroyed)
		return;
	/* The client writes the alloc's row; the row of the index alone is not worth a commit. */
	sa->a.modify_index = ++l->index;
	local_alloc_changed(l, la);
	if (concerns_deployment(&sa->a))
		local_mark_deployment(l, la->job);
	if (!alloc_client_terminal(&sa->a))
		return;
	local_mark_job(l, la->job);
	local_alloc_end(l, la);
	if (la->slot->current != la)
		local_alloc_retire(l, la);
	else
		local_mark_slot(l, la->slot);
}

void
local_alloc_destroyed(struct source *s, struct sup_alloc *sa)
{
	struct local *l = local_of(s);
	struct local_alloc *la = local_alloc_of(sa);
	struct local_slot *slot;
	struct local_job *j;

	if (!la)
		return;
	/* It was destroyed only to free its disk space, now or before a restart: it stays known. */
	if (!la->destroyed && (la->collected || !la->done)) {
		la->collected = true;
		local_claims_release_all(l, la);
		return;
	}
	j = la->job;
	slot = la->slot;
	local_claims_release_all(l, la);
	local_services_set(s, sa, NULL, NULL, 0);
	local_alloc_end(l, la);
	local_alloc_remove(l, la);
	alloc_forget(s->sup, sa);
	/* If the job was purged and registered again, the slot waits for this alloc. */
	if (slot->waits)
		local_mark_slot(l, slot);
	local_mark_job(l, j);
}
