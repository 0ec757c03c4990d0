// SPDX-License-Identifier: Apache-2.0
/*
 * local_unplaced.c: the slots of a job for which there is no room, and the blocked evaluation that
 * says so. Runs in: supervisor.
 */
#include "supervisor/source/local/local_unplaced.h"

#include <stdlib.h>
#include <string.h>

static void
unlist_job(struct local *l, struct local_job *j)
{
	*(j->prev_blocked ? &j->prev_blocked->next_blocked : &l->first_blocked) = j->next_blocked;
	*(j->next_blocked ? &j->next_blocked->prev_blocked : &l->last_blocked) = j->prev_blocked;
	j->prev_blocked = j->next_blocked = NULL;
}

void
local_unplaced_list(struct local *l, struct local_job *j)
{
	j->prev_blocked = l->last_blocked;
	*(l->last_blocked ? &l->last_blocked->next_blocked : &l->first_blocked) = j;
	l->last_blocked = j;
}

/* What the blocked evaluation says follows each slot: counting them all for each would be slow. */
static void
change_queued(const struct local_slot *slot, int by)
{
	struct local_eval *b = slot->job->blocked;
	int64_t *n = b ? int_map_at(&b->ev.queued_allocations, slot->group->name) : NULL;

	if (n)
		*n += by;
}

void
local_unplaced_remove(struct local_slot *slot)
{
	struct local_job *j = slot->job;

	if (!slot->unplaced)
		return;
	change_queued(slot, -1);
	*(slot->prev_unplaced ? &slot->prev_unplaced->next_unplaced : &j->first_unplaced) =
	    slot->next_unplaced;
	*(slot->next_unplaced ? &slot->next_unplaced->prev_unplaced : &j->last_unplaced) =
	    slot->prev_unplaced;
	slot->prev_unplaced = slot->next_unplaced = NULL;
	slot->unplaced = false;
}

void
local_unplaced_add(struct local_slot *slot)
{
	struct local_job *j = slot->job;

	if (slot->unplaced)
		return;
	change_queued(slot, 1);
	slot->unplaced = true;
	slot->prev_unplaced = j->last_unplaced;
	*(j->last_unplaced ? &j->last_unplaced->next_unplaced : &j->first_unplaced) = slot;
	j->last_unplaced = slot;
}

bool
local_unplaced_note(struct local_eval *ev, const char *group, struct alloc_metric *m)
{
	struct alloc_metric *known = map_get(alloc_metric, &ev->ev.failed_tg_allocs, group);

	if (known) {
		m->allocation_time = known->allocation_time;
		m->coalesced_failures = known->coalesced_failures;
		if (model_equal(&alloc_metric_type, known, m)) {
			alloc_metric_done(m);
			return false;
		}
		alloc_metric_done(known);
	} else {
		known = map_put(alloc_metric, &ev->ev.failed_tg_allocs, group);
	}
	if (!known) {
		alloc_metric_done(m);
		return false;
	}
	*known = *m;
	alloc_metric_init(m);
	return true;
}

struct local_eval *
local_unplaced_block(struct local *l, struct local_job *j, struct local_eval *ev)
{
	struct local_eval *b = j->blocked;

	if (!b) {
		b = local_eval_new(l, j, "queued-allocs");
		if (!b)
			return NULL;
		b->ev.status = EVAL_BLOCKED;
		(void)str_set(&b->ev.status_description, "created to place remaining allocations");
		(void)str_set(&b->ev.previous_eval, ev->ev.id);
		j->blocked = b;
		local_unplaced_list(l, j);
	}
	if (ev != b)
		(void)str_set(&ev->ev.blocked_eval, b->ev.id);
	return b;
}

void
local_unplaced_unblock(struct local *l, struct local_job *j)
{
	struct local_eval *b = j->blocked;

	if (!b || j->first_unplaced)
		return;
	j->blocked = NULL;
	unlist_job(l, j);
	local_eval_close(l, b, EVAL_COMPLETE, NULL);
}
