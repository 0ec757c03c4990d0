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
	void (*done)(struct sup *sup);
	struct sup_timer tick;
	uint64_t deadline_ms, give_up_ms; /* of clock_ms(); UINT64_MAX: never */
	bool forced;                      /* the deadline has passed */
};

static void
end(struct sup *sup)
{
	void (*done)(struct sup * sup) = sup->leave->done;

	sup_timer_cancel(&sup->leave->tick);
	if (done) {
		sup->leave->done = NULL;
		done(sup);
	}
}

static void
on_drained(struct sup *sup)
{
	journal_info(JOURNAL_NODE, NULL, "the node is drained");
	end(sup);
}

static void
stop_allocs(struct sup *sup)
{
	const struct client_stop stop = { .spares_system = sup->config->drain_spares_system,
		.lets_finish = !sup->leave->forced,
		.why = "the agent drains its node before it ends",
		.done = on_drained };

	client_stop_all(sup, &stop);
}

static void
on_tick(void *arg)
{
	struct sup *sup = arg;
	struct leave *l = sup->leave;
	uint64_t now = clock_ms();

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
		if (!sup->source->ops->leave)
			stop_allocs(sup);
	}
	sup_timer_set(sup, &l->tick, CLOCK_MONOTONIC, TICK_USEC, on_tick, sup);
}

static void
on_left(struct sup *sup, int r, const struct err *e)
{
	if (r >= 0) {
		on_drained(sup);
		return;
	}
	journal_warn(JOURNAL_NODE, NULL,
	    "the servers do not drain this node: %s: the agent ends, and its tasks keep running",
	    e->msg);
	end(sup);
}

void
leave_begin(struct sup *sup, void (*done)(struct sup *sup))
{
	const struct agent_config *config = sup->config;
	const struct drain_strategy drain = {
		.deadline =
		    config->drain_force ? -1 : (int64_t)config->drain_deadline_ms * NS_PER_MS,
		.ignore_system_jobs = config->drain_spares_system
	};
	struct leave *l;

	if (sup->leave)
		return;
	sup->leave = l = mem_new(struct leave);
	l->done = done;
	l->forced = config->drain_force;
	l->deadline_ms = drain.deadline == 0
			     ? UINT64_MAX
			     : clock_ms() + (l->forced ? 0 : config->drain_deadline_ms);
	l->give_up_ms = drain.deadline == 0
			    ? UINT64_MAX
			    : l->deadline_ms + config->max_kill_timeout_ms + GRACE_MS;
	journal_info(JOURNAL_NODE, NULL, "draining the node before the agent ends");
	if (sup->source->ops->leave) {
		sup->source->ops->leave(sup->source, &drain, on_left);
	} else {
		sup->draining = true;
		stop_allocs(sup);
	}
	on_tick(sup);
}

void
leave_free(struct sup *sup)
{
	if (sup->leave)
		sup_timer_cancel(&sup->leave->tick);
	free(sup->leave);
	sup->leave = NULL;
}
