/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_phase.h: the phases of a task, what moves it from one to the next, and whether a task whose
 * run is over starts again. Pure. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_PHASE_H
#define DROVER_SUPERVISOR_ALLOC_TASK_PHASE_H

#include "supervisor/alloc/restart_tracker.h"

enum task_phase {
	TASK_WAITING,   /* its gate is shut: the alloc's hooks or tasks of earlier stages run */
	TASK_PREPARING, /* its own hook runs */
	TASK_STARTING,  /* its run is being started */
	TASK_RUNNING,
	TASK_DELAYING, /* it is to end, and runs on for a shutdown_delay */
	TASK_STOPPING, /* its run was told to end */
	TASK_DECIDING, /* its run is over; lasts only until the decision, in the same call */
	TASK_BACKOFF,  /* waits for the delay before its restart */
	TASK_DEAD,
	TASK_PHASES
};

enum task_ev {
	TASK_EV_FOUND_DEAD, /* the last supervisor left it dead */
	TASK_EV_FOUND_RUN,  /* the last supervisor left a run of it */
	TASK_EV_GATE_OPEN,
	TASK_EV_PREPARED,
	TASK_EV_GATE_SHUT, /* prepared, but its gate was shut meanwhile: all tasks begin anew */
	TASK_EV_PREPARE_FAILED,
	TASK_EV_STARTED,
	TASK_EV_FAILED,    /* the start failed; the restart tracker knows why */
	TASK_EV_LOST,      /* the agent itself lost the start: repeated, the policy is not asked */
	TASK_EV_ENDED,     /* the run is over; the restart tracker knows how */
	TASK_EV_LEASE_END, /* the run's executor ended it because its lease had passed */
	TASK_EV_RESTART,   /* an order: end the run, then start again */
	TASK_EV_ANEW,      /* an order: start again although dead */
	TASK_EV_KILL,      /* it ends for good */
	TASK_EV_TIMER,
	TASK_EV_AGAIN, /* decided: it starts again */
	TASK_EV_OVER,  /* decided: it does not */
	TASK_EVS
};

extern const char *const task_phase_names[TASK_PHASES], *const task_ev_names[TASK_EVS];

/* The phase that follows; the same phase where the event changes nothing. -EINVAL: the table has
 * no such transition. */
int task_phase_next(enum task_phase phase, enum task_ev event);

/* What a decision depends on. */
struct task_end_facts {
	bool killed;                  /* the task is to end for good */
	enum restart_verdict verdict; /* of its restart policy */
	bool barred;                  /* a hook forbids another start */
	bool alloc_ends;              /* the tasks of its stage are being ended */
};

enum task_outcome {
	TASK_STARTS_AGAIN,
	TASK_ENDS,
	TASK_ENDS_KILLED,
	TASK_ENDS_BY_POLICY, /* failed: no more restarts */
	TASK_ENDS_BARRED,    /* failed: a hook forbids another start */
};

enum task_outcome task_outcome(const struct task_end_facts *f);

#endif
