// SPDX-License-Identifier: Apache-2.0
/* task_phase.c: the transitions of a task, and the decision after its run. Runs in: supervisor. */
#include "supervisor/alloc/task_phase.h"

#include <errno.h>
#include <stddef.h>

#include "common/cleanup.h"

const char *const task_phase_names[TASK_PHASES] = {
	[TASK_WAITING] = "waiting",
	[TASK_PREPARING] = "preparing",
	[TASK_STARTING] = "starting",
	[TASK_RUNNING] = "running",
	[TASK_DELAYING] = "delaying",
	[TASK_STOPPING] = "stopping",
	[TASK_DECIDING] = "deciding",
	[TASK_BACKOFF] = "backoff",
	[TASK_DEAD] = "dead",
};

const char *const task_ev_names[TASK_EVS] = {
	[TASK_EV_FOUND_DEAD] = "found dead",
	[TASK_EV_FOUND_RUN] = "found a run",
	[TASK_EV_GATE_OPEN] = "gate open",
	[TASK_EV_PREPARED] = "prepared",
	[TASK_EV_GATE_SHUT] = "gate shut",
	[TASK_EV_PREPARE_FAILED] = "prepare failed",
	[TASK_EV_STARTED] = "started",
	[TASK_EV_FAILED] = "failed",
	[TASK_EV_LOST] = "lost",
	[TASK_EV_ENDED] = "ended",
	[TASK_EV_LEASE_END] = "ended by its lease",
	[TASK_EV_RESTART] = "restart",
	[TASK_EV_ANEW] = "begin anew",
	[TASK_EV_KILL] = "kill",
	[TASK_EV_TIMER] = "timer",
	[TASK_EV_AGAIN] = "again",
	[TASK_EV_OVER] = "over",
};

/* All transitions. Executors report STARTED with each change of their own state. */
static const struct {
	enum task_phase phase;
	enum task_ev event;
	enum task_phase next;
} edges[] = {
	{ TASK_WAITING, TASK_EV_FOUND_DEAD, TASK_DEAD },
	{ TASK_WAITING, TASK_EV_FOUND_RUN, TASK_STARTING },
	{ TASK_WAITING, TASK_EV_GATE_OPEN, TASK_PREPARING },
	{ TASK_WAITING, TASK_EV_KILL, TASK_DEAD },
	{ TASK_PREPARING, TASK_EV_PREPARED, TASK_STARTING },
	{ TASK_PREPARING, TASK_EV_GATE_SHUT, TASK_WAITING },
	{ TASK_PREPARING, TASK_EV_PREPARE_FAILED, TASK_DECIDING },
	{ TASK_PREPARING, TASK_EV_KILL, TASK_DEAD },
	{ TASK_STARTING, TASK_EV_STARTED, TASK_RUNNING },
	{ TASK_STARTING, TASK_EV_FAILED, TASK_DECIDING },
	{ TASK_STARTING, TASK_EV_LOST, TASK_WAITING },
	{ TASK_STARTING, TASK_EV_ENDED, TASK_DECIDING },
	{ TASK_STARTING, TASK_EV_LEASE_END, TASK_DEAD },
	{ TASK_STARTING, TASK_EV_RESTART, TASK_DELAYING },
	{ TASK_STARTING, TASK_EV_KILL, TASK_DELAYING },
	{ TASK_RUNNING, TASK_EV_STARTED, TASK_RUNNING },
	{ TASK_RUNNING, TASK_EV_FAILED, TASK_DECIDING },
	{ TASK_RUNNING, TASK_EV_ENDED, TASK_DECIDING },
	{ TASK_RUNNING, TASK_EV_LEASE_END, TASK_DEAD },
	{ TASK_RUNNING, TASK_EV_RESTART, TASK_DELAYING },
	{ TASK_RUNNING, TASK_EV_KILL, TASK_DELAYING },
	{ TASK_DELAYING, TASK_EV_STARTED, TASK_DELAYING },
	{ TASK_DELAYING, TASK_EV_KILL, TASK_DELAYING },
	{ TASK_DELAYING, TASK_EV_TIMER, TASK_STOPPING },
	{ TASK_DELAYING, TASK_EV_FAILED, TASK_DECIDING },
	{ TASK_DELAYING, TASK_EV_LOST, TASK_DECIDING },
	{ TASK_DELAYING, TASK_EV_ENDED, TASK_DECIDING },
	{ TASK_DELAYING, TASK_EV_LEASE_END, TASK_DEAD },
	{ TASK_STOPPING, TASK_EV_STARTED, TASK_STOPPING },
	{ TASK_STOPPING, TASK_EV_KILL, TASK_STOPPING },
	{ TASK_STOPPING, TASK_EV_FAILED, TASK_DECIDING },
	{ TASK_STOPPING, TASK_EV_LOST, TASK_DECIDING },
	{ TASK_STOPPING, TASK_EV_ENDED, TASK_DECIDING },
	{ TASK_STOPPING, TASK_EV_LEASE_END, TASK_DEAD },
	{ TASK_DECIDING, TASK_EV_AGAIN, TASK_BACKOFF },
	{ TASK_DECIDING, TASK_EV_OVER, TASK_DEAD },
	{ TASK_BACKOFF, TASK_EV_TIMER, TASK_WAITING },
	{ TASK_BACKOFF, TASK_EV_KILL, TASK_DEAD },
	{ TASK_DEAD, TASK_EV_ANEW, TASK_DECIDING },
};

int
task_phase_next(enum task_phase phase, enum task_ev event)
{
	for (size_t i = 0; i < ELEMENTSOF(edges); i++)
		if (edges[i].phase == phase && edges[i].event == event)
			return (int)edges[i].next;
	return -EINVAL;
}

enum task_outcome
task_outcome(const struct task_end_facts *f)
{
	if (f->killed)
		return TASK_ENDS_KILLED;
	switch (f->verdict) {
	case RESTART_AGAIN:
		return f->barred ? TASK_ENDS_BARRED : f->alloc_ends ? TASK_ENDS : TASK_STARTS_AGAIN;
	case RESTART_NOT:
		return TASK_ENDS_BY_POLICY;
	case RESTART_KILLED:
		return TASK_ENDS_KILLED;
	case RESTART_TERMINATED:
	case RESTART_UNKNOWN:
		break;
	}
	return TASK_ENDS;
}
