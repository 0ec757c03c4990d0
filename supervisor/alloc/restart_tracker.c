/* SPDX-License-Identifier: Apache-2.0 */
/* restart_tracker.c: decides whether a task starts again. Runs in: supervisor. */
#include "supervisor/alloc/restart_tracker.h"

#include <stdio.h>
#include <string.h>

#include "common/duration.h"
#include "common/number.h"

#define JITTER 0.25

/* A task of a batch job that ended successfully is not restarted, except a sidecar, because main
 * tasks wait until it runs. */
static bool
restarts_on_success(enum job_kind type, const struct lifecycle *lifecycle)
{
	if (lifecycle && lifecycle->hook != HOOK_NONE)
		return lifecycle->hook != HOOK_POSTSTOP && lifecycle->sidecar;
	return type != JOB_BATCH && type != JOB_SYSBATCH;
}

void
restart_tracker_init(struct restart_tracker *t, const struct restart_policy *policy,
    enum job_kind type, const struct lifecycle *lifecycle, int64_t now_ns)
{
	*t = (struct restart_tracker){ .on_success = restarts_on_success(type, lifecycle),
		.started_ns = now_ns };
	restart_tracker_set_policy(t, policy);
}

void
restart_tracker_set_policy(struct restart_tracker *t, const struct restart_policy *policy)
{
	t->attempts = policy->attempts;
	t->interval_ns = policy->interval;
	t->delay_ns = policy->delay;
	t->mode = policy->mode;
}

void
restart_tracker_exited(struct restart_tracker *t, int exit_code, int signal, bool error)
{
	t->has_exit = true;
	t->exit_success = exit_code == 0 && signal == 0 && !error;
	t->failure = true;
}

void
restart_tracker_start_failed(struct restart_tracker *t, bool recoverable)
{
	t->has_start_error = true;
	t->recoverable = recoverable;
	t->failure = true;
}

void
restart_tracker_triggered(struct restart_tracker *t, bool failure)
{
	if (failure)
		t->failure = true;
	else
		t->triggered = true;
}

void
restart_tracker_killed(struct restart_tracker *t)
{
	t->killed = true;
}

static struct restart_decision
make_decision(enum restart_verdict v, int64_t delay_ns, const char *reason)
{
	struct restart_decision d = { .verdict = v, .delay_ns = delay_ns };

	(void)snprintf(d.reason, sizeof(d.reason), "%s", reason);
	return d;
}

static struct restart_decision
attempts_exceeded(const struct restart_tracker *t, int64_t now_ns)
{
	char interval[DURATION_SIZE], reason[sizeof(((struct restart_decision *)0)->reason)];

	if (t->mode == RESTART_DELAY)
		return make_decision(RESTART_AGAIN,
		    number_add(t->started_ns, t->interval_ns) - now_ns,
		    "Exceeded allowed attempts, applying a delay");
	duration_format(t->interval_ns, interval);
	(void)snprintf(reason, sizeof(reason),
	    "Exceeded allowed attempts %lld in interval %s and mode is \"fail\"",
	    (long long)t->attempts, interval);
	return make_decision(RESTART_NOT, 0, reason);
}

static struct restart_decision
decide_restart(struct restart_tracker *t, int64_t now_ns, double (*chance)(void *arg), void *arg)
{
	bool ended_well = t->has_exit && t->exit_success;

	if (t->killed)
		return make_decision(RESTART_KILLED, 0, "");
	if (t->triggered)
		return make_decision(RESTART_AGAIN, 0, "");
	if (t->attempts == 0)
		return make_decision(
		    !t->on_success && ended_well ? RESTART_TERMINATED : RESTART_NOT, 0,
		    "Policy allows no restarts");
	/* If the clock was set back, a new interval begins: the old one could last very long. */
	if (now_ns > number_add(t->started_ns, t->interval_ns) || now_ns < t->started_ns) {
		t->count = 0;
		t->started_ns = now_ns;
	}
	t->count++;
	if (!t->failure)
		return make_decision(RESTART_UNKNOWN, 0, "");
	if (t->has_start_error && !t->recoverable)
		return make_decision(RESTART_NOT, 0, "Error was unrecoverable");
	if (ended_well && !t->on_success)
		return make_decision(
		    RESTART_TERMINATED, 0, "Restart unnecessary as task terminated successfully");
	if (t->count > t->attempts)
		return attempts_exceeded(t, now_ns);
	return make_decision(RESTART_AGAIN,
	    number_add(t->delay_ns, (int64_t)((double)t->delay_ns * chance(arg) * JITTER)),
	    "Restart within policy");
}

struct restart_decision
restart_tracker_decide(
    struct restart_tracker *t, int64_t now_ns, double (*chance)(void *arg), void *arg)
{
	struct restart_decision d = decide_restart(t, now_ns, chance, arg);

	t->killed = t->triggered = t->failure = false;
	t->has_exit = t->exit_success = t->has_start_error = t->recoverable = false;
	return d;
}
