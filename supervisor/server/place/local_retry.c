// SPDX-License-Identifier: Apache-2.0
/* local_retry.c: slots that wait for a place get one, when what they lack may be there. Runs in:
 * supervisor. */
#include "supervisor/server/place/local_unplaced.h"

/* Of those that wait for the same, how many are told at once that something else keeps them. */
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

/* What keeps all of those who want it from it. NULL: nothing, by a look that costs next to nothing.
 */
static const void *
look(struct local *l, const struct local_lack *lack)
{
	switch (lack->kind) {
	case LOCAL_LACKS_ROOM:
		return local_room_exhausted(l, &l->used, &lack->room);
	case LOCAL_LACKS_PORT:
		return local_port_holder(lack);
	case LOCAL_LACKS_OTHER:
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

/* What holds for one that is not placed holds for those behind it, but for those of a group that
 * are of another version or have volumes of their own. */
static void
retry_want(struct local *l, struct local_want *want)
{
	const struct local_slot *failed = NULL;
	struct local_slot *next;

	for (struct local_slot *slot = want->first; slot && !look(l, &want->lack); slot = next) {
		next = slot->next_wanting;
		if (failed && slot->want_version == failed->want_version)
			continue;
		if (retry_slot(l, slot))
			continue;
		if (want->lack.kind != LOCAL_LACKS_OTHER)
			break;
		if (!has_per_alloc(job_group(local_job_wanted(slot->job), slot->group->name)))
			failed = slot;
	}
}

/* Something else keeps them now: the next ones say so. Those behind them do in their turn. */
static void
tell_next(struct local *l, struct local_want *want)
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
		l->looked_at = want;
		if (!look(l, &want->lack))
			retry_want(l, want);
		kept_by = look(l, &want->lack);
		if (kept_by && kept_by != want->kept_by)
			tell_next(l, want);
		want->kept_by = kept_by;
		next = want->next;
		l->looked_at = NULL;
		local_want_trim(l, want);
	}
}

/* Costs what there is capacity for, and a look at each thing that is wanted, however many slots
 * want it. */
void
local_retry_run(struct local *l, bool all)
{
	if (l->ineligible || l->base.sup->draining)
		return;
	retry_wants(l, &l->room_wants);
	if (all)
		retry_wants(l, &l->other_wants);
}
