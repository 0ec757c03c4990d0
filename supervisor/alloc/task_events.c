// SPDX-License-Identifier: Apache-2.0
/* task_events.c: the state of a task and its last events. Runs in: supervisor. */
#include "supervisor/alloc/task_events.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/alloc_status.h"
#include "supervisor/alloc/task_history.h"
#include "supervisor/core/journal.h"
#include "supervisor/driver/driver.h"
#include "supervisor/driver/run.h"
#include "supervisor/driver/run_usage.h"
#include "supervisor/source/source.h"

struct task_state *
task_runner_state(struct task_runner *tr)
{
	return map_put(task_state, &tr->ar->sa->a.task_states, tr->task->name);
}

void
task_runner_event(struct task_runner *tr, struct task_event *ev)
{
	struct task_state *s = task_runner_state(tr);

	journal_info(JOURNAL_TASK, ABOUT_TASK(tr->ar->sa, tr->task->name),
	    "allocation %.8s task %s: %s: %s", tr->ar->sa->a.id, tr->task->name, str(ev->type),
	    str(ev->display_message));
	s->failed |= ev->fails_task;
	if (s->events.n >= TASK_EVENTS_MAX) {
		task_history_add(tr->ar->sup, &tr->ar->sa->id, tr->task->name, &s->events.v[0]);
		list_remove(task_event, &s->events, 0);
	}
	task_state_add_event(s, ev);
	task_event_done(ev);
	alloc_status_update(tr->ar);
}

const struct task_event *
task_runner_last_event(struct task_runner *tr)
{
	const struct task_state *s = task_runner_state(tr);

	return s->events.n > 0 ? &s->events.v[s->events.n - 1] : NULL;
}

bool
task_event_is(const struct task_event *ev, enum task_event_type type)
{
	return ev && str_eq(ev->type, task_event_name(type));
}

bool
task_runner_has_event(struct task_runner *tr, enum task_event_type type)
{
	const struct task_state *s = task_runner_state(tr);

	for (size_t i = 0; i < s->events.n; i++)
		if (task_event_is(&s->events.v[i], type))
			return true;
	return false;
}

void
task_runner_tell(struct task_runner *tr, enum task_event_type type, const char *text, bool fails)
{
	struct task_event ev;

	task_event_make(&ev, type, clock_real_ns(), text);
	if (fails)
		task_event_set_fails(&ev);
	task_runner_event(tr, &ev);
}

void
task_runner_tell_progress(struct task_runner *tr, enum task_event_type type, const char *shown,
    uint64_t bytes, uint64_t total)
{
	struct task_event ev;

	task_event_make(&ev, type, clock_real_ns(), NULL);
	if (total > 0)
		str_setf(&ev.display_message, "Downloading \"%s\": %.1f of %.1f MiB", shown,
		    (double)bytes / (1 << 20), (double)total / (1 << 20));
	else
		str_setf(&ev.display_message, "Downloading \"%s\": %.1f MiB so far", shown,
		    (double)bytes / (1 << 20));
	task_runner_event(tr, &ev);
}

void
alloc_tell_tasks(struct alloc_runner *ar, enum task_event_type type, const char *text)
{
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_runner_tell(&ar->tasks[i], type, text, false);
}

void
task_runner_set_state(struct task_runner *tr, enum task_run_state state)
{
	struct task_state *s = task_runner_state(tr);

	if (state == TASK_STATE_RUNNING && s->state != TASK_STATE_RUNNING)
		s->started_at = clock_real_ns();
	if (state == TASK_STATE_DEAD && s->finished_at == 0)
		s->finished_at = clock_real_ns();
	if (state != TASK_STATE_DEAD)
		s->finished_at = 0;
	s->state = state;
}

void
task_runner_set_failed(struct task_runner *tr)
{
	task_runner_state(tr)->failed = true;
}

void
task_runner_tell_lease(struct task_runner *tr, const struct run_end *end)
{
	char limit[DURATION_SIZE], late[DURATION_SIZE], ago[DURATION_SIZE], text[400];
	struct task_event ev;

	duration_format((int64_t)(end->lease_limit_ms * 1000000), limit);
	duration_format((int64_t)end->lease_late_ns, late);
	duration_format((int64_t)end->lease_last_ok_ns, ago);
	if (end->lease_last_ok_ns)
		(void)snprintf(text, sizeof text,
		    "stop_after_client_disconnect of %s passed: the last answered heartbeat was %s "
		    "after boot (the stop "
		    "began %s after the limit)",
		    limit, ago, late);
	else
		(void)snprintf(text, sizeof text,
		    "stop_after_client_disconnect of %s passed: no heartbeat was answered since "
		    "boot (the stop began %s "
		    "after the limit)",
		    limit, late);
	task_event_killing(&ev, clock_real_ns(), text, 0);
	if (alloc_fails_by_lease(tr->ar))
		task_event_set_fails(&ev);
	task_event_detail(&ev, EVENT_DETAIL_LEASE, limit);
	if (end->flags & EXE_END_SYNCED)
		task_event_detail(&ev, "volumes_synced", "true");
	if (end->flags & EXE_END_SYNC_LATE)
		task_event_detail(&ev, "volumes_synced", "false");
	task_runner_event(tr, &ev);
}

bool
signal_is_fault(int signo)
{
	static const int faults[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPIPE, SIGSEGV, SIGSYS,
		SIGTRAP, SIGXCPU, SIGXFSZ };

	for (size_t i = 0; i < ELEMENTSOF(faults); i++)
		if (faults[i] == signo)
			return true;
	return false;
}

#define BY_STOP (EXE_END_STOP | EXE_END_LEASE | EXE_END_KILLED)

/* Returns who sent the signal that ended the run; NULL: there was none, or it is not known. */
static const char *
sender_of(const struct run_end *end)
{
	if (!end->known || !end->exit_signal)
		return NULL;
	if (end->flags & EXE_END_SENT)
		return end->flags & BY_STOP ? EVENT_SENDER_STOP : EVENT_SENDER_REQUEST;
	if (end->exit_signal == SIGKILL && (end->flags & EXE_END_OOM))
		return EVENT_SENDER_OOM;
	return end->flags & EXE_END_FOREIGN ? EVENT_SENDER_OTHER : NULL;
}

/* Writes what is known about the end besides code and signal; "": nothing. */
static void
say_reason(const struct task_runner *tr, const struct run_end *end, bool oom_outside, char *buf,
    size_t size)
{
	const char *whose = oom_outside ? ": the machine or a parent cgroup was out of memory; "
					  "its own limit was not reached"
					: "";
	const struct driver_ops *driver = driver_find(str(tr->task->driver));
	const char *sender = str(sender_of(end)), *abbrev = sigabbrev_np(end->exit_signal);
	bool other = strcmp(sender, EVENT_SENDER_OTHER) == 0;
	/* An executor of an earlier version reports whether it stopped the task, but not which
	 * signals it sent. */
	bool unstopped = other || (end->known && !*sender && !(end->flags & BY_STOP));

	buf[0] = '\0';
	if (strcmp(sender, EVENT_SENDER_OOM) == 0)
		(void)snprintf(buf, size, "OOM Killed%s", whose);
	else if ((end->flags & EXE_END_OOM) && end->exit_signal != SIGKILL)
		(void)snprintf(
		    buf, size, "the kernel OOM-killed another of its processes%s", whose);
	else if (strcmp(sender, EVENT_SENDER_REQUEST) == 0)
		(void)snprintf(buf, size, "SIG%s, sent on request", abbrev ? abbrev : "?");
	else if (end->exit_signal == SIGSYS && unstopped && driver && driver->isolates_files)
		(void)snprintf(buf, size,
		    "SIGSYS: killed by a system call filter; driver exec kills 32-bit programs");
	else if (unstopped && end->exit_signal == SIGKILL)
		(void)snprintf(buf, size,
		    "SIGKILL, which this agent did not send; the kernel counted no OOM kill");
	else if (other && !signal_is_fault(end->exit_signal))
		(void)snprintf(
		    buf, size, "SIG%s, which this agent did not send", abbrev ? abbrev : "?");
}

void
task_runner_tell_terminated(struct task_runner *tr, const struct run_end *end)
{
	struct task_event ev;
	int code = end->exit_signal ? 128 + end->exit_signal : end->exit_code;
	const char *why = end->reason, *sender = sender_of(end);
	bool oom_outside = (end->flags & EXE_END_OOM) && tr->run &&
			   run_usage_limit_unreached(tr->ar->sup, run_id(tr->run));
	char reason[200];

	tr->oom_kills += (end->flags & EXE_END_OOM) != 0;
	if (!why) {
		say_reason(tr, end, oom_outside, reason, sizeof reason);
		why = *reason ? reason : NULL;
	}
	task_event_terminated(&ev,
	    end->ended_real_ns ? (int64_t)end->ended_real_ns : clock_real_ns(), code,
	    end->exit_signal, end->flags & EXE_END_OOM, why);
	if (end->flags & (EXE_END_STOP | EXE_END_KILLED))
		task_event_detail(&ev, EVENT_DETAIL_STOP,
		    end->flags & EXE_END_KILLED ? EVENT_STOP_KILLED : EVENT_STOP_ASKED);
	if (!end->known)
		task_event_detail(&ev, EVENT_DETAIL_UNKNOWN, "true");
	if (sender)
		task_event_detail(&ev, EVENT_DETAIL_SENDER, sender);
	if (oom_outside)
		task_event_detail(&ev, EVENT_DETAIL_OOM, EVENT_OOM_OUTSIDE);
	task_runner_event(tr, &ev);
}
