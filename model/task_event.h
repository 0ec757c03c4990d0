/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_event.h: makes the events of a task, with Nomad's type names and texts. Runs in: supervisor;
 * it is here because the texts are part of Nomad's model, as the field tables are.
 *
 * Each function initialises *ev and fills type, time, details, the legacy fields and the display
 * message. Text arguments may be NULL.
 */
#ifndef DROVER_MODEL_TASK_EVENT_H
#define DROVER_MODEL_TASK_EVENT_H

#include "model/alloc.h"

enum task_event_type {
	EVENT_RECEIVED,
	EVENT_TASK_SETUP,
	EVENT_SETUP_FAILURE,
	EVENT_DRIVER_FAILURE,
	EVENT_FAILED_VALIDATION,
	EVENT_STARTED,
	EVENT_TERMINATED,
	EVENT_KILLING,
	EVENT_KILLED,
	EVENT_RESTARTING,
	EVENT_NOT_RESTARTING,
	EVENT_RESTART_SIGNALED,
	EVENT_SIGNALING,
	EVENT_DOWNLOADING_ARTIFACTS,
	EVENT_ARTIFACT_FAILED,
	EVENT_DISK_EXCEEDED,
	EVENT_SIBLING_FAILED,
	EVENT_DRIVER_MESSAGE,
	EVENT_LEADER_DEAD,
	EVENT_MAIN_DEAD,
	EVENT_HOOK_FAILED,
	EVENT_HOOK_MESSAGE,
	EVENT_RESTORE_FAILED,
	EVENT_PLUGIN_WAITS,
	EVENT_PLUGIN_UNHEALTHY,
	EVENT_PLUGIN_HEALTHY,
	EVENT_RECONNECTED,
	EVENT_WAITING_SHUTDOWN_DELAY,
	EVENT_SKIPPING_SHUTDOWN_DELAY,
	EVENT_ALLOC_UNHEALTHY,
	EVENT_TEMPLATE,
	EVENT_TYPES
};

const char *task_event_name(enum task_event_type type);

/* For all types that have only a text (Task Setup, hooks, plugin health; failures, whose text is
 * the error). */
void task_event_make(
    struct task_event *ev, enum task_event_type type, int64_t now_ns, const char *text);
/* Terminated. message: the reason, if there is one. */
void task_event_terminated(struct task_event *ev, int64_t now_ns, int exit_code, int signal,
    bool oom_killed, const char *message);
/* Killing, with the reason if there is one, else with the timeout (ns; 0 if there is none). */
void task_event_killing(
    struct task_event *ev, int64_t now_ns, const char *reason, int64_t kill_timeout_ns);
void task_event_restarting(
    struct task_event *ev, int64_t now_ns, const char *reason, int64_t delay_ns);
void task_event_signaling(
    struct task_event *ev, int64_t now_ns, const char *signal, const char *reason);
/* Waiting for shutdown delay or, if skipped, Skipping shutdown delay. */
void task_event_shutdown_delay(
    struct task_event *ev, int64_t now_ns, int64_t delay_ns, bool skipped);
void task_event_disk_exceeded(
    struct task_event *ev, int64_t now_ns, const char *text, int64_t limit_bytes);
/* Marks the event as the one that fails the task, in its flag and its details. */
void task_event_set_fails(struct task_event *ev);
void task_event_detail(struct task_event *ev, const char *key, const char *value);

#endif
