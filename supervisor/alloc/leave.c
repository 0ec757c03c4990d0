// SPDX-License-Identifier: Apache-2.0
/* leave.c: drains the node before the agent ends. systemd is asked each second for more time, so
 * that the unit's TimeoutStopSec= does not cut the drain off. Runs in: supervisor. */
#include "supervisor/alloc/leave.h"

#include <errno.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "model/node.h"
#include "supervisor/alloc/client.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/source/source.h"

#define TICK_USEC 1000000
#define EXTEND    "EXTEND_TIMEOUT_USEC=15000000"
#define GRACE_MS  5000 /* after the deadline, besides the kill timeouts of tasks */

struct leave {
	struct leave_plan plan;
	struct sup_timer tick;
	uint64_t deadline_ms, give_up_ms; /* of clock_ms(); UINT64_MAX: never */
	bool forced;                      /* the deadline has passed */
	bool stops;                       /* the node stops its allocs itself */
};

static void
end(struct sup *sup)
{
	void (*done)(struct sup * sup) = sup->leave->plan.done;

	sup_timer_cancel(&sup->leave->tick);
	if (done) {
		sup->leave->plan.done = NULL;
		done(sup);
	}
}

static void
on_drained(struct sup *sup)
{
	if (sup->leave->plan.done)
		journal_info(JOURNAL_NODE, NULL, "the node is drained");
	end(sup);
}

static void
stop_allocs(struct sup *sup)
{
	const struct client_stop stop = { .spares_system =
					      sup->leave->plan.drain.ignore_system_jobs,
		.lets_finish = !sup->leave->forced,
		.why = sup->leave->plan.why,
		.done = on_drained };

	sup->leave->stops = true;
	client_stop_all(sup, &stop);
}

static void
on_tick(void *arg)
{
	struct sup *sup = arg;
	struct leave *l = sup->leave;
	uint64_t now = clock_ms();

	if (l->plan.ends_unit)
		(void)sd_notify(0, EXTEND);
	if (now >= l->give_up_ms) {
		journal_warn(JOURNAL_NODE, NULL,
		    "the drain is not complete after its deadline: the agent ends, and the "
		    "remaining tasks keep running");
		end(sup);
		return;
	}
	if (now >= l->deadline_ms && !l->forced) {
		l->forced = true;
		if (l->stops || l->plan.stops_here)
			stop_allocs(sup);
	}
	sup_timer_set(sup, &l->tick, CLOCK_MONOTONIC, TICK_USEC, on_tick, sup);
}

static void
on_left(struct sup *sup, int r, const struct err *e)
{
	if (!sup->leave || !sup->leave->plan.done)
		return;
	if (r >= 0) {
		on_drained(sup);
	} else if (sup->leave->plan.stops_here) {
		journal_warn(JOURNAL_NODE, NULL,
		    "the servers do not drain this node: %s: it stops its allocations itself",
		    e->msg);
		stop_allocs(sup);
	} else {
		journal_warn(JOURNAL_NODE, NULL,
		    "the servers do not drain this node: %s: the agent ends, and its tasks keep "
		    "running",
		    e->msg);
		end(sup);
	}
}

struct drain_strategy
leave_strategy(const struct agent_config *config)
{
	return (struct drain_strategy){
		.deadline =
		    config->drain_force ? -1 : (int64_t)config->drain_deadline_ms * NS_PER_MS,
		.ignore_system_jobs = config->drain_spares_system
	};
}

static void
set_times(struct leave *l, const struct agent_config *config)
{
	int64_t deadline = l->plan.drain.deadline;

	l->forced = deadline < 0;
	l->deadline_ms = l->give_up_ms = UINT64_MAX;
	if (deadline == 0)
		return;
	l->deadline_ms = clock_ms() + (l->forced ? 0 : (uint64_t)(deadline / NS_PER_MS));
	l->give_up_ms = l->deadline_ms + config->max_kill_timeout_ms + GRACE_MS;
}

void
leave_begin(struct sup *sup, const struct leave_plan *plan)
{
	struct leave *l;

	if (sup->leave) {
		sup->leave->plan.ends_unit |= plan->ends_unit;
		return;
	}
	sup->leave = l = mem_new(struct leave);
	l->plan = *plan;
	set_times(l, sup->config);
	journal_info(JOURNAL_NODE, NULL, "draining the node before the agent ends");
	if (sup->source->ops->leave) {
		sup->source->ops->leave(sup->source, &plan->drain, plan->message, on_left);
		if (l->forced && plan->stops_here)
			stop_allocs(sup);
	} else {
		sup->draining = true;
		stop_allocs(sup);
	}
	on_tick(sup);
}

void
leave_cancel(struct sup *sup)
{
	if (sup->leave && sup->leave->stops)
		client_stop_no_more(sup);
	leave_free(sup);
}

void
leave_free(struct sup *sup)
{
	if (sup->leave)
		sup_timer_cancel(&sup->leave->tick);
	free(sup->leave);
	sup->leave = NULL;
}
