// SPDX-License-Identifier: Apache-2.0
/* task_runner.c: the life of one task. Runs in: supervisor. */
#include "supervisor/alloc/task_runner.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "supervisor/alloc/alloc_status.h"
#include "supervisor/alloc/task_artifacts.h"
#include "supervisor/alloc/task_config.h"
#include "supervisor/alloc/task_decide.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/alloc/task_hooks.h"
#include "supervisor/alloc/task_image.h"
#include "supervisor/alloc/task_start.h"
#include "supervisor/alloc/task_stop.h"
#include "supervisor/alloc/task_templates.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/driver/run.h"
#include "supervisor/driver/run_usage.h"
#include "supervisor/volume/plugin_task.h"

#define LOST_STARTS_MAX 3
#define RESTART_ALL     "User requested all tasks to restart"

static void prepare_run(struct task_runner *tr);
static void start_run(struct task_runner *tr);
static void enter_running(struct task_runner *tr);
static void begin_delay(struct task_runner *tr);
static void stop_run(struct task_runner *tr);
static void decide_restart(struct task_runner *tr);
static void begin_backoff(struct task_runner *tr);
static void enter_dead(struct task_runner *tr);

/* The functions that enter each phase. */
static void (*const enter[TASK_PHASES])(struct task_runner *tr) = {
	[TASK_PREPARING] = prepare_run,
	[TASK_STARTING] = start_run,
	[TASK_RUNNING] = enter_running,
	[TASK_DELAYING] = begin_delay,
	[TASK_STOPPING] = stop_run,
	[TASK_DECIDING] = decide_restart,
	[TASK_BACKOFF] = begin_backoff,
	[TASK_DEAD] = enter_dead,
};

/* The only function that writes the phase. True: the phase has changed. */
static bool
change_phase(struct task_runner *tr, enum task_ev event)
{
	int next = task_phase_next(tr->phase, event);

	if (next < 0) {
		journal_error(JOURNAL_TASK, ABOUT_TASK(tr->ar->sa, tr->task->name),
		    "allocation %.8s task %s: event \"%s\" is not possible in phase \"%s\": "
		    "this is a bug of drover",
		    tr->ar->sa->a.id, tr->task->name, task_ev_names[event],
		    task_phase_names[tr->phase]);
		return false;
	}
	if (tr->phase == (enum task_phase)next)
		return false;
	sup_timer_cancel(&tr->timer);
	tr->phase = (enum task_phase)next;
	return true;
}

static void
handle_event(struct task_runner *tr, enum task_ev event)
{
	if (change_phase(tr, event) && enter[tr->phase])
		enter[tr->phase](tr);
}

static void
enter_dead(struct task_runner *tr)
{
	task_hooks_ends(tr);
	task_image_free(tr);
	task_runner_set_state(tr, TASK_STATE_DEAD);
	if (tr->plugin)
		plugin_task_stopped(tr->plugin);
	alloc_status_update(tr->ar);
}

static void
release_run(struct task_runner *tr)
{
	task_hooks_released(tr);
	if (tr->run)
		run_release(tr->run);
	tr->run = NULL;
}

/* --- start --- */

static void
fail_prepare(
    struct task_runner *tr, enum task_event_type type, const struct err *e, bool recoverable)
{
	task_runner_tell(tr, type, e->msg, false);
	restart_tracker_start_failed(&tr->tracker, recoverable);
	handle_event(tr, TASK_EV_PREPARE_FAILED);
}

static void
on_image(struct task_runner *tr, int r, const struct err *e)
{
	if (tr->phase != TASK_PREPARING) /* it was killed meanwhile */
		return;
	if (r < 0)
		fail_prepare(tr, r == -EINVAL ? EVENT_FAILED_VALIDATION : EVENT_DRIVER_FAILURE, e,
		    r != -EINVAL);
	else
		handle_event(tr, tr->gate_open ? TASK_EV_PREPARED : TASK_EV_GATE_SHUT);
}

/* If it has an error, the start fails with that. */
static void
on_config_ready(struct task_runner *tr)
{
	if (tr->phase == TASK_PREPARING)
		task_image_prepare(tr, on_image);
}

static void
finish_prepare(struct task_runner *tr, int r, const struct err *e)
{
	if (tr->phase != TASK_PREPARING) /* it was killed meanwhile */
		return;
	if (r >= 0)
		task_config_prepare(tr, on_config_ready);
	else
		fail_prepare(tr, EVENT_HOOK_FAILED, e, true);
}

static void
on_templates(struct task_runner *tr)
{
	if (tr->plugin)
		plugin_task_prepare(tr->plugin);
	else
		finish_prepare(tr, 0, NULL);
}

static void
on_artifacts(struct task_runner *tr, int r, const struct err *e)
{
	if (r < 0)
		fail_prepare(tr, EVENT_ARTIFACT_FAILED, e, r != -EINVAL);
	else
		task_templates_prepare(tr, on_templates);
}

static void
prepare_run(struct task_runner *tr)
{
	struct task_state *s = task_runner_state(tr);

	task_config_free(tr); /* an answer to an earlier preparation does not count */
	if (s->events.n <= 1)
		task_runner_tell(tr, EVENT_TASK_SETUP, "Building Task Directory", false);
	task_artifacts_prepare(tr, on_artifacts);
}

static void on_admitted(struct driver_wait *w);
static void on_started(void *arg, const struct exe_hello *hello);
static void on_failed(void *arg, const char *sentence, enum run_fault fault);
static void on_ended(void *arg, const struct run_end *end);

static const struct run_events run_events = {
	.started = on_started,
	.failed = on_failed,
	.ended = on_ended,
};

static void
start_run(struct task_runner *tr)
{
	struct err e = { 0 };
	int r;

	r = task_start(tr, &run_events, &tr->run, &e);
	if (r >= 0) {
		task_hooks_filled(tr);
		task_stop_tell_executor(tr);
		return;
	}
	task_runner_tell(
	    tr, r == -EINVAL ? EVENT_FAILED_VALIDATION : EVENT_DRIVER_FAILURE, e.msg, false);
	restart_tracker_start_failed(&tr->tracker, r == -ENOMEM || r == -EAGAIN);
	handle_event(tr, TASK_EV_FAILED);
}

static void
on_started(void *arg, const struct exe_hello *hello)
{
	struct task_runner *tr = arg;
	bool is_new = task_runner_state(tr)->state != TASK_STATE_RUNNING;

	driver_start_worked(tr->ar->sup, str(tr->task->driver));
	task_hooks_reported(tr, hello);
	handle_event(tr, TASK_EV_STARTED);
	if (is_new && hello->state == EXE_RUNNING && tr->run)
		task_start_tell_unmapped(tr, hello->detail);
}

static void
record_start(struct task_runner *tr)
{
	struct task_state *s = task_runner_state(tr);

	tr->lost_starts = 0;
	/* If the state is RUNNING, the last supervisor has recorded this start. */
	if (s->state != TASK_STATE_RUNNING) {
		task_runner_set_state(tr, TASK_STATE_RUNNING);
		task_runner_tell(tr, EVENT_STARTED, NULL, false);
		task_hooks_started(tr);
	}
}

static void
enter_running(struct task_runner *tr)
{
	record_start(tr);
	task_config_follow(tr);
	if (tr->plugin)
		plugin_task_started(tr->plugin, run_id(tr->run));
	task_hooks_runs(tr);
}

static void
on_failed(void *arg, const char *sentence, enum run_fault fault)
{
	struct task_runner *tr = arg;
	const char *command = json_string_value(json_object_get(tr->task->config, "command"));
	const char *image = json_string_value(json_object_get(tr->task->config, "image"));
	char text[ERR_MSG_SIZE];

	/* The task never ran, through no fault of its own: the start is repeated. */
	if (fault == RUN_FAULT_AGENT && tr->phase != TASK_RUNNING &&
	    tr->lost_starts++ < LOST_STARTS_MAX) {
		journal_info(JOURNAL_TASK, ABOUT_TASK(tr->ar->sa, tr->task->name),

		    "allocation %.8s: task %s: %s", tr->ar->sa->a.id, tr->task->name, sentence);
		release_run(tr);
		handle_event(tr, TASK_EV_LOST);
		return;
	}
	if (image)
		(void)snprintf(text, sizeof text, "%s (image \"%s\")", sentence, image);
	else
		(void)snprintf(text, sizeof text, "%s (command \"%s\", user \"%s\")", sentence,
		    command ? command : "", str(tr->task->user));
	if (fault != RUN_FAULT_TASK)
		driver_start_failed(tr->ar->sup, str(tr->task->driver));
	task_hooks_ends(tr);
	task_runner_tell(tr, EVENT_DRIVER_FAILURE, text, false);
	release_run(tr);
	restart_tracker_start_failed(&tr->tracker, fault != RUN_FAULT_TASK);
	handle_event(tr, TASK_EV_FAILED);
}

/* --- end --- */

static void
on_ended(void *arg, const struct run_end *end)
{
	struct task_runner *tr = arg;

	/* It ended before its start was reported. */
	if (end->known && tr->phase == TASK_STARTING)
		record_start(tr);
	if (end->flags & EXE_END_LEASE) {
		tr->ar->starts_nothing = true;
		tr->ar->stop_reason = ALLOC_LEASE_PASSED;
		task_runner_tell_lease(tr, end);
	}
	task_hooks_ends(tr);
	if (tr->plugin)
		plugin_task_run_ended(tr->plugin);
	task_runner_tell_terminated(tr, end);
	release_run(tr);
	if (end->flags & EXE_END_LEASE) {
		if (alloc_fails_by_lease(tr->ar))
			task_runner_set_failed(tr);
		handle_event(tr, TASK_EV_LEASE_END);
		return;
	}
	/* A run that a reboot ended did not fail: the restart policy does not apply. */
	if (end->rebooted)
		restart_tracker_triggered(&tr->tracker, false);
	else
		restart_tracker_exited(&tr->tracker, end->exit_code, end->exit_signal, !end->known);
	handle_event(tr, TASK_EV_ENDED);
}

/* While its driver does not work on this node, a start waits. */
static bool
is_admitted(struct task_runner *tr)
{
	const char *driver = str(tr->task->driver);
	const char *why = driver_stopped_why(tr->ar->sup, driver);
	bool waited = tr->admission.of;
	char text[ERR_MSG_SIZE + 128];

	tr->admission.ready = on_admitted;
	if (driver_admits(tr->ar->sup, driver, &tr->admission))
		return true;
	if (waited || !why)
		return false; /* it was told already, or waits for a moment */
	(void)snprintf(
	    text, sizeof text, "driver %.64s does not work on this node: %s", driver, why);
	task_runner_tell(tr, EVENT_DRIVER_MESSAGE, text, false);
	return false;
}

/* A task never has two runs at a time. Until the last run is reaped, a process of it may live. */
static void
pass_gate(struct task_runner *tr)
{
	if (tr->gate_open && tr->phase == TASK_WAITING &&
	    !run_is_left(tr->ar->sup, &tr->ar->sa->id, tr->task->name) &&
	    !task_hooks_delay_start(tr) && is_admitted(tr))
		handle_event(tr, TASK_EV_GATE_OPEN);
}

static void
on_admitted(struct driver_wait *w)
{
	pass_gate(container_of(w, struct task_runner, admission));
}

static void
on_backoff_end(void *arg)
{
	struct task_runner *tr = arg;

	handle_event(tr, TASK_EV_TIMER);
	pass_gate(tr);
}

static void
decide_restart(struct task_runner *tr)
{
	bool again = task_decide(tr, &tr->delay_ns);

	handle_event(tr, again ? TASK_EV_AGAIN : TASK_EV_OVER);
}

static void
begin_backoff(struct task_runner *tr)
{
	sup_timer_set(tr->ar->sup, &tr->timer, CLOCK_BOOTTIME, (uint64_t)tr->delay_ns / 1000,
	    on_backoff_end, tr);
}

/* --- kill --- */

static void
stop_run(struct task_runner *tr)
{
	task_hooks_ends(tr);
	if (tr->plugin)
		plugin_task_run_ended(tr->plugin);
	task_stop_run(tr);
}

static void
on_delay_end(void *arg)
{
	task_runner_hurry(arg);
}

/* The services of a killed task are deregistered before the delay, those of a restarted task after
 * it. */
static void
begin_delay(struct task_runner *tr)
{
	if (tr->killed) {
		task_hooks_ends(tr);
		tr->delay_ns = task_stop_delay_ns(tr);
	}
	if (tr->delay_ns <= 0)
		handle_event(tr, TASK_EV_TIMER);
	else
		sup_timer_set(tr->ar->sup, &tr->timer, CLOCK_BOOTTIME,
		    (uint64_t)tr->delay_ns / 1000, on_delay_end, tr);
}

void
task_runner_hurry(struct task_runner *tr)
{
	if (tr->phase == TASK_DELAYING)
		handle_event(tr, TASK_EV_TIMER);
}

void
task_runner_kill(struct task_runner *tr, struct task_event *ev)
{
	if (tr->killed || tr->phase == TASK_DEAD) {
		if (ev)
			task_event_done(ev);
		return;
	}
	tr->killed = true;
	if (ev)
		task_runner_event(tr, ev);
	else
		task_stop_record(tr);
	restart_tracker_killed(&tr->tracker);
	handle_event(tr, TASK_EV_KILL);
}

void
task_runner_fail_setup(struct task_runner *tr, const char *sentence)
{
	char text[ERR_MSG_SIZE + 64];

	if (tr->phase == TASK_DEAD)
		return;
	(void)snprintf(text, sizeof text, "failed to setup alloc: %s", sentence);
	task_runner_tell(tr, EVENT_SETUP_FAILURE, text, true);
	tr->killed = true;
	handle_event(tr, TASK_EV_KILL);
}

static void
stop_to_restart(struct task_runner *tr, const char *reason, bool failure, int64_t delay_ns)
{
	/* If the supervisor is restarted, it finds this event and repeats the stop. */
	task_runner_tell(tr, EVENT_RESTART_SIGNALED, reason, false);
	restart_tracker_triggered(&tr->tracker, failure);
	tr->delay_ns = delay_ns;
	handle_event(tr, TASK_EV_RESTART);
}

bool
task_runner_can_restart(const struct task_runner *tr)
{
	return tr->phase == TASK_RUNNING && !tr->killed;
}

int
task_runner_restart(struct task_runner *tr, const char *reason, bool failure, int64_t delay_ns)
{
	if (!task_runner_can_restart(tr))
		return -EINVAL;
	stop_to_restart(tr, reason, failure, delay_ns);
	return 0;
}

bool
task_runner_can_begin_anew(const struct task_runner *tr)
{
	if (tr->killed)
		return false;
	return tr->phase == TASK_RUNNING || tr->phase == TASK_STARTING ||
	       (tr->phase == TASK_DEAD && tr->stage != STAGE_POSTSTOP);
}

int
task_runner_begin_anew(struct task_runner *tr, int64_t delay_ns)
{
	struct task_state *s = task_runner_state(tr);

	if (!task_runner_can_begin_anew(tr))
		return -EINVAL;
	if (tr->phase != TASK_DEAD) {
		stop_to_restart(tr, RESTART_ALL, false, delay_ns);
		return 0;
	}
	s->failed = false;
	task_runner_tell(tr, EVENT_RESTART_SIGNALED, RESTART_ALL, false);
	restart_tracker_triggered(&tr->tracker, false);
	handle_event(tr, TASK_EV_ANEW);
	return 0;
}

int
task_runner_signal(struct task_runner *tr, int signo, const char *text, const char *by)
{
	const char *abbrev = sigabbrev_np(signo);
	struct task_event ev;
	char name[32];

	if ((tr->phase != TASK_RUNNING && tr->phase != TASK_DELAYING) || !tr->run)
		return -EINVAL;
	(void)snprintf(name, sizeof name, "SIG%s", abbrev ? abbrev : "?");
	task_event_signaling(&ev, clock_real_ns(), name, NULL);
	if (text)
		str_set(&ev.display_message, text);
	if (by)
		task_event_detail(&ev, EVENT_DETAIL_BY, by);
	task_runner_event(tr, &ev);
	run_signal(tr->run, signo);
	return 0;
}

/* --- callbacks of a CSI plugin --- */

static void
on_plugin_prepared(void *arg, int r, const struct err *e)
{
	finish_prepare(arg, r, e);
}

static void
on_plugin_event(void *arg, enum task_event_type type, const char *text)
{
	task_runner_tell(arg, type, text, false);
}

static void
on_plugin_failed(void *arg, const char *why)
{
	(void)task_runner_restart(arg, why, true, 0);
}

static const struct plugin_task_events plugin_events = {
	.prepared = on_plugin_prepared,
	.tell = on_plugin_event,
	.failed = on_plugin_failed,
};

/* --- init, restore, update --- */

void
task_runner_init(struct task_runner *tr, struct alloc_runner *ar, const struct task *task)
{
	const struct job *job = &ar->sa->job->job;

	*tr = (struct task_runner){ .ar = ar, .task = task, .stage = task_stage(task) };
	restart_tracker_init(
	    &tr->tracker, task->restart_policy, job->type, task->lifecycle, clock_real_ns());
	if (task->csi_plugin)
		tr->plugin = plugin_task_new(ar->sup, ar->sa, task, &plugin_events, tr);
}

void
task_runner_done(struct task_runner *tr)
{
	sup_timer_cancel(&tr->timer);
	driver_wait_cancel(&tr->admission);
	plugin_task_free(tr->plugin);
	task_image_free(tr);
	task_config_free(tr);
	run_usage_free(tr->usage);
	release_run(tr);
}

static void
restore_dead(struct task_runner *tr, bool alloc_done)
{
	(void)change_phase(tr, TASK_EV_FOUND_DEAD);
	/* The last supervisor may have died after it committed the state. */
	task_hooks_ends(tr);
	if (tr->plugin && !alloc_done)
		plugin_task_stopped(tr->plugin);
}

/* True: the last supervisor was stopping the run for a restart. If the task had started again, a
 * later event would be its last one. */
static bool
was_to_restart(struct task_runner *tr)
{
	const struct task_event *last = task_runner_last_event(tr);

	if (!task_event_is(last, EVENT_RESTART_SIGNALED))
		return false;
	/* All tasks were being restarted: none starts before this run has ended. */
	if (str_eq(last->display_message, RESTART_ALL))
		tr->ar->coordinator = COORDINATOR_INIT;
	return true;
}

void
task_runner_restore(struct task_runner *tr, bool alloc_done)
{
	struct task_state *s = task_runner_state(tr);

	if (s->state == TASK_STATE_DEAD) {
		restore_dead(tr, alloc_done);
		return;
	}
	tr->run = run_find(tr->ar->sup, &tr->ar->sa->id, tr->task->name);
	if (!tr->run) {
		/* Between two runs: its gate opens after the hooks. */
		task_hooks_ends(tr);
		task_runner_set_state(tr, TASK_STATE_PENDING);
		return;
	}
	(void)change_phase(tr, TASK_EV_FOUND_RUN);
	if (was_to_restart(tr)) {
		restart_tracker_triggered(&tr->tracker, false);
		tr->delay_ns = 0;
		handle_event(tr, TASK_EV_RESTART);
	}
	task_stop_tell_executor(tr);
	run_follow(tr->run, &run_events, tr);
}

void
task_runner_update(struct task_runner *tr, const struct task *task)
{
	tr->task = task;
	if (tr->plugin && task->csi_plugin)
		plugin_task_update(tr->plugin, task);
	restart_tracker_set_policy(&tr->tracker, task->restart_policy);
	if (tr->run)
		task_stop_tell_executor(tr);
}

void
task_runner_set_gate(struct task_runner *tr, bool open)
{
	tr->gate_open = open;
	pass_gate(tr);
}

void
task_runner_count(struct task_runner *tr, struct stage_count stages[STAGES])
{
	const struct task_state *s = task_runner_state(tr);
	struct stage_count *c = &stages[tr->stage];

	c->n++;
	c->running += s->state == TASK_STATE_RUNNING;
	c->dead += s->state == TASK_STATE_DEAD;
	c->failed += s->state == TASK_STATE_DEAD && s->failed;
	c->pending += s->state == TASK_STATE_PENDING || s->state == TASK_STATE_NONE;
}

void
task_runner_run_gone(struct task_runner *tr)
{
	if (tr->phase == TASK_DEAD)
		task_hooks_ends(tr);
	pass_gate(tr);
}
