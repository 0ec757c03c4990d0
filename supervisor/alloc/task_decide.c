// SPDX-License-Identifier: Apache-2.0
/* task_decide.c: decides whether a task whose run has ended starts again, and records the decision.
 * Runs in: supervisor. */
#include "supervisor/alloc/task_decide.h"

#include <stdlib.h>

#include "common/clock.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/alloc/task_hooks.h"

static double
random_fraction(void *arg)
{
	return (double)(random() & 0xffffff) / 0x1000000;
}

static void
record_restart(struct task_runner *tr, const struct restart_decision *d)
{
	struct task_state *s = task_runner_state(tr);
	struct task_event ev;

	task_runner_set_state(tr, TASK_STATE_PENDING);
	s->restarts++;
	s->last_restart = clock_real_ns();
	task_event_restarting(&ev, clock_real_ns(), d->reason, d->delay_ns);
	task_runner_event(tr, &ev);
}

static struct restart_decision
ask_policy(struct task_runner *tr)
{
	alloc_save_soon(tr->ar);
	return restart_tracker_decide(&tr->tracker, clock_real_ns(), random_fraction, NULL);
}

bool
task_decide(struct task_runner *tr, int64_t *ret_delay_ns)
{
	struct restart_decision d = { .verdict = RESTART_KILLED };
	cleanup_done(task_event) struct task_event bar;
	struct task_end_facts facts = {
		.killed = tr->killed,
		.alloc_ends = tr->ar->kill.step != KILL_NOT && tr->stage != STAGE_POSTSTOP,
	};

	task_event_init(&bar);
	facts.barred = task_hooks_bar_restart(tr, &bar);
	if (!tr->killed)
		d = ask_policy(tr);
	facts.verdict = d.verdict;
	switch (task_outcome(&facts)) {
	case TASK_STARTS_AGAIN:
		record_restart(tr, &d);
		*ret_delay_ns = d.delay_ns;
		return true;
	case TASK_ENDS_BARRED:
		task_runner_event(tr, &bar);
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
