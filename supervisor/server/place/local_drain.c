// SPDX-License-Identifier: Apache-2.0
/*
 * local_drain.c: the drain of the node. Services are stopped at once, because there is no other
 * node to move to. Batch jobs may finish until the deadline; then system jobs are stopped, and
 * plugins last. The strategy is in state.db until the drain is over. Runs in: supervisor.
 */
#include "supervisor/server/place/local_drain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/alloc/client.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/node/node_state.h"
#include "supervisor/server/feed/local_changes.h"
#include "supervisor/server/job/local_marks.h"

#define STRATEGY_KEY "local_drain_strategy"

static void run_drain(struct local *l);

struct local_drain {
	bool ineligible; /* by an operator: nothing is placed */
	struct dirty row;
	struct sup_timer deadline;
};

static int
write_drain(struct sup *sup, struct dirty *d, struct err *e)
{
	const struct drain_strategy *drain = node_get(sup)->drain_strategy;
	struct text t = { 0 };
	int r = store_meta_put(
	    sup->store, "local_drain", local_of_sup(sup)->drain->ineligible ? "1" : "0", e);

	if (drain)
		model_to_text(&drain_strategy_type, drain, MODEL_COMPACT, &t);
	if (r >= 0)
		r = store_meta_put(sup->store, STRATEGY_KEY, str(t.text), e);
	text_done(&t);
	return r;
}

void
local_drain_init(struct local *l)
{
	l->drain = mem_new(struct local_drain);
	l->drain->row.write = write_drain;
	l->drain->row.point = CRASH_ROW_DRAIN;
}

bool
local_drain_is_on(const struct local *l)
{
	return l->drain->ineligible || l->base.sup->draining;
}

int
local_drain_load(struct local *l, struct err *e)
{
	struct store *store = l->base.sup->store;
	cleanup_free char *ineligible = NULL, *strategy = NULL;
	struct drain_strategy drain = { 0 };
	int r = store_meta_get(store, "local_drain", &ineligible, e);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	l->drain->ineligible = str_eq(ineligible, "1");
	r = store_meta_get(store, STRATEGY_KEY, &strategy, e);
	if (r == -ENOENT || (r >= 0 && !*strategy))
		return 0;
	if (r >= 0)
		r = model_from_text(&drain_strategy_type, strategy, strlen(strategy), &drain, e);
	if (r < 0)
		return r;
	node_set_drain(l->base.sup, &drain);
	return 0;
}

/* The strategy has changed, or has ended. */
static void
record_change(struct local *l)
{
	turn_write(l->base.sup, &l->drain->row);
	turn_durable(l->base.sup);
	local_node_changed(l);
}

static void
end_drain(struct local *l)
{
	sup_timer_cancel(&l->drain->deadline);
	node_set_drain(l->base.sup, NULL);
	record_change(l);
}

static void
on_drained(struct sup *sup)
{
	journal_info(JOURNAL_NODE, NULL, "the node is drained");
	end_drain(local_of_sup(sup));
}

static void
on_deadline(void *arg)
{
	struct local *l = arg;

	run_drain(l);
}

/* Returns the time until the deadline, in ns; INT64_MAX if there is none. */
static int64_t
left_ns(const struct drain_strategy *drain)
{
	int64_t left;

	if (drain->deadline <= 0)
		return drain->deadline == 0 ? INT64_MAX : 0;
	left = drain->force_deadline - clock_real_ns();
	if (left < 0)
		return 0;
	return left < drain->deadline ? left : drain->deadline; /* if the clock was set back */
}

static void
run_drain(struct local *l)
{
	struct sup *sup = l->base.sup;
	const struct drain_strategy *drain = node_get(sup)->drain_strategy;
	int64_t left = left_ns(drain);
	const struct client_stop stop = { .spares_system = drain->ignore_system_jobs,
		.lets_finish = left > 0,
		.why = "node is draining",
		.done = on_drained };

	sup_timer_cancel(&l->drain->deadline);
	if (sup->draining) /* -dev is ending and stops all allocs anyway */
		return;
	if (left > 0 && left < INT64_MAX)
		sup_timer_set(sup, &l->drain->deadline, CLOCK_BOOTTIME, (uint64_t)left / 1000,
		    on_deadline, l);
	client_stop_all(sup, &stop);
}

void
local_drain_start(struct local *l)
{
	if (l->drain->ineligible)
		node_set_takes_allocs(l->base.sup, false);
	if (node_get(l->base.sup)->drain_strategy)
		run_drain(l);
}

void
local_drain_free(struct local *l)
{
	sup_timer_cancel(&l->drain->deadline);
	turn_forget_write(l->base.sup, &l->drain->row);
	free(l->drain);
}

void
local_set_drain(struct source *s, bool on)
{
	struct local *l = local_of(s);

	if (l->drain->ineligible != on) {
		l->drain->ineligible = on;
		turn_write(s->sup, &l->drain->row);
		turn_durable(s->sup);
	}
	local_node_changed(l);
	if (!on)
		local_mark_node(l);
}

void
local_drain_begin(struct local *l, struct drain_strategy *drain)
{
	const struct drain_strategy *old = node_get(l->base.sup)->drain_strategy;
	int64_t now = clock_real_ns();

	drain->started_at = old ? old->started_at : now;
	drain->force_deadline = 0;
	if (drain->deadline > 0 &&
	    __builtin_add_overflow(now, drain->deadline, &drain->force_deadline))
		drain->force_deadline = INT64_MAX;
	node_set_drain(l->base.sup, drain);
	node_set_takes_allocs(l->base.sup, false);
	record_change(l);
	run_drain(l);
}

void
local_drain_cancel(struct local *l, bool eligible)
{
	if (node_get(l->base.sup)->drain_strategy) {
		if (!l->base.sup->draining)
			client_stop_no_more(l->base.sup);
		end_drain(l);
	}
	if (eligible)
		node_set_takes_allocs(l->base.sup, true);
}
