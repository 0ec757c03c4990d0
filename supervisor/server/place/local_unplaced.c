// SPDX-License-Identifier: Apache-2.0
/*
 * local_unplaced.c: the slots of a job for which there is no room, and the blocked evaluation that
 * says so. Runs in: supervisor.
 */
#include "supervisor/server/place/local_unplaced.h"

#include <stdlib.h>
#include <string.h>

/* What the blocked evaluation says follows each slot: counting them all for each would be slow. */
static void
change_queued(const struct local_slot *slot, int by)
{
	struct local_eval *b = slot->job->blocked;
	int64_t *n = b ? int_map_at(&b->ev.queued_allocations, slot->group->name) : NULL;

	if (n)
		*n += by;
}

/* --- what is wanted --- */

static struct local_wants *
wants_of(struct local *l, const struct local_want *want)
{
	return want->lack.kind == LOCAL_LACKS_OTHER ? &l->other_wants : &l->room_wants;
}

static void
link_want(struct local *l, struct local_want *want)
{
	struct local_wants *wants = wants_of(l, want);

	want->prev = wants->last;
	want->next = NULL;
	*(wants->last ? &wants->last->next : &wants->first) = want;
	wants->last = want;
}

void
local_want_trim(struct local *l, struct local_want *want)
{
	struct local_wants *wants = wants_of(l, want);

	if (want->first || want == l->looked_at)
		return;
	*(want->prev ? &want->prev->next : &wants->first) = want->next;
	*(want->next ? &want->next->prev : &wants->last) = want->prev;
	want->prev = want->next = NULL;
	if (want->lack.kind != LOCAL_LACKS_OTHER)
		free(want);
}

static bool
is_same(const struct local_lack *a, const struct local_lack *b)
{
	if (a->kind == LOCAL_LACKS_PORT)
		return b->kind == a->kind && a->at == b->at && a->port == b->port;
	return b->kind == a->kind && a->room.cpu == b->room.cpu && a->room.cores == b->room.cores &&
	       a->room.memory_mb == b->room.memory_mb && a->room.disk_mb == b->room.disk_mb;
}

static struct local_want *
get_other(struct local *l, struct local_group *group)
{
	if (!group->other.first && &group->other != l->looked_at)
		link_want(l, &group->other);
	return &group->other;
}

/* Jobs that are alike share one, so there are few. Without memory they wait for anything. */
static struct local_want *
get_want(struct local *l, struct local_group *group, const struct local_lack *lack)
{
	struct local_want *want = l->room_wants.first;

	if (lack->kind == LOCAL_LACKS_OTHER)
		return get_other(l, group);
	while (want && !is_same(&want->lack, lack))
		want = want->next;
	if (want)
		return want;
	want = calloc(1, sizeof *want);
	if (!want)
		return get_other(l, group);
	want->lack = *lack;
	link_want(l, want);
	return want;
}

void
local_unplaced_remove(struct local *l, struct local_slot *slot)
{
	struct local_want *want = slot->want;

	if (!want)
		return;
	change_queued(slot, -1);
	*(slot->prev_wanting ? &slot->prev_wanting->next_wanting : &want->first) =
	    slot->next_wanting;
	*(slot->next_wanting ? &slot->next_wanting->prev_wanting : &want->last) =
	    slot->prev_wanting;
	slot->prev_wanting = slot->next_wanting = NULL;
	slot->want = NULL;
	slot->job->n_unplaced--;
	local_want_trim(l, want);
}

void
local_unplaced_add(struct local *l, struct local_slot *slot, const struct local_lack *lack)
{
	struct local_want *want = get_want(l, slot->group, lack);

	if (slot->want == want)
		return;
	local_unplaced_remove(l, slot);
	change_queued(slot, 1);
	slot->want = want;
	slot->prev_wanting = want->last;
	*(want->last ? &want->last->next_wanting : &want->first) = slot;
	want->last = slot;
	slot->job->n_unplaced++;
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
	}
	if (ev != b)
		(void)str_set(&ev->ev.blocked_eval, b->ev.id);
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
