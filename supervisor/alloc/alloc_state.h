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
#include "supervisor/core/sup_timer.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/driver/driver_breaker.h"
#include "supervisor/table/alloc_table.h"

struct alloc_hooks;
struct alloc_runner;
struct plugin_task;
struct run;
struct run_usage;
struct task_config;
struct sd_event_source;

struct task_runner {
	struct alloc_runner *ar;
	const struct task *task; /* of the job's present version */
	enum task_stage stage;
	enum task_phase phase; /* task_runner.c writes it */
	struct restart_tracker tracker;
	struct run *run; /* NULL: the task has no process, and none is being started */
	struct sup_timer timer;
	int64_t delay_ns;     /* of phase DELAYING or BACKOFF */
	unsigned oom_kills;   /* since the runner was made */
	unsigned lost_starts; /* starts in a row that failed because a helper died */
	bool gate_open;
	bool killed;                  /* it is to end and not to start again */
	struct plugin_task *plugin;   /* volume/plugin_task.c; NULL: not a CSI plugin */
	struct task_config *config;   /* alloc/task_config.h; NULL: job-parser was not asked */
	struct task_image *image;     /* alloc/task_image.h; NULL: not a container, or not known */
	struct run_usage *usage;      /* driver/run_usage.h; NULL: not measured yet */
	struct driver_wait admission; /* the driver does not work, so its start waits */
};

/* The tasks that each step stops; a step begins when the tasks of the step before have ended. */
enum kill_step {
	KILL_NOT,
	KILL_DELAY,   /* the group's shutdown_delay */
	KILL_VOLUMES, /* a CSI plugin unmounts volumes of allocs that end */
	KILL_LEADER,
	KILL_OTHERS,
	KILL_SIDECARS,
	KILL_OVER, /* poststop tasks are not stopped */
};

/* alloc_kill.c writes it. */
struct alloc_kill {
	enum kill_step step;
	struct sup_timer timer;  /* of KILL_DELAY and KILL_VOLUMES */
	int64_t after_ns;        /* the end of that delay, by CLOCK_REALTIME; 0: it has not begun */
	uint64_t begun_ms;       /* of KILL_VOLUMES */
	uint64_t waits_since_ms; /* volumes of ended allocs are waited for; 0: they are not */
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
	bool destroy;            /* it is to be removed from the node */
	bool starts_nothing;     /* no task may start, not even a poststop task */
	bool ends_at_once;       /* its tasks end without a shutdown_delay */
	const char *stop_reason; /* for its description and event Killing; NULL: the default */
	bool news;               /* the source is to be notified of a change */
	uint64_t made_ns;        /* CLOCK_BOOTTIME; 0: it was restored */
	unsigned n_tasks;
	struct task_runner tasks[]; /* in the group's order */
};

/* Has alloc_runner.c notify the source and do the next step, after this turn's commit. */
void alloc_step_soon(struct alloc_runner *ar);
/* Has the record of the alloc (alloc_record.h) written in this turn's commit. */
void alloc_save_soon(struct alloc_runner *ar);
/* Has the alloc's tasks stopped. */
void alloc_stop_soon(struct alloc_runner *ar);
/* If the alloc has ended, and so will not change again, has the source notified once more. */
void alloc_report_end(struct alloc_runner *ar);

/* Returns the owner of the alloc's requests for queue_ask_for(): its job. */
uint64_t alloc_job_hash(const struct alloc_runner *ar);
/* Every shutdown_delay is skipped, because an operator or a hook wants that. */
bool alloc_skips_delay(const struct alloc_runner *ar);
/* Returns the group's shutdown_delay; 0: there is none, or it is skipped. */
int64_t alloc_shutdown_delay_ns(const struct alloc_runner *ar);
/* A task of the alloc has run at some time. */
bool alloc_has_started(const struct alloc *a);
/* Returns whether a task of the alloc has a run: it is starting, runs, or ended and is not reaped.
 */
bool alloc_has_run(const struct alloc_runner *ar);
/* Returns the runner of this task; NULL: the alloc has no runner, or no such task. */
struct task_runner *alloc_find_task(const struct sup_alloc *sa, const char *name);

#endif
