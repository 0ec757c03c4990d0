/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_phase.h: the phases of a task, the events that change the phase, and the decision whether a
 * task whose run has ended starts again. Pure. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_PHASE_H
#define DROVER_SUPERVISOR_ALLOC_TASK_PHASE_H

#include "supervisor/alloc/restart_tracker.h"

enum task_phase {
	TASK_WAITING,   /* its gate is closed: hooks or tasks of earlier stages run first */
	TASK_PREPARING, /* its artifacts are being fetched, the directories of a CSI plugin made */
	TASK_STARTING,  /* its run is being started */
	TASK_RUNNING,
	TASK_DELAYING, /* it is stopping, and keeps running during a shutdown_delay */
	TASK_STOPPING, /* its run was told to stop */
	TASK_DECIDING, /* its run has ended; left within the same call, after the decision */
	TASK_BACKOFF,  /* waits for the delay before its restart */
	TASK_DEAD,
	TASK_PHASES
};

enum task_ev {
	TASK_EV_FOUND_DEAD, /* the last supervisor left it dead */
	TASK_EV_FOUND_RUN,  /* the last supervisor left a run of it */
	TASK_EV_GATE_OPEN,
	TASK_EV_PREPARED,
	TASK_EV_GATE_SHUT, /* prepared, but its gate was closed: all tasks are being restarted */
	TASK_EV_PREPARE_FAILED,
	TASK_EV_STARTED,
	TASK_EV_FAILED,    /* the start failed, as recorded in the restart tracker */
	TASK_EV_LOST,      /* a helper died during the start: repeated without the restart policy */
	TASK_EV_ENDED,     /* the run ended, as recorded in the restart tracker */
	TASK_EV_LEASE_END, /* the executor stopped the run because its lease had passed */
	TASK_EV_RESTART,   /* a request: stop the run, then start again */
	TASK_EV_ANEW,      /* a request: start again although dead */
	TASK_EV_KILL,      /* it is to end and not to start again */
	TASK_EV_TIMER,
	TASK_EV_AGAIN, /* the decision: it starts again */
	TASK_EV_OVER,  /* the decision: it does not */
	TASK_EVS
};

extern const char *const task_phase_names[TASK_PHASES], *const task_ev_names[TASK_EVS];

/* Returns the phase after the event, which may be the same phase. -EINVAL: the event is not
 * possible in this phase. */
int task_phase_next(enum task_phase phase, enum task_ev event);

/* The facts on which the decision depends. */
struct task_end_facts {
	bool killed;                  /* the task is to end and not to start again */
	enum restart_verdict verdict; /* of its restart policy */
	bool barred;                  /* a hook forbids another start */
	bool alloc_ends;              /* the tasks of its stage are being stopped */
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
