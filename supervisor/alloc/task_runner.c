// SPDX-License-Identifier: Apache-2.0
/* task_runner.c: the life of one task. Runs in: supervisor. */
#include "supervisor/alloc/task_runner.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/log.h"
#include "supervisor/alloc/alloc_identity.h"
#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/alloc/task_session.h"
#include "supervisor/alloc/task_start.h"
#include "supervisor/alloc/task_stop.h"
#include "supervisor/driver/run_usage.h"
#include "supervisor/service/checks.h"
#include "supervisor/service/services.h"
#include "supervisor/core/sup_child.h"
#include "supervisor/volume/plugin_task.h"

#define LOST_STARTS_MAX 3
#define RESTART_ALL     "User requested all tasks to restart"

enum task_ev {
	TASK_EV_GATE_OPEN,
	TASK_EV_PREPARED,
	TASK_EV_GATE_SHUT, /* prepared, but all tasks are to begin anew meanwhile */
	TASK_EV_PREPARE_FAILED,
	TASK_EV_STARTED,
	TASK_EV_FAILED, /* a start did not work; the tracker knows why */
	TASK_EV_LOST,   /* a start got lost in the agent itself: once more, and the policy is not
			   asked */
	TASK_EV_ENDED,
	TASK_EV_TIMER,
	TASK_EV_KILL,
};

static void prepare(struct task_runner *tr);
static void start_run(struct task_runner *tr);
static void note_started(struct task_runner *tr);
static void decide(struct task_runner *tr);
static void begin_end(struct task_runner *tr);
static void begin_kill(struct task_runner *tr);
static void end_killed(struct task_runner *tr);
static void never_started(struct task_runner *tr);
static void keep_waiting(struct task_runner *tr);

/* All states and every way between them. What is not here is no event of that state and is ignored.
 */
static const struct task_edge {
	enum task_phase phase;
	enum task_ev event;
	enum task_phase next;
	void (*action)(struct task_runner *tr);
} edges[] = {
	{ TASK_WAITING, TASK_EV_GATE_OPEN, TASK_PREPARING, prepare },
	{ TASK_WAITING, TASK_EV_KILL, TASK_DEAD, never_started },
	{ TASK_PREPARING, TASK_EV_PREPARED, TASK_STARTING, start_run },
	{ TASK_PREPARING, TASK_EV_GATE_SHUT, TASK_WAITING, keep_waiting },
	{ TASK_PREPARING, TASK_EV_PREPARE_FAILED, TASK_BACKOFF, decide },
	{ TASK_PREPARING, TASK_EV_KILL, TASK_DEAD, never_started },
	{ TASK_STARTING, TASK_EV_STARTED, TASK_RUNNING, note_started },
	{ TASK_STARTING, TASK_EV_FAILED, TASK_BACKOFF, decide },
	{ TASK_STARTING, TASK_EV_LOST, TASK_WAITING, keep_waiting },
	{ TASK_STARTING, TASK_EV_ENDED, TASK_BACKOFF, decide },
	{ TASK_STARTING, TASK_EV_KILL, TASK_STOPPING, begin_end },
	{ TASK_RUNNING, TASK_EV_ENDED, TASK_BACKOFF, decide },
	{ TASK_RUNNING, TASK_EV_FAILED, TASK_BACKOFF, decide },
	{ TASK_RUNNING, TASK_EV_KILL, TASK_STOPPING, begin_end },
	{ TASK_DELAYING, TASK_EV_STARTED, TASK_DELAYING, keep_waiting },
	{ TASK_DELAYING, TASK_EV_TIMER, TASK_STOPPING, begin_kill },
	{ TASK_DELAYING, TASK_EV_FAILED, TASK_DEAD, end_killed },
	{ TASK_DELAYING, TASK_EV_LOST, TASK_DEAD, end_killed },
	{ TASK_DELAYING, TASK_EV_ENDED, TASK_DEAD, end_killed },
	{ TASK_STOPPING, TASK_EV_STARTED, TASK_STOPPING, keep_waiting },
	{ TASK_STOPPING, TASK_EV_FAILED, TASK_DEAD, end_killed },
	{ TASK_STOPPING, TASK_EV_LOST, TASK_DEAD, end_killed },
	{ TASK_STOPPING, TASK_EV_ENDED, TASK_DEAD, end_killed },
	{ TASK_BACKOFF, TASK_EV_TIMER, TASK_WAITING, keep_waiting },
	{ TASK_BACKOFF, TASK_EV_KILL, TASK_DEAD, never_started },
};

static double
chance(void *arg)
{
	return (double)(random() & 0xffffff) / 0x1000000;
}

static bool
turn_edge(struct task_runner *tr, enum task_ev event)
{
	for (size_t i = 0; i < ELEMENTSOF(edges); i++) {
		if (edges[i].phase != tr->phase || edges[i].event != event)
			continue;
		tr->phase = edges[i].next;
		edges[i].action(tr);
		return true;
	}
	return false;
}

static void
join_services(struct task_runner *tr)
{
	struct err e = { 0 };

	tr->services_on = services_up(tr->ar, tr->task, &e) >= 0;
	if (!tr->services_on)
		task_runner_tell(tr, EVENT_HOOK_FAILED, e.msg, false);
}

static void
leave_services(struct task_runner *tr)
{
	tr->services_on = false;
	services_down(tr->ar, tr->task);
}

/* Nothing of it runs or will run. */
static void
die(struct task_runner *tr, bool failed)
{
	struct task_state *s = task_runner_state(tr);

	tr->phase = TASK_DEAD;
	leave_services(tr);
	if (s && failed)
		s->failed = true;
	task_runner_set_state(tr, TASK_STATE_DEAD);
	if (tr->plugin)
		plugin_task_stopped(tr->plugin);
	alloc_runner_task_changed(tr->ar);
}

static void
drop_run(struct task_runner *tr)
{
	task_files_forget(tr->files);
	tr->files = NULL;
	if (tr->run)
		run_release(tr->run);
	tr->run = NULL;
}

/* --- start --- */

static void
prepare(struct task_runner *tr)
{
	struct task_state *s = task_runner_state(tr);

	if (s && s->events.n <= 1)
		task_runner_tell(tr, EVENT_TASK_SETUP, "Building Task Directory", false);
	if (tr->plugin)
		plugin_task_prepare(tr->plugin);
	else
		task_runner_prepared(tr, 0, NULL);
}

void
task_runner_prepared(struct task_runner *tr, int r, const struct err *e)
{
	if (r >= 0) {
		(void)turn_edge(tr, tr->gate_open ? TASK_EV_PREPARED : TASK_EV_GATE_SHUT);
		return;
	}
	if (tr->phase != TASK_PREPARING)
		return;
	task_runner_tell(tr, EVENT_HOOK_FAILED, e->msg, false);
	restart_tracker_start_failed(&tr->tracker, true);
	(void)turn_edge(tr, TASK_EV_PREPARE_FAILED);
}

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

	r = task_start(tr->ar->sup, tr->ar, tr, &run_events, &tr->run, &e);
	if (r >= 0) {
		alloc_identities_start_made(tr);
		task_stop_tell_executor(tr);
		return;
	}
	task_runner_tell(
	    tr, r == -EINVAL ? EVENT_FAILED_VALIDATION : EVENT_DRIVER_FAILURE, e.msg, false);
	restart_tracker_start_failed(&tr->tracker, r == -ENOMEM || r == -EAGAIN);
	(void)turn_edge(tr, TASK_EV_FAILED);
}

static void
on_started(void *arg, const struct exe_hello *hello)
{
	struct task_runner *tr = arg;

	/* Its executor is there and lets it run: by the page that it reads, its lease holds. */
	if (hello->state == EXE_RUNNING)
		tr->ar->lease_passed = false;
	(void)turn_edge(tr, TASK_EV_STARTED);
}

static void
say_started(struct task_runner *tr)
{
	struct task_state *s = task_runner_state(tr);

	tr->lost_starts = 0;
	/* A run that the last supervisor had seen running is no news. */
	if (s && s->state != TASK_STATE_RUNNING) {
		task_runner_set_state(tr, TASK_STATE_RUNNING);
		task_runner_tell(tr, EVENT_STARTED, NULL, false);
		checks_task_started(tr);
	}
}

static void
note_started(struct task_runner *tr)
{
	say_started(tr);
	join_services(tr);
	services_return(tr->ar);
	if (tr->plugin)
		plugin_task_started(tr->plugin, run_id(tr->run));
	alloc_identities_task_runs(tr);
}

static void
on_failed(void *arg, const char *sentence, enum run_fault fault)
{
	struct task_runner *tr = arg;
	const char *command = json_string_value(json_object_get(tr->task->config, "command"));
	char text[ERR_MSG_SIZE];

	/* Nothing has happened to the task: what becomes of it is what would have. */
	if (fault == RUN_FAULT_AGENT && tr->lost_starts++ < LOST_STARTS_MAX) {
		log_info(
		    "allocation %.8s: task %s: %s", tr->ar->sa->a.id, tr->task->name, sentence);
		drop_run(tr);
		(void)turn_edge(tr, TASK_EV_LOST);
		return;
	}
	(void)snprintf(text, sizeof text, "%s (command \"%s\", user \"%s\")", sentence,
	    command ? command : "", str(tr->task->user));
	task_runner_tell(tr, EVENT_DRIVER_FAILURE, text, false);
	drop_run(tr);
	restart_tracker_start_failed(&tr->tracker, fault != RUN_FAULT_TASK);
	(void)turn_edge(tr, TASK_EV_FAILED);
}

/* --- end --- */

static void
on_ended(void *arg, const struct run_end *end)
{
	struct task_runner *tr = arg;

	/* It was over before anybody asked. */
	if (end->known && tr->phase == TASK_STARTING)
		say_started(tr);
	if (end->flags & EXE_END_LEASE) {
		tr->ar->lease_over = true;
		task_runner_tell_lease(tr, end);
	}
	leave_services(tr);
	if (tr->plugin)
		plugin_task_run_ended(tr->plugin);
	task_runner_tell_terminated(tr, end);
	drop_run(tr);
	if (end->flags & EXE_END_LEASE) {
		die(tr, true);
		return;
	}
	/* What a reboot ended did not fail: it runs on, whatever its policy says of failures. */
	if (end->rebooted)
		restart_tracker_triggered(&tr->tracker, false);
	else
		restart_tracker_exited(&tr->tracker, end->exit_code, end->exit_signal, !end->known);
	(void)turn_edge(tr, TASK_EV_ENDED);
}

/* Never two runs of a task at a time: something of the last one may be alive until it is reaped. */
static void
look_at_gate(struct task_runner *tr)
{
	if (tr->gate_open && tr->phase == TASK_WAITING &&
	    !run_is_left(tr->ar->sup, &tr->ar->sa->id, tr->task->name))
		(void)turn_edge(tr, TASK_EV_GATE_OPEN);
}

static int
on_backoff_end(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct task_runner *tr = userdata;

	tr->timer = sd_event_source_disable_unref(tr->timer);
	(void)turn_edge(tr, TASK_EV_TIMER);
	look_at_gate(tr);
	return 0;
}

/* What ran when its lease passed, while nobody of the agent was there, is not started again. */
static void
end_by_lease(struct task_runner *tr)
{
	struct task_event ev;
	char text[400];

	alloc_lease_text(tr->ar, text, sizeof text);
	if (task_event_make(&ev, EVENT_NOT_RESTARTING, task_now_ns(), text) == 0) {
		(void)task_event_set_fails(&ev);
		(void)task_event_detail(&ev, EVENT_DETAIL_LEASE, "passed");
		task_runner_event(tr, &ev);
	}
	die(tr, true);
}

static void
note_restart(struct task_runner *tr)
{
	struct task_state *s = task_runner_state(tr);

	task_runner_set_state(tr, TASK_STATE_PENDING);
	if (!s)
		return;
	s->restarts++;
	s->last_restart = task_now_ns();
}

/* The state is BACKOFF already; the tracker may say that it is the end instead. */
static void
decide(struct task_runner *tr)
{
	struct restart_decision d =
	    restart_tracker_decide(&tr->tracker, task_now_ns(), chance, NULL);
	struct task_event ev;

	alloc_client_save(tr->ar);
	switch (d.verdict) {
	case RESTART_AGAIN:
		if (tr->ar->lease_passed) {
			end_by_lease(tr);
			return;
		}
		/* It ended by itself while the alloc's end waits for the group's shutdown_delay. */
		if (tr->ar->kill != KILL_NOT && tr->stage != STAGE_POSTSTOP) {
			die(tr, false);
			return;
		}
		note_restart(tr);
		if (task_event_restarting(&ev, task_now_ns(), d.reason, d.delay_ns) == 0)
			task_runner_event(tr, &ev);
		if (tr->phase != TASK_BACKOFF) /* the event made somebody kill it */
			return;
		if (sd_event_add_time_relative(tr->ar->sup->event, &tr->timer, CLOCK_BOOTTIME,
			(uint64_t)d.delay_ns / 1000, 0, on_backoff_end, tr) < 0)
			die(tr, true);
		return;
	case RESTART_NOT:
		tr->phase = TASK_DEAD;
		task_runner_tell(tr, EVENT_NOT_RESTARTING, d.reason, true);
		die(tr, true);
		return;
	case RESTART_KILLED:
		task_runner_tell(tr, EVENT_KILLED, NULL, false);
		die(tr, false);
		return;
	case RESTART_TERMINATED:
	case RESTART_UNKNOWN:
		die(tr, false);
		return;
	}
}

/* --- kill --- */

static void
begin_kill(struct task_runner *tr)
{
	leave_services(tr);
	if (tr->plugin)
		plugin_task_run_ended(tr->plugin);
	task_stop_run(tr);
}

static int
on_delay_end(sd_event_source *source, uint64_t usec, void *userdata)
{
	task_runner_hurry(userdata);
	return 0;
}

/* It is to end, and runs on for so long. */
static bool
delay(struct task_runner *tr, int64_t ns)
{
	if (ns <= 0 || sd_event_add_time_relative(tr->ar->sup->event, &tr->timer, CLOCK_BOOTTIME,
			   (uint64_t)ns / 1000, 0, on_delay_end, tr) < 0)
		return false;
	tr->phase = TASK_DELAYING;
	return true;
}

static void
begin_end(struct task_runner *tr)
{
	int64_t left = task_stop_delay_ns(tr);

	leave_services(tr);
	if (!delay(tr, left))
		begin_kill(tr);
}

void
task_runner_hurry(struct task_runner *tr)
{
	if (tr->phase != TASK_DELAYING)
		return;
	tr->timer = sd_event_source_disable_unref(tr->timer);
	(void)turn_edge(tr, TASK_EV_TIMER);
}

static void
end_killed(struct task_runner *tr)
{
	tr->timer = sd_event_source_disable_unref(tr->timer);
	if (tr->killed) {
		task_runner_tell(tr, EVENT_KILLED, NULL, false);
		die(tr, false);
		return;
	}
	/* Told to restart. */
	tr->phase = TASK_BACKOFF;
	decide(tr);
}

static void
never_started(struct task_runner *tr)
{
	tr->timer = sd_event_source_disable_unref(tr->timer);
	child_call_cancel(tr->ar->sup, tr->call);
	die(tr, false);
}

static void
keep_waiting(struct task_runner *tr)
{
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
		task_stop_say(tr);
	restart_tracker_killed(&tr->tracker);
	(void)turn_edge(tr, TASK_EV_KILL);
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
	if (!turn_edge(tr, TASK_EV_KILL))
		return;
	if (tr->phase == TASK_DEAD)
		die(tr, true);
}

/* The event says it to the next supervisor, should this one not get to it. */
static void
stop_to_restart(struct task_runner *tr, const char *reason, bool failure, int64_t delay_ns)
{
	task_runner_tell(tr, EVENT_RESTART_SIGNALED, reason, false);
	restart_tracker_triggered(&tr->tracker, failure);
	tr->phase = TASK_STOPPING;
	if (!delay(tr, delay_ns))
		begin_kill(tr);
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
task_runner_can_begin_anew(struct task_runner *tr)
{
	if (tr->killed)
		return false;
	return tr->phase == TASK_RUNNING || tr->phase == TASK_STARTING ||
	       (tr->phase == TASK_DEAD && tr->stage != STAGE_POSTSTOP && task_runner_state(tr));
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
	tr->phase = TASK_BACKOFF;
	decide(tr);
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
	if (task_event_signaling(&ev, task_now_ns(), name, NULL) == 0) {
		if (text)
			(void)str_set(&ev.display_message, text);
		if (by)
			(void)task_event_detail(&ev, EVENT_DETAIL_BY, by);
		task_runner_event(tr, &ev);
	}
	run_signal(tr->run, signo);
	return 0;
}

/* --- beginning and end --- */

void
task_runner_init(struct task_runner *tr, struct alloc_runner *ar, const struct task *task)
{
	const struct job *job = &ar->sa->job->job;

	*tr = (struct task_runner){ .ar = ar, .task = task, .stage = task_stage(task) };
	restart_tracker_init(
	    &tr->tracker, task->restart_policy, job->type, task->lifecycle, task_now_ns());
	if (task->csi_plugin)
		tr->plugin = plugin_task_new(tr);
}

void
task_runner_done(struct task_runner *tr)
{
	tr->timer = sd_event_source_disable_unref(tr->timer);
	child_call_cancel(tr->ar->sup, tr->call);
	plugin_task_free(tr->plugin);
	run_usage_free(tr->usage);
	drop_run(tr);
}

void
task_runner_restore(struct task_runner *tr)
{
	struct task_state *s = task_runner_state(tr);

	if (!s || s->state == TASK_STATE_DEAD) {
		tr->phase = TASK_DEAD;
		/* The last supervisor may have died between the commit of that and what follows it.
		 */
		leave_services(tr);
		if (tr->plugin && tr->ar->phase != ALLOC_DONE)
			plugin_task_stopped(tr->plugin);
		return;
	}
	tr->run = run_find(tr->ar->sup, &tr->ar->sa->id, tr->task->name);
	if (!tr->run) {
		leave_services(tr);
		/* Between two runs; its gate opens when the hooks have looked at everything again.
		 */
		task_runner_set_state(tr, TASK_STATE_PENDING);
		return;
	}
	tr->phase = TASK_STARTING;
	/* Of a start too: a run that it is not meant for comes after a later event. */
	if (task_event_is(task_runner_last_event(tr), EVENT_RESTART_SIGNALED)) {
		/* With all others: none of them begins before this one has ended. */
		if (str_eq(task_runner_last_event(tr)->display_message, RESTART_ALL))
			tr->ar->coordinator = COORDINATOR_INIT;
		restart_tracker_triggered(&tr->tracker, false);
		tr->phase = TASK_STOPPING;
		begin_kill(tr);
	}
	task_stop_tell_executor(tr);
	run_follow(tr->run, &run_events, tr);
}

void
task_runner_update(struct task_runner *tr, const struct task *task)
{
	tr->task = task;
	restart_tracker_set_policy(&tr->tracker, task->restart_policy);
	if (tr->run)
		task_stop_tell_executor(tr);
}

void
task_runner_set_gate(struct task_runner *tr, bool open)
{
	tr->gate_open = open;
	look_at_gate(tr);
}

void
task_runner_count(struct task_runner *tr, struct stage_count stages[STAGES])
{
	const struct task_state *s = task_runner_state(tr);
	struct stage_count *c = &stages[tr->stage];

	c->n++;
	c->running += s && s->state == TASK_STATE_RUNNING;
	c->dead += s && s->state == TASK_STATE_DEAD;
	c->failed += s && s->state == TASK_STATE_DEAD && s->failed;
	c->pending += !s || s->state == TASK_STATE_PENDING || s->state == TASK_STATE_NONE;
}

void
task_runner_run_gone(struct task_runner *tr)
{
	look_at_gate(tr);
}
