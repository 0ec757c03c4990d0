// SPDX-License-Identifier: Apache-2.0
/* test_local_rules.c: every combination of facts about a deployment, and the possible results. */
#include "supervisor/server/deploy/local_rules.h"
#include "tests/unit/unit.h"

static const enum deployment_state states[] = { DEPLOYMENT_NONE, DEPLOYMENT_RUNNING,
	DEPLOYMENT_PAUSED, DEPLOYMENT_FAILED, DEPLOYMENT_SUCCESSFUL, DEPLOYMENT_CANCELLED };

/* A paused or failed deployment replaces nothing, one with canaries waits, and a successful one
 * limits nothing. */
START_TEST(the_gate)
{
	for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
		for (int canaries = 0; canaries < 2; canaries++) {
			enum local_gate gate = local_rule_gate(states[i], canaries);
			bool active =
			    deployment_is_active(&(struct deployment){ .status = states[i] });

			ck_assert_int_eq(gate == LOCAL_GATE_ROLLING,
			    states[i] == DEPLOYMENT_RUNNING && !canaries);
			ck_assert_int_eq(gate == LOCAL_GATE_SHUT, states[i] == DEPLOYMENT_FAILED);
			ck_assert_int_eq(gate == LOCAL_GATE_WAITING,
			    active && (canaries || states[i] == DEPLOYMENT_PAUSED));
		}
	}
}
END_TEST

/* At most max_parallel allocs are being replaced, and none while one is unhealthy. */
START_TEST(the_budget)
{
	for (int gate = LOCAL_GATE_OPEN; gate <= LOCAL_GATE_WAITING; gate++)
		for (int64_t max = 0; max < 4; max++)
			for (int64_t turning = 0; turning < 6; turning++)
				for (int unhealthy = 0; unhealthy < 2; unhealthy++) {
					struct local_budget_facts f = { (enum local_gate)gate, max,
						turning, unhealthy };
					int64_t n = local_rule_budget(&f);

					if (gate == LOCAL_GATE_OPEN) {
						ck_assert_int_eq(n, INT64_MAX);
						continue;
					}
					ck_assert_int_ge(n, 0);
					if (gate != LOCAL_GATE_ROLLING || unhealthy)
						ck_assert_int_eq(n, 0);
					else if (turning < max)
						ck_assert_int_eq(turning + n, max);
					else
						ck_assert_int_eq(n, 0);
				}
}
END_TEST

static struct local_standing_facts
unpack_standing(unsigned bits)
{
	struct local_standing_facts f;

	f.healthy = (enum opt_bool)unit_bools(&f, 6, bits);
	return f;
}

/* A slot is healthy only with a running alloc of the deployment; it is abandoned only if nothing
 * else will replace it. */
START_TEST(the_standing)
{
	for (unsigned bits = 0; bits < 3 << 6; bits++) {
		struct local_standing_facts f = unpack_standing(bits);
		enum local_standing s = local_rule_standing(&f);
		bool stays = f.exists && !f.stopped;

		ck_assert_msg((s == LOCAL_STANDING_OLD) == (stays && !f.deployed), "%#x", bits);
		ck_assert_msg((s == LOCAL_STANDING_HEALTHY) ==
				  (stays && f.deployed && !f.ended && f.healthy == OPT_TRUE),
		    "%#x", bits);
		if (s == LOCAL_STANDING_HOPELESS && f.ended)
			ck_assert_msg(stays && f.deployed && !f.is_replaced, "%#x", bits);
		if (s == LOCAL_STANDING_HOPELESS && !f.ended)
			ck_assert_msg(f.healthy == OPT_FALSE && !f.a_task_failed, "%#x", bits);
		if (s == LOCAL_STANDING_TURNING && stays)
			ck_assert_msg(
			    f.deployed && (f.ended ? f.is_replaced : f.healthy != OPT_TRUE), "%#x",
			    bits);
	}
}
END_TEST

#define NOW 1000

static struct local_group_facts
unpack_group(unsigned bits)
{
	return (struct local_group_facts){
		.desired = 2,
		.healthy = bits & 1 ? 2 : 1,
		.desired_canaries = bits & 2 ? 1 : 0,
		.healthy_canaries = bits & 4 ? 1 : 0,
		.hopeless = bits & 8,
		.auto_promote = bits & 16,
		.auto_revert = bits & 32,
		.has_deadline = bits & 64,
		.deadline_ns = bits & 128 ? NOW : NOW + 1,
	};
}

static bool
is_complete(const struct local_group_facts *f)
{
	return f->desired_canaries == 0 && f->healthy >= f->desired;
}

static bool
waits_for_promotion(const struct local_group_facts *f)
{
	return f->desired_canaries > 0 && f->healthy_canaries >= f->desired_canaries;
}

static bool
is_late(const struct local_group_facts *f)
{
	return !is_complete(f) && f->has_deadline && !waits_for_promotion(f) &&
	       f->deadline_ns <= NOW;
}

static bool
is_hopeless(const struct local_group_facts *f)
{
	return !is_complete(f) && f->hopeless;
}

static bool
blocks_promotion(const struct local_group_facts *f)
{
	return f->desired_canaries > 0 && !(waits_for_promotion(f) && f->auto_promote);
}

/* Every pair of groups. */
START_TEST(the_step)
{
	for (unsigned bits = 0; bits < 1 << 16; bits++) {
		struct local_group_facts a = unpack_group(bits & 255), b = unpack_group(bits >> 8);
		struct local_outlook o = LOCAL_OUTLOOK;
		bool fails = is_hopeless(&a) || is_hopeless(&b) || is_late(&a) || is_late(&b);
		enum local_step step;

		local_rule_add_group(&o, &a, NOW);
		local_rule_add_group(&o, &b, NOW);
		step = local_rule_step(&o);
		ck_assert_msg((step == LOCAL_STEP_SUCCEED) == (is_complete(&a) && is_complete(&b)),
		    "%#x", bits);
		ck_assert_msg(
		    (step == LOCAL_STEP_FAIL_UNHEALTHY || step == LOCAL_STEP_FAIL_LATE) == fails,
		    "%#x", bits);
		ck_assert_msg(
		    step != LOCAL_STEP_FAIL_LATE || is_late(&a) || is_late(&b), "%#x", bits);
		ck_assert_msg((step == LOCAL_STEP_PROMOTE) ==
				  (!fails && (a.desired_canaries || b.desired_canaries) &&
				      !blocks_promotion(&a) && !blocks_promotion(&b)),
		    "%#x", bits);
		if (o.revert)
			ck_assert_msg(((is_hopeless(&a) || is_late(&a)) && a.auto_revert) ||
					  ((is_hopeless(&b) || is_late(&b)) && b.auto_revert),
			    "%#x", bits);
		/* The timer is set to a future time, and not later than an incomplete group's
		 * deadline. */
		if (step == LOCAL_STEP_REPLACE && o.deadline_ns != INT64_MAX)
			ck_assert_msg(o.deadline_ns > NOW, "%#x", bits);
		if (step == LOCAL_STEP_REPLACE && a.has_deadline && !is_complete(&a) &&
		    !waits_for_promotion(&a))
			ck_assert_msg(o.deadline_ns <= a.deadline_ns, "%#x", bits);
	}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, the_gate);
	tcase_add_test(tc, the_budget);
	tcase_add_test(tc, the_standing);
	tcase_add_test(tc, the_step);
}

int
main(void)
{
	return unit_run("local_rules", add);
}
