// SPDX-License-Identifier: Apache-2.0
/* local_unplaced.c: the slots that could not be placed, and the blocked evaluations that say why.
 * Runs in: supervisor. */
#include "supervisor/server/place/local_unplaced.h"

#include <stdlib.h>

#include "common/mem.h"

struct local_unplaced {
	struct local_queues capacity, other;
	struct local_queue *held; /* stays in its list, even if it is empty */
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
	struct local_queue *queue;

	while ((queue = TAILQ_FIRST(&l->unplaced->capacity))) {
		TAILQ_REMOVE(&l->unplaced->capacity, queue, entry);
		free(queue);
	}
	free(l->unplaced);
}

struct local_queues *
local_unplaced_capacity(struct local *l)
{
	return &l->unplaced->capacity;
}

struct local_queues *
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

static struct local_queues *
queues_of(struct local *l, const struct local_queue *queue)
{
	return queue->shortage.kind == LOCAL_SHORT_OTHER ? &l->unplaced->other
							 : &l->unplaced->capacity;
}

static void
trim_queue(struct local *l, struct local_queue *queue)
{
	if (!TAILQ_EMPTY(&queue->slots) || queue == l->unplaced->held)
		return;
	TAILQ_REMOVE(queues_of(l, queue), queue, entry);
	if (queue->shortage.kind != LOCAL_SHORT_OTHER)
		free(queue);
}

static struct local_queue *
get_other(struct local *l, struct local_group *group)
{
	if (TAILQ_EMPTY(&group->other.slots) && &group->other != l->unplaced->held)
		TAILQ_INSERT_TAIL(&l->unplaced->other, &group->other, entry);
	return &group->other;
}

/* Returns the queue of this shortage. Groups that need the same capacity share a queue, so there
 * are few. */
static struct local_queue *
get_queue(struct local *l, struct local_group *group, const struct local_shortage *shortage)
{
	struct local_queue *queue;

	if (shortage->kind == LOCAL_SHORT_OTHER)
		return get_other(l, group);
	TAILQ_FOREACH (queue, &l->unplaced->capacity, entry)
		if (local_shortage_equal(&queue->shortage, shortage))
			return queue;
	queue = mem_new(struct local_queue);
	queue->shortage = *shortage;
	TAILQ_INIT(&queue->slots);
	TAILQ_INSERT_TAIL(&l->unplaced->capacity, queue, entry);
	return queue;
}

void
local_unplaced_remove(struct local *l, struct local_slot *slot)
{
	struct local_queue *queue = slot->queue;

	if (!queue)
		return;
	change_queued(slot, -1);
	TAILQ_REMOVE(&queue->slots, slot, queue_entry);
	slot->queue = NULL;
	slot->job->n_unplaced--;
	trim_queue(l, queue);
}

void
local_unplaced_add(struct local *l, struct local_slot *slot, const struct local_shortage *shortage)
{
	struct local_queue *queue = get_queue(l, slot->group, shortage);

	if (slot->queue == queue)
		return;
	local_unplaced_remove(l, slot);
	change_queued(slot, 1);
	slot->queue = queue;
	TAILQ_INSERT_TAIL(&queue->slots, slot, queue_entry);
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
local_unplaced_hold(struct local *l, struct local_queue *queue)
{
	struct local_queue *before = l->unplaced->held;

	l->unplaced->held = queue;
	if (before)
		trim_queue(l, before);
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
