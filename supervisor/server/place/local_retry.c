// SPDX-License-Identifier: Apache-2.0
/* local_retry.c: tries to place the slots again whose shortage may be over. Runs in: supervisor. */
#include "supervisor/server/place/local_retry.h"

#include "supervisor/node/node_state.h"
#include "supervisor/server/capacity/local_ports.h"
#include "supervisor/server/place/local_drain.h"
#include "supervisor/server/place/local_reconcile.h"
#include "supervisor/server/place/local_unplaced.h"

/* So many slots with one shortage get a new reason at once, when something else keeps them. */
#define TOLD_NEXT 16

static bool
has_per_alloc(const struct task_group *g)
{
	for (size_t i = 0; g && i < g->volumes.n; i++) {
		if (g->volumes.v[i].value.per_alloc)
			return true;
	}
	return false;
}

/* What keeps every slot with this shortage from its place. NULL: nothing that is cheap to find. */
static const void *
find_obstacle(struct local *l, const struct local_shortage *shortage)
{
	struct local_usage used = local_usage_now(l);

	switch (shortage->kind) {
	case LOCAL_SHORT_USAGE:
		return local_usage_exhausted(node_get(l->base.sup), &used, &shortage->usage);
	case LOCAL_SHORT_PORT:
		return local_port_holder(shortage);
	case LOCAL_SHORT_DYNAMIC_PORTS:
	case LOCAL_SHORT_OTHER:
		break;
	}
	return NULL;
}

/* Placed, or not for want of something else. */
static bool
retry_slot(struct local *l, struct local_slot *slot)
{
	struct local_want *want = slot->want;
	struct local_job *j = slot->job;

	if (!local_reconcile_place(l, slot, j->blocked))
		return slot->want != want;
	if (j->n_unplaced > 0)
		local_eval_changed(l, j->blocked);
	local_unplaced_unblock(l, j);
	return true;
}

/* A slot that is not placed stands for those behind it, except for slots of another version and
 * groups whose allocs have volumes of their own. */
static void
retry_want(struct local *l, struct local_want *want)
{
	const struct local_slot *failed = NULL;
	struct local_slot *next;

	for (struct local_slot *slot = want->first; slot && !find_obstacle(l, &want->shortage);
	     slot = next) {
		next = slot->next_wanting;
		if (failed && slot->want_version == failed->want_version)
			continue;
		if (retry_slot(l, slot))
			continue;
		if (want->shortage.kind != LOCAL_SHORT_OTHER)
			break;
		if (!has_per_alloc(job_group(local_job_wanted(slot->job), slot->group->name)))
			failed = slot;
	}
}

/* Something else keeps the slots now: tries the first ones, so that their evaluations say so. */
static void
try_next(struct local *l, struct local_want *want)
{
	struct local_slot *slot = want->first, *next;

	for (int i = 0; i < TOLD_NEXT && slot; i++, slot = next) {
		next = slot->next_wanting;
		(void)retry_slot(l, slot);
	}
}

static void
retry_wants(struct local *l, struct local_wants *wants)
{
	struct local_want *next;
	const void *kept_by;

	for (struct local_want *want = wants->first; want; want = next) {
		local_unplaced_hold(l, want);
		if (!find_obstacle(l, &want->shortage))
			retry_want(l, want);
		kept_by = find_obstacle(l, &want->shortage);
		if (kept_by && kept_by != want->kept_by)
			try_next(l, want);
		want->kept_by = kept_by;
		next = want->next;
		local_unplaced_hold(l, NULL);
	}
}

/* Costs a check for each different shortage, and a try for each slot that is placed, however many
 * slots wait. */
void
local_retry_run(struct local *l, bool all)
{
	if (local_drain_is_on(l))
		return;
	retry_wants(l, local_unplaced_capacity(l));
	if (all)
		retry_wants(l, local_unplaced_other(l));
}
