// SPDX-License-Identifier: Apache-2.0
/* test_health.c: what a probe says of a clock that was set, and how it keeps results. */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "supervisor/health/clock_step.h"
#include "supervisor/health/component.h"
#include "tests/unit/unit.h"

#define BASE_NS (1800000000 * NS_PER_S) /* 2027 */
#define BOOT_NS (3600 * NS_PER_S)

/* Judges after_s seconds after the first look, when the clock shows set_ns more than it should. */
static enum health_state
judge(struct clock_step *c, int64_t after_s, int64_t set_ns, char sentence[128])
{
	int64_t after = after_s * NS_PER_S;

	sentence[0] = '\0';
	return clock_step_judge(c, BASE_NS + after + set_ns, BOOT_NS + after, sentence, 128);
}

START_TEST(a_clock_that_was_set)
{
	struct clock_step c;
	char sentence[128];

	clock_step_begin(&c, BASE_NS, BOOT_NS);
	ck_assert_int_eq(judge(&c, 86400, 0, sentence), HEALTH_OK);
	ck_assert_int_eq(judge(&c, 86401, 999 * NS_PER_MS, sentence), HEALTH_OK);
	ck_assert_int_eq(judge(&c, 86402, 3600 * NS_PER_S, sentence), HEALTH_DEGRADED);
	ck_assert_str_eq(sentence,
	    "the machine's clock was set forward by 3600 seconds less than 10 minutes ago");
	ck_assert_int_eq(judge(&c, 86402 + 599, 3600 * NS_PER_S, sentence), HEALTH_DEGRADED);
	ck_assert_int_eq(judge(&c, 86402 + 600, 3600 * NS_PER_S, sentence), HEALTH_OK);
	ck_assert_int_eq(judge(&c, 90000, 3590 * NS_PER_S, sentence), HEALTH_DEGRADED);
	ck_assert_str_eq(
	    sentence, "the machine's clock was set back by 10 seconds less than 10 minutes ago");
	ck_assert_int_eq(
	    clock_step_judge(&c, 100 * NS_PER_S, BOOT_NS, sentence, 128), HEALTH_FAILED);
}
END_TEST

START_TEST(results)
{
	struct components all = TAILQ_HEAD_INITIALIZER(all);
	const struct component *bad, *disk;
	int64_t since;

	component_report(&all, "disk", HEALTH_FAILED, 1, "it is full");
	component_report(&all, "clock", HEALTH_OK, 0, NULL);
	component_report(&all, "state", HEALTH_UNKNOWN, 0, "not checked");
	ck_assert_int_eq(components_state(&all, &bad), HEALTH_FAILED);
	ck_assert_str_eq(bad->name, "disk");
	disk = bad;
	since = disk->since_ns;
	component_report(&all, "disk", HEALTH_FAILED, 1, "it is full still");
	ck_assert_int_eq(disk->since_ns, since);
	components_begin(&all);
	component_report(&all, "disk", HEALTH_OK, 1, NULL);
	ck_assert_int_ge(disk->since_ns, since);
	ck_assert_ptr_null(disk->sentence);
	ck_assert_str_eq(disk->error, "it is full still");
	ck_assert_int_eq(components_state(&all, &bad), HEALTH_OK);
	ck_assert_ptr_null(bad);
	component_report(&all, "clock", HEALTH_DEGRADED, 0, "it was set");
	ck_assert_int_eq(components_state(&all, &bad), HEALTH_DEGRADED);
	ck_assert_ptr_null(bad);
	components_begin(&all);
	component_report(&all, "disk", HEALTH_HUNG, 1, "late");
	components_sweep(&all);
	ck_assert_ptr_null(component_find(&all, "clock"));
	ck_assert_int_eq(components_state(&all, &bad), HEALTH_HUNG);
	components_free(&all);
	ck_assert(TAILQ_EMPTY(&all));
}
END_TEST

START_TEST(the_worst_result_of_a_probe_counts)
{
	struct components all = TAILQ_HEAD_INITIALIZER(all);
	const struct component *c;

	component_report(&all, "driver/exec", HEALTH_OK, 1, NULL);
	component_report(&all, "driver/exec", HEALTH_FAILED, 2, "no cgroup");
	component_report(&all, "driver/exec", HEALTH_OK, 3, NULL);
	c = component_find(&all, "driver/exec");
	ck_assert_int_eq(c->state, HEALTH_FAILED);
	ck_assert_str_eq(c->sentence, "no cgroup");
	ck_assert_uint_eq(c->took_ms, 2);
	components_begin(&all);
	component_report(&all, "driver/exec", HEALTH_OK, 4, NULL);
	ck_assert_int_eq(c->state, HEALTH_OK);
	components_free(&all);
}
END_TEST

START_TEST(a_component_that_is_not_checked_keeps_its_last_result)
{
	struct components all = TAILQ_HEAD_INITIALIZER(all);
	const struct component *c;
	int64_t checked;

	component_report(&all, "volume/v", HEALTH_HUNG, 5000, "it did not answer");
	c = component_find(&all, "volume/v");
	checked = c->checked_ns;
	components_begin(&all);
	component_keep(&all, "volume/v", HEALTH_HUNG, "it is asked again later");
	ck_assert_str_eq(c->sentence, "it is asked again later");
	components_begin(&all);
	component_report(&all, "volume/v", HEALTH_UNKNOWN, 0, "not checked");
	ck_assert_str_eq(c->sentence, "not checked");
	ck_assert_int_eq(c->checked_ns, checked);
	ck_assert_uint_eq(c->took_ms, 5000);
	ck_assert_str_eq(c->error, "it did not answer");
	component_keep(&all, "volume/w", HEALTH_HUNG, "it is asked again later");
	ck_assert_int_eq(component_find(&all, "volume/w")->checked_ns, 0);
	components_free(&all);
}
END_TEST

START_TEST(a_turn_is_found_across_results_that_are_unknown)
{
	static const struct {
		enum health_state state;
		bool turned;
	} steps[] = { { HEALTH_UNKNOWN, false }, { HEALTH_OK, false }, { HEALTH_FAILED, true },
		{ HEALTH_HUNG, false }, { HEALTH_UNKNOWN, false }, { HEALTH_FAILED, false },
		{ HEALTH_UNKNOWN, false }, { HEALTH_DEGRADED, true }, { HEALTH_UNKNOWN, false },
		{ HEALTH_OK, false } };
	struct components all = TAILQ_HEAD_INITIALIZER(all);
	bool is_bad = false;

	for (size_t i = 0; i < ELEMENTSOF(steps); i++) {
		components_begin(&all);
		component_report(&all, "driver/exec", steps[i].state, 0, "a sentence");
		ck_assert_msg(component_has_turned(component_find(&all, "driver/exec"), is_bad) ==
				  steps[i].turned,
		    "step %zu", i);
		is_bad ^= steps[i].turned;
	}
	components_free(&all);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, a_clock_that_was_set);
	tcase_add_test(tc, results);
	tcase_add_test(tc, the_worst_result_of_a_probe_counts);
	tcase_add_test(tc, a_component_that_is_not_checked_keeps_its_last_result);
	tcase_add_test(tc, a_turn_is_found_across_results_that_are_unknown);
}

int
main(void)
{
	return unit_run("health", add);
}
