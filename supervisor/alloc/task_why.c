// SPDX-License-Identifier: Apache-2.0
/* task_why.c: explains by its events why a task ended, was restarted, or was not. Runs in:
 * supervisor. */
#include "supervisor/alloc/task_why.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/duration.h"
#include "supervisor/alloc/task_events.h"

struct telling {
	const struct sup_alloc *sa;
	const struct task *task;
	const struct task_state *past;
	size_t at; /* the index of the event that is being explained */
	struct causes *c;
};

/* Events of the run before its end; NULL: there was none. */
struct before {
	const struct task_event *stop;   /* it was told to stop */
	const struct task_event *signal; /* the signal that ended it was requested */
};

static const char *
get_detail(const struct task_event *ev, const char *name)
{
	return str(string_map_get(&ev->details, name));
}

static struct before
find_before(const struct telling *t, const char *signal)
{
	struct before b = { 0 };

	for (size_t i = t->at; i-- > 0;) {
		const struct task_event *ev = &t->past->events.v[i];

		if (task_event_is(ev, EVENT_STARTED))
			break;
		if (!b.stop &&
		    (task_event_is(ev, EVENT_KILLING) || task_event_is(ev, EVENT_RESTART_SIGNALED)))
			b.stop = ev;
		if (!b.signal && task_event_is(ev, EVENT_SIGNALING) &&
		    str_eq(get_detail(ev, "task_signal"), signal))
			b.signal = ev;
	}
	return b;
}

static void
name_signal(int64_t signo, char ret[16])
{
	const char *abbrev = signo > 0 && signo < NSIG ? sigabbrev_np((int)signo) : NULL;

	if (abbrev)
		(void)snprintf(ret, 16, "SIG%s", abbrev);
	else
		(void)snprintf(ret, 16, "signal %d", (int)signo);
}

/* --- ends --- */

static void
tell_oom(struct telling *t, const struct task_event *ev, const char *how)
{
	const struct alloc_memory m = alloc_task_memory(&t->sa->a, t->task);
	long long limit = m.memory_max_mb > 0 ? m.memory_max_mb : m.memory_mb;
	char own[64] = "it has no limit of its own";

	if (m.memory_max_mb != MEMORY_NO_LIMIT)
		(void)snprintf(own, sizeof own, "its own limit of %lld MiB was not reached", limit);
	if (*get_detail(ev, EVENT_DETAIL_OOM) || m.memory_max_mb == MEMORY_NO_LIMIT) {
		causes_add(t->c, ev->time, t->task->name,
		    "The kernel OOM-killed a process in it, because the machine or a parent cgroup "
		    "was out of memory: %s. It ended %s.",
		    own, how);
		return;
	}
	causes_add(t->c, ev->time, t->task->name,
	    "The kernel OOM-killed a process in it (limit %lld MiB). It ended %s.", limit, how);
}

/* The signal was sent on request. An executor of an earlier version does not report what it sent.
 */
static bool
was_requested(const struct task_event *ev, const struct before *b)
{
	const char *sender = get_detail(ev, EVENT_DETAIL_SENDER);

	return b->signal && (!*sender || str_eq(sender, EVENT_SENDER_REQUEST));
}

static void
tell_request(
    struct telling *t, const struct task_event *ev, const struct before *b, const char *signal)
{
	const char *by = get_detail(b->signal, EVENT_DETAIL_BY);
	int64_t before = ev->time > b->signal->time ? ev->time - b->signal->time : 0;
	char ago[DURATION_SIZE];

	duration_format(before / NS_PER_MS * NS_PER_MS, ago);
	causes_add(t->c, ev->time, t->task->name,
	    "It ended by %s, which was sent on request%s%s %s before.", signal, *by ? " of " : "",
	    by, ago);
}

/* A signal ended it, and this agent did not stop it. */
static void
tell_signal(
    struct telling *t, const struct task_event *ev, const struct before *b, const char *signal)
{
	if (was_requested(ev, b))
		tell_request(t, ev, b, signal);
	else if (signal_is_fault((int)ev->signal) && !*str(ev->message))
		causes_add(t->c, ev->time, t->task->name,
		    "It ended by %s, which drover did not send: probably a fault of the program.",
		    signal);
	else if (*str(ev->message) && signal_is_fault((int)ev->signal))
		causes_add(t->c, ev->time, t->task->name, "It ended by %s.", ev->message);
	else
		causes_add(t->c, ev->time, t->task->name,
		    "It ended by %s. drover did not send that signal, and the kernel counted no "
		    "OOM kill in its cgroup: the sender is not known.",
		    signal);
}

static void
tell_end(struct telling *t, const struct task_event *ev)
{
	const char *stopped = get_detail(ev, EVENT_DETAIL_STOP), *name = t->task->name;
	bool other = str_eq(get_detail(ev, EVENT_DETAIL_SENDER), EVENT_SENDER_OTHER) &&
		     !signal_is_fault((int)ev->signal);
	char signal[16], how[64];
	struct before b;

	name_signal(ev->signal, signal);
	b = find_before(t, signal);
	if (ev->signal)
		(void)snprintf(how, sizeof how, "by %s%s", signal,
		    other ? " (which drover did not send)" : "");
	else
		(void)snprintf(how, sizeof how, "with exit code %lld", (long long)ev->exit_code);
	if (*get_detail(ev, EVENT_DETAIL_UNKNOWN))
		causes_add(t->c, ev->time, name, "It ended, but it is not known how: %s.",
		    *str(ev->message) ? ev->message : "nobody saw its exit status");
	else if (str_eq(get_detail(ev, "oom_killed"), "true"))
		tell_oom(t, ev, how);
	else if (str_eq(stopped, EVENT_STOP_KILLED))
		causes_add(t->c, ev->time, name,
		    "It was killed, because it did not end within its kill_timeout.");
	else if (b.stop)
		causes_add(t->c, ev->time, name, "It ended %s after it was told to stop.", how);
	else if (*stopped)
		causes_add(t->c, ev->time, name,
		    "It ended %s after its executor was told to stop it; the reason is not known.",
		    how);
	else if (ev->signal)
		tell_signal(t, ev, &b, signal);
	else
		causes_add(t->c, ev->time, name, "It ended by itself, %s%s%s.", how,
		    *str(ev->message) ? ": " : "", str(ev->message));
}

/* --- other events --- */

/* A stop without a reason follows from the event before it, or from the stop of the alloc. */
static void
tell_stop(struct telling *t, const struct task_event *ev)
{
	static const enum task_event_type reasons[] = { EVENT_LEADER_DEAD, EVENT_SIBLING_FAILED,
		EVENT_MAIN_DEAD, EVENT_DISK_EXCEEDED, EVENT_ALLOC_UNHEALTHY,
		EVENT_WAITING_SHUTDOWN_DELAY, EVENT_SKIPPING_SHUTDOWN_DELAY };
	const struct task_event *last = t->at > 0 ? &t->past->events.v[t->at - 1] : NULL;
	bool explained =
	    *str(t->sa->a.desired_description) != '\0' && t->sa->a.desired_status != DESIRED_RUN;

	for (size_t i = 0; i < ELEMENTSOF(reasons); i++)
		explained |= task_event_is(last, reasons[i]);
	if (*str(ev->kill_reason))
		causes_add(
		    t->c, ev->time, t->task->name, "It was told to stop: %s.", ev->kill_reason);
	else if (!explained)
		causes_add(
		    t->c, ev->time, t->task->name, "It was told to stop; the reason is not known.");
}

static void
tell_restart(struct telling *t, const struct task_event *ev)
{
	const char *reason = str(ev->restart_reason);
	char delay[DURATION_SIZE];

	duration_format(ev->start_delay, delay);
	if (str_eq(reason, "Restart within policy"))
		reason = "its restart policy allows it";
	causes_add(t->c, ev->time, t->task->name, "A restart in %s was scheduled%s%s.", delay,
	    *reason ? ": " : "", reason);
}

/* Event types whose own text is the explanation, after these words. */
static const struct {
	enum task_event_type type;
	const char *words;
} plain[] = {
	{ EVENT_SETUP_FAILURE, "It could not be set up: " },
	{ EVENT_DRIVER_FAILURE, "It could not be started: " },
	{ EVENT_FAILED_VALIDATION, "It could not be started: " },
	{ EVENT_NOT_RESTARTING, "It is not restarted: " },
	{ EVENT_RESTART_SIGNALED, "A restart was requested: " },
	{ EVENT_ARTIFACT_FAILED, "It could not be set up: " },
	{ EVENT_HOOK_FAILED, "It could not be set up: " },
	{ EVENT_DISK_EXCEEDED, "The disk of its allocation: " },
	{ EVENT_SIBLING_FAILED, "Another task of its allocation failed: " },
	{ EVENT_LEADER_DEAD, "The leader task of its allocation ended: " },
	{ EVENT_MAIN_DEAD, "The main tasks of its allocation ended: " },
	{ EVENT_RESTORE_FAILED, "It could not be recovered after a restart of the agent: " },
	{ EVENT_PLUGIN_WAITS, "As a plugin it does not answer yet: " },
	{ EVENT_PLUGIN_UNHEALTHY, "As a plugin it is not healthy: " },
	{ EVENT_ALLOC_UNHEALTHY, "Its allocation is not healthy: " },
	{ EVENT_RECONNECTED, "The servers had lost contact with its node: " },
	{ EVENT_SIGNALING, "" },
	{ EVENT_TEMPLATE, "" },
};

static void
explain_event(struct telling *t)
{
	const struct task_event *ev = &t->past->events.v[t->at];

	if (task_event_is(ev, EVENT_TERMINATED))
		tell_end(t, ev);
	else if (task_event_is(ev, EVENT_KILLING))
		tell_stop(t, ev);
	else if (task_event_is(ev, EVENT_RESTARTING))
		tell_restart(t, ev);
	for (size_t i = 0; i < ELEMENTSOF(plain); i++)
		if (task_event_is(ev, plain[i].type))
			causes_add(t->c, ev->time, t->task->name, "%s%s", plain[i].words,
			    str(ev->display_message));
}

void
task_why(const struct sup_alloc *sa, const struct task *task, const struct task_state *past,
    struct causes *c)
{
	struct telling t = { .sa = sa, .task = task, .past = past, .c = c };

	for (t.at = past->events.n; t.at-- > 0;)
		explain_event(&t);
}
