/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_events.h: the state of a task with its last ten events; older ones go to task_history.h.
 * Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_EVENTS_H
#define DROVER_SUPERVISOR_ALLOC_TASK_EVENTS_H

#include "model/alloc.h"
#include "model/task_event.h"

struct run_end;
struct task_runner;

/* In Details of Terminated: whether its executor was told to end it, or had to kill it after
 * kill_timeout; that its exit status is unknown; the sender of the signal that ended it, as far as
 * that can be known, because the status of a process does not name it; and that the kernel ran out
 * of memory outside of the task's own limit. */
#define EVENT_DETAIL_STOP    "drover_stop"
#define EVENT_STOP_ASKED     "asked"
#define EVENT_STOP_KILLED    "kill_timeout passed"
#define EVENT_DETAIL_UNKNOWN "exit_status_unknown"
#define EVENT_DETAIL_SENDER  "signal_sender"
#define EVENT_SENDER_STOP    "drover, to stop it"
#define EVENT_SENDER_REQUEST "drover, on request"
#define EVENT_SENDER_OOM     "the kernel, for want of memory"
#define EVENT_SENDER_OTHER   "not drover"
#define EVENT_DETAIL_OOM     "oom_scope"
#define EVENT_OOM_OUTSIDE    "outside of its cgroup"

/* In Details of Signaling. */
#define EVENT_DETAIL_BY "requested_by"

/* A signal that ends a program for a fault of its own, from the kernel or from abort(3). */
bool signal_is_fault(int signo);

struct task_state *task_runner_state(struct task_runner *tr);
/* Sets its state and times; the caller tells the alloc runner. */
void task_runner_set_state(struct task_runner *tr, enum task_run_state state);
void task_runner_set_failed(struct task_runner *tr);

/* Appends an event and tells the alloc runner. Takes ev's contents. */
void task_runner_event(struct task_runner *tr, struct task_event *ev);
/* Appends an event with this sentence (NULL: the default of its type). */
void task_runner_tell(
    struct task_runner *tr, enum task_event_type type, const char *text, bool fails);
/* Appends the event that its lease ended its run; how its run ended. */
void task_runner_tell_lease(struct task_runner *tr, const struct run_end *end);
void task_runner_tell_terminated(struct task_runner *tr, const struct run_end *end);

/* NULL: there is none. */
const struct task_event *task_runner_last_event(struct task_runner *tr);
/* ev may be NULL. */
bool task_event_is(const struct task_event *ev, enum task_event_type type);
/* One of its last events is of this type. */
bool task_runner_has_event(struct task_runner *tr, enum task_event_type type);

#endif
