/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_state.h: what this node knows of an alloc that it runs, and of its tasks: the structs that
 * the files of this directory share. The functions only mark work for alloc_runner.c, which does it
 * after the callback that led here. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_STATE_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_STATE_H

#include "model/alloc.h"
#include "supervisor/alloc/alloc_phase.h"
#include "supervisor/alloc/coordinator.h"
#include "supervisor/alloc/restart_tracker.h"
#include "supervisor/alloc/task_phase.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/table/alloc_table.h"

struct alloc_hooks;
struct alloc_runner;
struct plugin_task;
struct run;
struct run_usage;
struct sd_event_source;

struct task_runner {
	struct alloc_runner *ar;
	const struct task *task; /* of the job's present version */
	enum task_stage stage;
	enum task_phase phase; /* task_runner.c writes it */
	struct restart_tracker tracker;
	struct run *run; /* being started or alive; NULL: none */
	struct sd_event_source *timer;
	int64_t delay_ns;     /* of DELAYING or BACKOFF */
	unsigned lost_starts; /* starts in a row that the agent itself lost */
	bool gate_open;
	bool killed;                /* it is to end for good */
	struct plugin_task *plugin; /* volume/plugin_task.c; NULL: not a CSI plugin */
	struct run_usage *usage;    /* driver/run_usage.h; NULL: not measured yet */
};

/* Which tasks are told to end; each step waits for the end of the one before. */
enum kill_step {
	KILL_NOT,
	KILL_DELAY, /* the group's shutdown_delay */
	KILL_LEADER,
	KILL_OTHERS,
	KILL_SIDECARS,
	KILL_OVER, /* poststop tasks end by themselves */
};

/* alloc_kill.c writes it. */
struct alloc_kill {
	enum kill_step step;
	struct sd_event_source *timer; /* the group's shutdown_delay */
	int64_t after_ns; /* when that is over, by CLOCK_REALTIME; 0: it has not begun */
};

struct alloc_runner {
	struct sup *sup;
	struct sup_alloc *sa;
	enum alloc_phase phase; /* alloc_runner.c writes it */
	enum coordinator_state coordinator;
	struct alloc_kill kill;
	struct alloc_hooks *hooks;
	struct deferred step;    /* alloc_step_soon() */
	struct deferred save;    /* alloc_save_soon() */
	bool restored;           /* it ran when the last supervisor ended */
	bool stopping;           /* it is to end */
	bool destroy;            /* and to be removed from the node */
	bool starts_nothing;     /* not even a poststop task */
	bool ends_at_once;       /* its tasks end without a shutdown_delay */
	const char *stop_reason; /* in its description and in event Killing; NULL: the default */
	bool news;               /* the source has not been told of the latest change */
	unsigned n_tasks;
	struct task_runner tasks[]; /* in the group's order */
};

/* Looks for the next thing to do, after this turn's commit. */
void alloc_step_soon(struct alloc_runner *ar);
/* Keeps what a restarted supervisor needs (alloc_record.h): once in this turn's commit. */
void alloc_save_soon(struct alloc_runner *ar);
/* Ends the alloc's tasks. */
void alloc_stop_soon(struct alloc_runner *ar);
/* Tells the source once more of an alloc that has ended, and makes no news by itself. */
void alloc_report_end(struct alloc_runner *ar);

/* No shutdown_delay is waited for: an operator or a hook asked for that. */
bool alloc_skips_delay(const struct alloc_runner *ar);
/* The group's shutdown_delay; 0: none, or it is left out. */
int64_t alloc_shutdown_delay_ns(const struct alloc_runner *ar);
/* A task of the alloc has run at some time. */
bool alloc_has_started(const struct alloc *a);
/* NULL: the alloc has no runner, or no such task. */
struct task_runner *alloc_find_task(const struct sup_alloc *sa, const char *name);

#endif
