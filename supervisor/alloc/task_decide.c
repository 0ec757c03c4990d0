// SPDX-License-Identifier: Apache-2.0
/* task_decide.c: whether a task whose run is over starts again, and the events that say why. Runs
 * in: supervisor. */
#include "supervisor/alloc/task_decide.h"

#include <stdlib.h>

#include "common/clock.h"
#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/alloc/hook_lease.h"

static double
chance(void *arg)
{
	return (double)(random() & 0xffffff) / 0x1000000;
}

/* The lease passed while no agent was there; the task that ran then is not started again. */
static void
tell_lease_passed(struct task_runner *tr)
{
	struct task_event ev;
	char text[400];

	alloc_lease_text(tr->ar, text, sizeof text);
	task_event_make(&ev, EVENT_NOT_RESTARTING, clock_real_ns(), text);
	task_event_set_fails(&ev);
	task_event_detail(&ev, EVENT_DETAIL_LEASE, "passed");
	task_runner_event(tr, &ev);
}

static void
note_restart(struct task_runner *tr, const struct restart_decision *d)
{
	struct task_state *s = task_runner_state(tr);
	struct task_event ev;

	task_runner_set_state(tr, TASK_STATE_PENDING);
	if (s) {
		s->restarts++;
		s->last_restart = clock_real_ns();
	}
	task_event_restarting(&ev, clock_real_ns(), d->reason, d->delay_ns);
	task_runner_event(tr, &ev);
}

static struct restart_decision
ask_policy(struct task_runner *tr)
{
	struct restart_decision d =
	    restart_tracker_decide(&tr->tracker, clock_real_ns(), chance, NULL);

	alloc_client_save(tr->ar);
	return d;
}

bool
task_decide(struct task_runner *tr, int64_t *ret_delay_ns)
{
	struct restart_decision d = { .verdict = RESTART_KILLED };
	struct task_end_facts facts = {
		.killed = tr->killed,
		.lease_passed = alloc_lease_passed(tr->ar),
		.alloc_ends = tr->ar->kill.step != KILL_NOT && tr->stage != STAGE_POSTSTOP,
	};

	if (!tr->killed)
		d = ask_policy(tr);
	facts.verdict = d.verdict;
	switch (task_outcome(&facts)) {
	case TASK_STARTS_AGAIN:
		note_restart(tr, &d);
		*ret_delay_ns = d.delay_ns;
		return true;
	case TASK_ENDS_BY_LEASE:
		tell_lease_passed(tr);
		task_runner_set_failed(tr);
		break;
	case TASK_ENDS_BY_POLICY:
		task_runner_tell(tr, EVENT_NOT_RESTARTING, d.reason, true);
		task_runner_set_failed(tr);
		break;
	case TASK_ENDS_KILLED:
		task_runner_tell(tr, EVENT_KILLED, NULL, false);
		break;
	case TASK_ENDS:
		break;
	}
	return false;
}
