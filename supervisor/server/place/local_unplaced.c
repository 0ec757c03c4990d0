// SPDX-License-Identifier: Apache-2.0
/* local_unplaced.c: the slots that could not be placed, and the blocked evaluations that say why.
 * Runs in: supervisor. */
#include "supervisor/server/place/local_unplaced.h"

#include <stdlib.h>

#include "common/mem.h"

struct local_unplaced {
	struct local_wants capacity, other;
	struct local_want *held; /* stays in its list, even if it is empty */
};

void
local_unplaced_init(struct local *l)
{
	l->unplaced = mem_new(struct local_unplaced);
	TAILQ_INIT(&l->unplaced->capacity);
	TAILQ_INIT(&l->unplaced->other);
}

/* The slots are freed with their jobs. */
void
local_unplaced_free(struct local *l)
{
	struct local_want *want;

	while ((want = TAILQ_FIRST(&l->unplaced->capacity))) {
		TAILQ_REMOVE(&l->unplaced->capacity, want, entry);
		free(want);
	}
	free(l->unplaced);
}

struct local_wants *
local_unplaced_capacity(struct local *l)
{
	return &l->unplaced->capacity;
}

struct local_wants *
local_unplaced_other(struct local *l)
{
	return &l->unplaced->other;
}

/* Keeps the count of the blocked evaluation up to date: to count all slots each time would be slow.
 */
static void
change_queued(const struct local_slot *slot, int by)
{
	struct local_eval *b = slot->job->blocked;

	if (b)
		*int_map_at(&b->ev.queued_allocations, slot->group->name) += by;
}

static struct local_wants *
wants_of(struct local *l, const struct local_want *want)
{
	return want->shortage.kind == LOCAL_SHORT_OTHER ? &l->unplaced->other
							: &l->unplaced->capacity;
}

static void
trim_want(struct local *l, struct local_want *want)
{
	if (!TAILQ_EMPTY(&want->slots) || want == l->unplaced->held)
		return;
	TAILQ_REMOVE(wants_of(l, want), want, entry);
	if (want->shortage.kind != LOCAL_SHORT_OTHER)
		free(want);
}

static struct local_want *
get_other(struct local *l, struct local_group *group)
{
	if (TAILQ_EMPTY(&group->other.slots) && &group->other != l->unplaced->held)
		TAILQ_INSERT_TAIL(&l->unplaced->other, &group->other, entry);
	return &group->other;
}

/* Returns the want for this shortage. Groups that lack the same capacity share a want, so there are
 * few. */
static struct local_want *
get_want(struct local *l, struct local_group *group, const struct local_shortage *shortage)
{
	struct local_want *want;

	if (shortage->kind == LOCAL_SHORT_OTHER)
		return get_other(l, group);
	TAILQ_FOREACH (want, &l->unplaced->capacity, entry)
		if (local_shortage_equal(&want->shortage, shortage))
			return want;
	want = mem_new(struct local_want);
	want->shortage = *shortage;
	TAILQ_INIT(&want->slots);
	TAILQ_INSERT_TAIL(&l->unplaced->capacity, want, entry);
	return want;
}

void
local_unplaced_remove(struct local *l, struct local_slot *slot)
{
	struct local_want *want = slot->want;

	if (!want)
		return;
	change_queued(slot, -1);
	TAILQ_REMOVE(&want->slots, slot, want_entry);
	slot->want = NULL;
	slot->job->n_unplaced--;
	trim_want(l, want);
}

void
local_unplaced_add(struct local *l, struct local_slot *slot, const struct local_shortage *shortage)
{
	struct local_want *want = get_want(l, slot->group, shortage);

	if (slot->want == want)
		return;
	local_unplaced_remove(l, slot);
	change_queued(slot, 1);
	slot->want = want;
	TAILQ_INSERT_TAIL(&want->slots, slot, want_entry);
	slot->job->n_unplaced++;
}

static void
remove_slots(struct local *l, struct local_slot **slots, size_t n)
{
	for (size_t i = 0; i < n; i++)
		local_unplaced_remove(l, slots[i]);
}

void
local_unplaced_forget_job(struct local *l, struct local_job *j)
{
	j->blocked = NULL;
	for (size_t i = 0; i < j->n_groups; i++) {
		remove_slots(l, j->groups[i]->slots, j->groups[i]->n_slots);
		remove_slots(l, j->groups[i]->canaries, j->groups[i]->n_canaries);
	}
}

void
local_unplaced_hold(struct local *l, struct local_want *want)
{
	struct local_want *before = l->unplaced->held;

	l->unplaced->held = want;
	if (before)
		trim_want(l, before);
}

bool
local_unplaced_set_reason(struct local_eval *ev, const char *group, struct alloc_metric *m)
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
		b->ev.status = EVAL_BLOCKED;
		str_set(&b->ev.status_description, "created to place remaining allocations");
		str_set(&b->ev.previous_eval, ev->ev.id);
		j->blocked = b;
	}
	if (ev != b)
		str_set(&ev->ev.blocked_eval, b->ev.id);
	return b;
}

void
local_unplaced_unblock(struct local *l, struct local_job *j)
{
	struct local_eval *b = j->blocked;

	if (!b || j->n_unplaced > 0)
		return;
	j->blocked = NULL;
	if (b->n_waiting == 0) {
		local_eval_close(l, b, EVAL_COMPLETE, NULL);
		return;
	}
	b->ev.status = EVAL_PENDING;
	local_eval_changed(l, b);
}
