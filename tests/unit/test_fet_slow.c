// SPDX-License-Identifier: Apache-2.0
/* test_fet_slow.c: which transfers are slow. */
#include "fetcher/fet_slow.h"

#include "fetcher/fet.h"
#include "tests/unit/unit.h"

#define SLOW_MS 60000

/* Returns the rate if the transfer is slow, else UINT64_MAX. */
static uint64_t
rate_of(struct fet_pace *pace, const struct fet_progress *told, uint64_t now_ms)
{
	uint64_t rate = 0;

	return fet_pace_is_slow(pace, told, now_ms, SLOW_MS, &rate) ? rate : UINT64_MAX;
}

START_TEST(a_transfer_has_a_minute_before_it_can_be_slow)
{
	struct fet_pace pace = { .since_ms = 1000 };
	const struct fet_progress told = { .transfers = true };

	ck_assert_uint_eq(rate_of(&pace, &told, 1000 + SLOW_MS - 1), UINT64_MAX);
	ck_assert_uint_eq(rate_of(&pace, &told, 1000 + SLOW_MS), 0);
}
END_TEST

START_TEST(the_rate_is_that_since_it_was_last_fast_enough)
{
	struct fet_pace pace = { .since_ms = 1000 };
	struct fet_progress told = { .bytes = 1 << 30, .transfers = true };

	ck_assert_uint_eq(rate_of(&pace, &told, 1000 + SLOW_MS), UINT64_MAX);
	told.bytes += 100 * SLOW_MS / 1000;
	ck_assert_uint_eq(rate_of(&pace, &told, 1000 + 2 * SLOW_MS - 1), UINT64_MAX);
	ck_assert_uint_eq(rate_of(&pace, &told, 1000 + 2 * SLOW_MS), 100);
	ck_assert_uint_eq(rate_of(&pace, &told, 1000 + 3 * SLOW_MS), 50);
	told.bytes += (uint64_t)FET_SLOW_RATE * 2 * SLOW_MS / 1000;
	ck_assert_uint_eq(rate_of(&pace, &told, 1000 + 3 * SLOW_MS), UINT64_MAX);
}
END_TEST

START_TEST(a_second_try_that_has_fewer_bytes_than_the_first_is_slow)
{
	struct fet_pace pace = { .since_ms = 1000, .bytes = 1 << 20 };
	const struct fet_progress told = { .bytes = 1000, .transfers = true };

	ck_assert_uint_eq(rate_of(&pace, &told, 1000 + SLOW_MS), 0);
}
END_TEST

START_TEST(what_is_unpacked_is_not_slow)
{
	struct fet_pace pace = { .since_ms = 1000 };
	struct fet_progress told = { 0 };

	ck_assert_uint_eq(rate_of(&pace, &told, 1000 + SLOW_MS), UINT64_MAX);
	told.transfers = true; /* of the next file */
	ck_assert_uint_eq(rate_of(&pace, &told, 1000 + 2 * SLOW_MS - 1), UINT64_MAX);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_test(t, a_transfer_has_a_minute_before_it_can_be_slow);
	tcase_add_test(t, the_rate_is_that_since_it_was_last_fast_enough);
	tcase_add_test(t, a_second_try_that_has_fewer_bytes_than_the_first_is_slow);
	tcase_add_test(t, what_is_unpacked_is_not_slow);
}

int
main(void)
{
	return unit_run("fet_slow", add_tests);
}
