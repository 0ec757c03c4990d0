// SPDX-License-Identifier: Apache-2.0
/* test_plugin_retry.c: every combination of facts about a call to a plugin, and the decision. */
#include "supervisor/volume/plugin_retry.h"
#include "tests/unit/unit.h"

#define MINUTE_USEC 60000000ull

/* A call is sent at most three times, one of a fingerprint twice, with a backoff that doubles. */
START_TEST(a_call_that_fails_in_a_way_that_may_pass)
{
	for (unsigned failed = 1; failed < 5; failed++)
		for (int once = 0; once < 2; once++) {
			struct plugin_try_facts f = { .verdict = CSI_RETRY,
				.once = once,
				.failed = failed,
				.timeout_usec = 2 * MINUTE_USEC };

			ck_assert_uint_eq(plugin_retry_usec(&f),
			    failed >= (once ? 2u : 3u) ? 0 : 100000u << (failed - 1));
		}
}
END_TEST

/* While the plugin works on an earlier call, the call is repeated for two timeouts, every 5 s in
 * the end. */
START_TEST(a_call_for_a_busy_volume)
{
	struct plugin_try_facts f = { .verdict = CSI_PENDING, .timeout_usec = 2 * MINUTE_USEC };
	uint64_t usec;

	while ((usec = plugin_retry_usec(&f)) > 0) {
		ck_assert_uint_le(usec, 5000000);
		ck_assert_uint_ge(usec, f.pending < 2 ? 100000 : 200000);
		f.pending_usec += usec;
		f.pending++;
	}
	ck_assert_uint_ge(f.pending_usec, 4 * MINUTE_USEC);
	ck_assert_uint_lt(f.pending_usec, 5 * MINUTE_USEC);
	ck_assert_uint_lt(f.pending, 70);
	f.pending_usec = 0;
	f.once = true;
	ck_assert_uint_eq(plugin_retry_usec(&f), 0);
}
END_TEST

START_TEST(a_final_answer)
{
	struct plugin_try_facts f = { .verdict = CSI_FINAL };

	ck_assert_uint_eq(plugin_retry_usec(&f), 0);
	f.verdict = CSI_DONE;
	ck_assert_uint_eq(plugin_retry_usec(&f), 0);
}
END_TEST

static const uint64_t waited[] = { 0, PLUGIN_GRACE_USEC - 1, PLUGIN_GRACE_USEC,
	PLUGIN_WAIT_USEC - 1, PLUGIN_WAIT_USEC, UINT64_MAX };

/* A call waits while it may still succeed, and no longer than PLUGIN_WAIT_USEC. */
START_TEST(a_call_that_waits)
{
	for (unsigned lost = 0; lost < 4; lost++)
		for (size_t i = 0; i < sizeof waited / sizeof waited[0]; i++)
			for (int wanted = 0; wanted < 2; wanted++) {
				struct plugin_wait_facts f = { lost, waited[i], wanted };
				bool waits = !plugin_wait_failure(&f);

				if (lost >= PLUGIN_TRIES_MAX || waited[i] >= PLUGIN_WAIT_USEC)
					ck_assert(!waits);
				else
					ck_assert_int_eq(
					    waits, wanted || waited[i] < PLUGIN_GRACE_USEC);
			}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, a_call_that_fails_in_a_way_that_may_pass);
	tcase_add_test(tc, a_call_for_a_busy_volume);
	tcase_add_test(tc, a_final_answer);
	tcase_add_test(tc, a_call_that_waits);
}

int
main(void)
{
	return unit_run("plugin_retry", add);
}
