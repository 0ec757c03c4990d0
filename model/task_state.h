/* SPDX-License-Identifier: Apache-2.0 */
/* task_state.h: the state and the events of an alloc's task. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_TASK_STATE_H
#define DROVER_MODEL_TASK_STATE_H

#include "model/engine/field.h"

struct task_event {
	char *type;   /* task_event_name(), or any text from a newer peer */
	int64_t time; /* ns */
	char *message, *display_message;
	struct string_map details; /* never nil in JSON */
	/* Fields of older APIs that repeat details; the functions of task_event.h set both. */
	bool fails_task;
	char *restart_reason, *setup_error, *driver_error;
	int64_t exit_code, signal;
	int64_t kill_timeout; /* duration */
	char *kill_error, *kill_reason;
	int64_t start_delay; /* ns */
	char *download_error, *validation_error;
	int64_t disk_limit;
	char *failed_sibling, *vault_error, *task_signal_reason, *task_signal, *driver_message,
	    *generic_source;
};

enum task_run_state { TASK_STATE_NONE, TASK_STATE_PENDING, TASK_STATE_RUNNING, TASK_STATE_DEAD };

#define TASK_EVENTS_MAX 10

struct task_state {
	enum task_run_state state;
	bool failed;
	uint64_t restarts;
	int64_t last_restart, started_at, finished_at; /* times */
	MODEL_LIST(struct task_event) events;          /* oldest first, at most TASK_EVENTS_MAX */
	char *paused;                                  /* stored only: this agent pauses no tasks */
	/* In the network that the task has alone; servers do not have them. */
	char *address, *address_ipv6;
};

MODEL_DECLARE(task_event);
MODEL_DECLARE(task_state);

extern const char *const task_run_state_names[TASK_STATE_DEAD + 1];

/* Appends the event, whose contents move from *ev, and removes the oldest beyond TASK_EVENTS_MAX.
 */
void task_state_add_event(struct task_state *s, struct task_event *ev);

#endif
