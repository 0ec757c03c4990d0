// SPDX-License-Identifier: Apache-2.0
/* test_local_launch.c: every combination of facts about a periodic job, and whether it is
 * launched. */
#include "supervisor/server/drive/local_launch.h"
#include "tests/unit/unit.h"

#define NOW 1000

static const int64_t times[] = { -1, 0, NOW - 1, NOW, NOW + 1, INT64_MAX };

START_TEST(only_what_is_due)
{
	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
		for (int prohibits = 0; prohibits < 2; prohibits++)
			for (int64_t active = 0; active < 3; active++) {
				struct local_launch_facts f = { .now_s = NOW,
					.next_s = times[i],
					.prohibits_overlap = prohibits,
					.n_active = active };
				enum local_launch launch = local_launch_decide(&f);
				bool due = times[i] >= 0 && times[i] <= NOW;

				ck_assert_int_eq(launch != LOCAL_LAUNCH_WAIT, due);
				ck_assert_int_eq(
				    launch == LOCAL_LAUNCH_SKIP, due && prohibits && active > 0);
			}
}
END_TEST

/* Whatever the clock does, a time is either launched or computed again, never both and never
 * neither. */
START_TEST(a_set_clock_loses_no_time)
{
	for (size_t i = 1; i < sizeof times / sizeof times[0]; i++) {
		struct local_launch_facts f = { .now_s = NOW, .next_s = times[i] };

		ck_assert_int_eq(local_launch_is_stale(times[i], NOW),
		    local_launch_decide(&f) == LOCAL_LAUNCH_WAIT);
	}
}
END_TEST

START_TEST(a_start_looks_back_but_never_ahead)
{
	for (size_t i = 1; i < sizeof times / sizeof times[0]; i++) {
		int64_t since = local_launch_since(times[i], NOW);

		ck_assert_int_le(since, NOW);
		if (times[i] <= NOW)
			ck_assert_int_eq(since, times[i]);
	}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, only_what_is_due);
	tcase_add_test(tc, a_set_clock_loses_no_time);
	tcase_add_test(tc, a_start_looks_back_but_never_ahead);
}

int
main(void)
{
	return unit_run("local_launch", add);
}
