/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restart_tracker.h: decides by the restart policy whether and when a task starts again. Pure: time
 * and randomness are passed in. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_RESTART_TRACKER_H
#define DROVER_SUPERVISOR_ALLOC_RESTART_TRACKER_H

#include "model/job.h"

enum restart_verdict {
	RESTART_UNKNOWN,    /* nothing happened */
	RESTART_TERMINATED, /* it ended successfully and is done */
	RESTART_AGAIN,      /* it restarts after delay_ns: event Restarting */
	RESTART_NOT,        /* it has failed: event Not Restarting */
	RESTART_KILLED
};

struct restart_tracker {
	/* Set by restart_tracker_init() and _set_policy(). */
	int64_t attempts, interval_ns, delay_ns;
	enum restart_mode mode;
	bool on_success;
	/* Kept over a restart of the agent. */
	int64_t count;
	int64_t started_ns; /* the start of the interval, by CLOCK_REALTIME */
	/* What happened since the last verdict. */
	bool killed, triggered, failure, has_exit, exit_success, has_start_error, recoverable;
};

struct restart_decision {
	enum restart_verdict verdict;
	int64_t delay_ns;
	char reason[160]; /* in Nomad's words */
};

/* lifecycle: NULL for a main task. policy must be complete. */
void restart_tracker_init(struct restart_tracker *t, const struct restart_policy *policy,
    enum job_kind type, const struct lifecycle *lifecycle, int64_t now_ns);
void restart_tracker_set_policy(struct restart_tracker *t, const struct restart_policy *policy);

void restart_tracker_exited(struct restart_tracker *t, int exit_code, int signal, bool error);
void restart_tracker_start_failed(struct restart_tracker *t, bool recoverable);
void restart_tracker_triggered(struct restart_tracker *t, bool failure);
void restart_tracker_killed(struct restart_tracker *t);

/* chance(arg) returns a number in [0, 1). Clears what happened. */
struct restart_decision restart_tracker_decide(
    struct restart_tracker *t, int64_t now_ns, double (*chance)(void *arg), void *arg);

#endif
