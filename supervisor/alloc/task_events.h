/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_events.h: the state of a task and its last ten events. Older events are moved to
 * task_history.h. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_EVENTS_H
#define DROVER_SUPERVISOR_ALLOC_TASK_EVENTS_H

#include "model/alloc.h"
#include "model/task_event.h"

struct alloc_runner;
struct run_end;
struct task_runner;

/* In Details of Terminated: whether the executor stopped the task or killed it after kill_timeout;
 * that the exit status is unknown; who sent the signal that ended the task, if that is known; and
 * that an OOM kill was not caused by the task's own limit. */
#define EVENT_DETAIL_STOP    "drover_stop"
#define EVENT_STOP_ASKED     "asked"
#define EVENT_STOP_KILLED    "kill_timeout passed"
#define EVENT_DETAIL_UNKNOWN "exit_status_unknown"
#define EVENT_DETAIL_SENDER  "signal_sender"
#define EVENT_SENDER_STOP    "drover, to stop it"
#define EVENT_SENDER_REQUEST "drover, on request"
#define EVENT_SENDER_OOM     "the kernel, out of memory"
#define EVENT_SENDER_OTHER   "not drover"
#define EVENT_DETAIL_OOM     "oom_scope"
#define EVENT_OOM_OUTSIDE    "outside of its cgroup"

/* In Details of Signaling. */
#define EVENT_DETAIL_BY "requested_by"

/* Returns true for signals that the kernel or abort(3) sends because of a fault of the program. */
bool signal_is_fault(int signo);

struct task_state *task_runner_state(struct task_runner *tr);
/* Sets its state and times; the caller calls alloc_status_update(). */
void task_runner_set_state(struct task_runner *tr, enum task_run_state state);
void task_runner_set_failed(struct task_runner *tr);

/* Appends an event, whose contents move from *ev, and updates the alloc's status. */
void task_runner_event(struct task_runner *tr, struct task_event *ev);
/* Appends an event with this sentence (NULL: the default of its type). */
void task_runner_tell(
    struct task_runner *tr, enum task_event_type type, const char *text, bool fails);
/* Appends an event of this type that tells how much of what is shown has been fetched; total 0: it
 * is not known. */
void task_runner_tell_progress(struct task_runner *tr, enum task_event_type type, const char *shown,
    uint64_t bytes, uint64_t total);
/* Until the first such event; then twice as long each time. */
#define EVENT_PROGRESS_USEC 10000000
/* As task_runner_tell() for all tasks of the alloc. */
void alloc_tell_tasks(struct alloc_runner *ar, enum task_event_type type, const char *text);
/* Append the events that the lease ended the run, and how the run ended. */
void task_runner_tell_lease(struct task_runner *tr, const struct run_end *end);
void task_runner_tell_terminated(struct task_runner *tr, const struct run_end *end);

/* Returns the last event; NULL: there is none. */
const struct task_event *task_runner_last_event(struct task_runner *tr);
/* Returns true if ev is of this type; ev may be NULL. */
bool task_event_is(const struct task_event *ev, enum task_event_type type);
/* Returns true if one of the last events is of this type. */
bool task_runner_has_event(struct task_runner *tr, enum task_event_type type);

#endif
