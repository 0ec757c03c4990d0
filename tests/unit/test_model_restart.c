/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_restart.c: the restart tracker, verdict by verdict. Runs in: unit tests. */
#include "common/duration.h"
#include "supervisor/alloc/restart_tracker.h"
#include "tests/unit/unit.h"

#define START (1000 * NS_PER_S)

static double
half(void *arg)
{
	return 0.5;
}

static const struct restart_policy service = {
	.attempts = 2, .interval = 1800 * NS_PER_S, .delay = 16 * NS_PER_S, .mode = RESTART_FAIL
};
static const struct restart_policy delaying = {
	.attempts = 1, .interval = 60 * NS_PER_S, .delay = 4 * NS_PER_S, .mode = RESTART_DELAY
};
static const struct restart_policy never = { .interval = 60 * NS_PER_S, .mode = RESTART_FAIL };
/* The longest duration, which a time cannot be advanced by. */
static const struct restart_policy ever = {
	.attempts = 1, .interval = INT64_MAX, .delay = INT64_MAX, .mode = RESTART_FAIL
};
static const struct restart_policy ever_delaying = {
	.attempts = 1, .interval = INT64_MAX, .mode = RESTART_DELAY
};
static const struct lifecycle sidecar = { .hook = HOOK_PRESTART, .sidecar = true };
static const struct lifecycle prestart = { .hook = HOOK_PRESTART };
static const struct lifecycle poststop = { .hook = HOOK_POSTSTOP };
static const struct lifecycle poststart = { .hook = HOOK_POSTSTART };
static const struct lifecycle late_sidecar = { .hook = HOOK_POSTSTART, .sidecar = true };
/* A poststop sidecar: no task runs beside the last ones. */
static const struct lifecycle last_sidecar = { .hook = HOOK_POSTSTOP, .sidecar = true };

/* Events of a task: a letter each. */
enum happening {
	END,
	OK,
	FAIL,
	SIGNALED,
	ERROR,
	START_FAILED,
	START_WRONG,
	TRIGGERED,
	TRIGGERED_FAILURE,
	KILLED,
	RESTARTED,           /* a restart was requested, and then it ended */
	RESTARTED_BY_POLICY, /* the same, successfully */
	RESTARTED_AND_KILLED,
	NOTHING
};

static void
happen(struct restart_tracker *t, enum happening h)
{
	switch (h) {
	case OK:
		return restart_tracker_exited(t, 0, 0, false);
	case FAIL:
		return restart_tracker_exited(t, 3, 0, false);
	case SIGNALED:
		return restart_tracker_exited(t, 0, 9, false);
	case ERROR:
		return restart_tracker_exited(t, 0, 0, true);
	case START_FAILED:
		return restart_tracker_start_failed(t, true);
	case START_WRONG:
		return restart_tracker_start_failed(t, false);
	case TRIGGERED:
		return restart_tracker_triggered(t, false);
	case TRIGGERED_FAILURE:
		return restart_tracker_triggered(t, true);
	case KILLED:
		restart_tracker_exited(t, 0, 15, false);
		return restart_tracker_killed(t);
	case RESTARTED:
		restart_tracker_triggered(t, false);
		return restart_tracker_exited(t, 0, 2, false);
	case RESTARTED_BY_POLICY:
		restart_tracker_triggered(t, true);
		return restart_tracker_exited(t, 0, 0, false);
	case RESTARTED_AND_KILLED:
		restart_tracker_triggered(t, false);
		restart_tracker_exited(t, 0, 2, false);
		return restart_tracker_killed(t);
	default:
		return;
	}
}

#define WITHIN "Restart within policy"

/* The last of up to four events, each `apart` seconds after the one before, gets this decision. */
static const struct {
	const struct restart_policy *policy;
	enum job_kind type;
	const struct lifecycle *lifecycle;
	enum happening happenings[4];
	int apart_s;
	enum restart_verdict verdict;
	int64_t delay_ns;
	const char *reason;
} cases[] = {
	{ &service, JOB_SERVICE, NULL, { FAIL }, 1, RESTART_AGAIN, 18 * NS_PER_S, WITHIN },
	{ &service, JOB_SERVICE, NULL, { OK }, 1, RESTART_AGAIN, 18 * NS_PER_S, WITHIN },
	{ &service, JOB_SERVICE, NULL, { SIGNALED }, 1, RESTART_AGAIN, 18 * NS_PER_S, WITHIN },
	{ &service, JOB_SERVICE, NULL, { START_FAILED }, 1, RESTART_AGAIN, 18 * NS_PER_S, WITHIN },
	{ &service, JOB_SERVICE, NULL, { START_WRONG }, 1, RESTART_NOT, 0,
	    "Error was unrecoverable" },
	{ &service, JOB_SERVICE, NULL, { FAIL, FAIL }, 1, RESTART_AGAIN, 18 * NS_PER_S, WITHIN },
	{ &service, JOB_SERVICE, NULL, { FAIL, FAIL, FAIL }, 1, RESTART_NOT, 0,
	    "Exceeded allowed attempts 2 in interval 30m0s and mode is \"fail\"" },
	{ &service, JOB_SERVICE, NULL, { FAIL, FAIL, FAIL }, 901, RESTART_AGAIN, 18 * NS_PER_S,
	    WITHIN },
	{ &service, JOB_SERVICE, NULL, { FAIL, FAIL, TRIGGERED }, 1, RESTART_AGAIN, 0, "" },
	{ &service, JOB_SERVICE, NULL, { TRIGGERED_FAILURE }, 1, RESTART_AGAIN, 18 * NS_PER_S,
	    WITHIN },
	{ &service, JOB_SERVICE, NULL, { KILLED }, 1, RESTART_KILLED, 0, "" },
	{ &service, JOB_SERVICE, NULL, { NOTHING }, 1, RESTART_UNKNOWN, 0, "" },
	{ &service, JOB_SERVICE, NULL, { KILLED, FAIL }, 1, RESTART_AGAIN, 18 * NS_PER_S, WITHIN },
	{ &service, JOB_SERVICE, &sidecar, { OK }, 1, RESTART_AGAIN, 18 * NS_PER_S, WITHIN },
	{ &service, JOB_SERVICE, &prestart, { OK }, 1, RESTART_TERMINATED, 0,
	    "Restart unnecessary as task terminated successfully" },
	{ &service, JOB_SERVICE, &prestart, { FAIL }, 1, RESTART_AGAIN, 18 * NS_PER_S, WITHIN },
	{ &service, JOB_SERVICE, &poststop, { OK }, 1, RESTART_TERMINATED, 0,
	    "Restart unnecessary as task terminated successfully" },
	{ &service, JOB_BATCH, NULL, { OK }, 1, RESTART_TERMINATED, 0,
	    "Restart unnecessary as task terminated successfully" },
	{ &service, JOB_BATCH, NULL, { SIGNALED }, 1, RESTART_AGAIN, 18 * NS_PER_S, WITHIN },
	{ &service, JOB_BATCH, NULL, { ERROR }, 1, RESTART_AGAIN, 18 * NS_PER_S, WITHIN },
	{ &service, JOB_BATCH, &sidecar, { OK }, 1, RESTART_AGAIN, 18 * NS_PER_S, WITHIN },
	{ &service, JOB_SYSBATCH, &late_sidecar, { OK }, 1, RESTART_AGAIN, 18 * NS_PER_S, WITHIN },
	{ &service, JOB_BATCH, &prestart, { OK }, 1, RESTART_TERMINATED, 0,
	    "Restart unnecessary as task terminated successfully" },
	{ &never, JOB_BATCH, &sidecar, { OK }, 1, RESTART_NOT, 0, "Policy allows no restarts" },
	{ &service, JOB_SERVICE, &sidecar, { FAIL }, 1, RESTART_AGAIN, 18 * NS_PER_S, WITHIN },
	{ &service, JOB_SERVICE, &poststart, { OK }, 1, RESTART_TERMINATED, 0,
	    "Restart unnecessary as task terminated successfully" },
	{ &service, JOB_SERVICE, &poststart, { FAIL }, 1, RESTART_AGAIN, 18 * NS_PER_S, WITHIN },
	{ &service, JOB_SERVICE, &late_sidecar, { OK }, 1, RESTART_AGAIN, 18 * NS_PER_S, WITHIN },
	{ &service, JOB_SERVICE, &last_sidecar, { OK }, 1, RESTART_TERMINATED, 0,
	    "Restart unnecessary as task terminated successfully" },
	{ &service, JOB_SERVICE, &poststop, { FAIL }, 1, RESTART_AGAIN, 18 * NS_PER_S, WITHIN },
	{ &service, JOB_SYSTEM, NULL, { OK }, 1, RESTART_AGAIN, 18 * NS_PER_S, WITHIN },
	{ &service, JOB_SYSBATCH, NULL, { OK }, 1, RESTART_TERMINATED, 0,
	    "Restart unnecessary as task terminated successfully" },
	{ &service, JOB_SYSBATCH, NULL, { FAIL, FAIL, FAIL }, 1, RESTART_NOT, 0,
	    "Exceeded allowed attempts 2 in interval 30m0s and mode is \"fail\"" },
	/* A requested restart is not counted; one by the policy is. */
	{ &service, JOB_SERVICE, NULL, { RESTARTED }, 1, RESTART_AGAIN, 0, "" },
	{ &service, JOB_SERVICE, NULL, { RESTARTED, RESTARTED, FAIL, FAIL }, 1, RESTART_AGAIN,
	    18 * NS_PER_S, WITHIN },
	{ &service, JOB_SERVICE, NULL, { RESTARTED_BY_POLICY, RESTARTED_BY_POLICY }, 1,
	    RESTART_AGAIN, 18 * NS_PER_S, WITHIN },
	{ &service, JOB_SERVICE, NULL, { FAIL, FAIL, RESTARTED_BY_POLICY }, 1, RESTART_NOT, 0,
	    "Exceeded allowed attempts 2 in interval 30m0s and mode is \"fail\"" },
	{ &service, JOB_BATCH, NULL, { RESTARTED }, 1, RESTART_AGAIN, 0, "" },
	{ &service, JOB_SERVICE, NULL, { RESTARTED_AND_KILLED }, 1, RESTART_KILLED, 0, "" },
	{ &service, JOB_SERVICE, NULL, { RESTARTED_AND_KILLED, RESTARTED }, 1, RESTART_AGAIN, 0,
	    "" },
	{ &service, JOB_SERVICE, NULL, { FAIL, START_WRONG }, 1, RESTART_NOT, 0,
	    "Error was unrecoverable" },
	{ &service, JOB_SERVICE, NULL, { FAIL, FAIL, START_FAILED }, 1, RESTART_NOT, 0,
	    "Exceeded allowed attempts 2 in interval 30m0s and mode is \"fail\"" },
	{ &delaying, JOB_SERVICE, NULL, { FAIL, FAIL, FAIL }, 10, RESTART_AGAIN, 30 * NS_PER_S,
	    "Exceeded allowed attempts, applying a delay" },
	{ &delaying, JOB_SERVICE, NULL, { FAIL, FAIL, FAIL }, 25, RESTART_AGAIN, 4500 * NS_PER_MS,
	    WITHIN },
	{ &delaying, JOB_BATCH, NULL, { FAIL, OK }, 10, RESTART_TERMINATED, 0,
	    "Restart unnecessary as task terminated successfully" },
	{ &never, JOB_SERVICE, NULL, { START_FAILED }, 1, RESTART_NOT, 0,
	    "Policy allows no restarts" },
	{ &never, JOB_SERVICE, NULL, { RESTARTED_BY_POLICY }, 1, RESTART_NOT, 0,
	    "Policy allows no restarts" },
	{ &never, JOB_BATCH, NULL, { FAIL }, 1, RESTART_NOT, 0, "Policy allows no restarts" },
	{ &never, JOB_SERVICE, &prestart, { OK }, 1, RESTART_TERMINATED, 0,
	    "Policy allows no restarts" },
	{ &delaying, JOB_SERVICE, NULL, { FAIL, FAIL }, 10, RESTART_AGAIN, 40 * NS_PER_S,
	    "Exceeded allowed attempts, applying a delay" },
	{ &delaying, JOB_SERVICE, NULL, { FAIL, FAIL }, 31, RESTART_AGAIN, 4500 * NS_PER_MS,
	    WITHIN },
	{ &never, JOB_SERVICE, NULL, { FAIL }, 1, RESTART_NOT, 0, "Policy allows no restarts" },
	{ &never, JOB_SERVICE, NULL, { OK }, 1, RESTART_NOT, 0, "Policy allows no restarts" },
	{ &never, JOB_BATCH, NULL, { OK }, 1, RESTART_TERMINATED, 0, "Policy allows no restarts" },
	{ &never, JOB_SERVICE, NULL, { TRIGGERED }, 1, RESTART_AGAIN, 0, "" },
	{ &ever, JOB_SERVICE, NULL, { FAIL }, 1, RESTART_AGAIN, INT64_MAX, WITHIN },
	{ &ever, JOB_SERVICE, NULL, { FAIL, FAIL }, 1, RESTART_NOT, 0,
	    "Exceeded allowed attempts 1 in interval 2562047h47m16.854775807s and mode is "
	    "\"fail\"" },
	{ &ever_delaying, JOB_SERVICE, NULL, { FAIL, FAIL }, 1, RESTART_AGAIN,
	    INT64_MAX - START - 2 * NS_PER_S, "Exceeded allowed attempts, applying a delay" },
	/* The clock is set back by a day each time. */
	{ &service, JOB_SERVICE, NULL, { FAIL, FAIL, FAIL }, -86400, RESTART_AGAIN, 18 * NS_PER_S,
	    WITHIN },
	{ &delaying, JOB_SERVICE, NULL, { FAIL, FAIL }, -86400, RESTART_AGAIN, 4500 * NS_PER_MS,
	    WITHIN },
};

START_TEST(verdicts)
{
	struct restart_decision d = { 0 };
	struct restart_tracker t;
	int i;

	restart_tracker_init(&t, cases[_i].policy, cases[_i].type, cases[_i].lifecycle, START);
	for (i = 0; i < 4 && cases[_i].happenings[i]; i++) {
		happen(&t, cases[_i].happenings[i]);
		d = restart_tracker_decide(
		    &t, START + (i + 1) * cases[_i].apart_s * NS_PER_S, half, NULL);
	}
	ck_assert_int_eq(d.verdict, cases[_i].verdict);
	ck_assert_int_eq(d.delay_ns, cases[_i].delay_ns);
	ck_assert_str_eq(d.reason, cases[_i].reason);
}
END_TEST

START_TEST(a_new_policy_counts_at_once)
{
	struct restart_tracker t;

	restart_tracker_init(&t, &never, JOB_SERVICE, NULL, START);
	restart_tracker_set_policy(&t, &service);
	restart_tracker_exited(&t, 1, 0, false);
	ck_assert_int_eq(restart_tracker_decide(&t, START + 1, half, NULL).verdict, RESTART_AGAIN);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_loop_test(tc, verdicts, 0, ELEMENTSOF(cases));
	tcase_add_test(tc, a_new_policy_counts_at_once);
}

int
main(void)
{
	return unit_run("model_restart", add);
}
