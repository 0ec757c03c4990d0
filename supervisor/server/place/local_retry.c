// SPDX-License-Identifier: Apache-2.0
/* local_retry.c: tries again to place slots whose shortage may be over. Runs in: supervisor. */
#include "supervisor/server/place/local_retry.h"

#include "supervisor/node/node_state.h"
#include "supervisor/server/capacity/local_ports.h"
#include "supervisor/server/place/local_drain.h"
#include "supervisor/server/place/local_reconcile.h"
#include "supervisor/server/place/local_unplaced.h"

/* How many slots with one shortage are tried when the obstacle is another, so that their
 * evaluations name it. */
#define TRIED_FOR_REASON 16

static bool
has_per_alloc(const struct task_group *g)
{
	for (size_t i = 0; g && i < g->volumes.n; i++) {
		if (g->volumes.v[i].value.per_alloc)
			return true;
	}
	return false;
}

/* Returns the alloc or dimension that prevents the placement of every slot with this shortage.
 * NULL: it is unknown until
 * a placement is tried. */
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

/* Returns true if the slot is placed, or its shortage is another now. */
static bool
retry_slot(struct local *l, struct local_slot *slot)
{
	struct local_queue *queue = slot->queue;
	struct local_job *j = slot->job;

	if (!local_reconcile_place(l, slot, j->blocked))
		return slot->queue != queue;
	if (j->n_unplaced > 0)
		local_eval_changed(l, j->blocked);
	local_unplaced_unblock(l, j);
	return true;
}

/* After a slot that cannot be placed, the slots behind it are not tried, except those of another
 * version and those of groups whose allocs have volumes of their own. */
static void
retry_queue(struct local *l, struct local_queue *queue)
{
	const struct local_slot *failed = NULL;
	struct local_slot *next;

	for (struct local_slot *slot = TAILQ_FIRST(&queue->slots);
	     slot && !find_obstacle(l, &queue->shortage); slot = next) {
		next = TAILQ_NEXT(slot, queue_entry);
		if (failed && slot->unplaced_version == failed->unplaced_version)
			continue;
		if (retry_slot(l, slot))
			continue;
		if (queue->shortage.kind != LOCAL_SHORT_OTHER)
			break;
		if (!has_per_alloc(job_group(local_job_wanted(slot->job), slot->group->name)))
			failed = slot;
	}
}

/* The obstacle is another now: tries the first slots, so that their evaluations name it. */
static void
try_first_slots(struct local *l, struct local_queue *queue)
{
	struct local_slot *slot = TAILQ_FIRST(&queue->slots), *next;

	for (int i = 0; i < TRIED_FOR_REASON && slot; i++, slot = next) {
		next = TAILQ_NEXT(slot, queue_entry);
		(void)retry_slot(l, slot);
	}
}

static void
retry_queues(struct local *l, struct local_queues *queues)
{
	struct local_queue *next;
	const void *obstacle;

	for (struct local_queue *queue = TAILQ_FIRST(queues); queue; queue = next) {
		local_unplaced_hold(l, queue);
		if (!find_obstacle(l, &queue->shortage))
			retry_queue(l, queue);
		obstacle = find_obstacle(l, &queue->shortage);
		if (obstacle && obstacle != queue->obstacle)
			try_first_slots(l, queue);
		queue->obstacle = obstacle;
		next = TAILQ_NEXT(queue, entry);
		local_unplaced_hold(l, NULL);
	}
}

/* Makes one check for each different shortage and one try for each slot that is placed: the number
 * of waiting slots does not matter. */
void
local_retry_run(struct local *l, bool all)
{
	if (local_drain_is_on(l))
		return;
	retry_queues(l, local_unplaced_capacity(l));
	if (all)
		retry_queues(l, local_unplaced_other(l));
}
