// SPDX-License-Identifier: Apache-2.0
/* task_stop.c: stops a run with the delay, signal and timeout of its job. Runs in: supervisor. */
#include "supervisor/alloc/task_stop.h"

#include <signal.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/number.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/alloc/task_image.h"
#include "supervisor/driver/run.h"
#include "supervisor/driver/signal_name.h"

static int64_t
kill_timeout_ns(const struct task_runner *tr)
{
	int64_t max = (int64_t)tr->ar->sup->config->max_kill_timeout_ms * NS_PER_MS;

	return tr->task->kill_timeout < max ? tr->task->kill_timeout : max;
}

int
task_stop_signal(struct task_runner *tr)
{
	const char *name = str(tr->task->kill_signal);

	return *name ? signal_from_name(name) : task_image_stop_signal(tr);
}

static int
kill_signal(struct task_runner *tr)
{
	int signo = task_stop_signal(tr);

	return signo > 0 ? signo : SIGINT;
}

void
task_stop_tell_executor(struct task_runner *tr)
{
	const struct run_own_stop wanted = {
		.limit_ms = group_stop_after_ms(tr->ar->sa->group),
		.kill_signal = (uint32_t)kill_signal(tr),
		.kill_timeout_ms = (uint64_t)kill_timeout_ns(tr) / NS_PER_MS,
	};

	run_set_own_stop(tr->run, &wanted);
}

void
task_stop_run(struct task_runner *tr)
{
	if (tr->run)
		run_stop(tr->run, kill_signal(tr), (uint64_t)kill_timeout_ns(tr) / NS_PER_MS);
}

int64_t
task_stop_delay_ns(struct task_runner *tr)
{
	const struct task_event *last = task_runner_last_event(tr);
	const struct task_state *s = task_runner_state(tr);
	int64_t delay = tr->task->shutdown_delay, now = clock_real_ns(), left = delay;
	bool skip = alloc_skips_delay(tr->ar);
	struct task_event ev;

	if (delay <= 0 || s->state != TASK_STATE_RUNNING)
		return 0;
	if (task_event_is(last, EVENT_WAITING_SHUTDOWN_DELAY)) {
		left = number_add(last->time, delay) - now;
		return skip ? 0 : left < delay ? left : delay;
	}
	task_event_shutdown_delay(&ev, now, delay, skip);
	task_runner_event(tr, &ev);
	return skip ? 0 : delay;
}

/* The last supervisor had begun to stop the task, and recorded that. */
static bool
was_told_to_end(struct task_runner *tr)
{
	const struct task_event *last = task_runner_last_event(tr);

	return task_event_is(last, EVENT_KILLING) ||
	       task_event_is(last, EVENT_WAITING_SHUTDOWN_DELAY) ||
	       task_event_is(last, EVENT_SKIPPING_SHUTDOWN_DELAY);
}

void
task_stop_record(struct task_runner *tr)
{
	struct task_event ev;

	if (was_told_to_end(tr))
		return;
	task_event_killing(&ev, clock_real_ns(), tr->ar->stop_reason, kill_timeout_ns(tr));
	task_runner_event(tr, &ev);
}
