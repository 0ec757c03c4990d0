// SPDX-License-Identifier: Apache-2.0
/* test_plugin_retry.c: every combination of facts about a call to a plugin, and the decision. */
#include "supervisor/volume/plugin_retry.h"
#include "tests/unit/unit.h"

/* A call is sent at most PLUGIN_TRIES_MAX times; a call for one instance never goes to another. */
START_TEST(a_lost_call)
{
	for (unsigned lost = 1; lost < 5; lost++)
		for (int instance = 0; instance < 2; instance++) {
			enum plugin_retry retry = plugin_retry_lost(lost, instance);

			ck_assert_int_eq(retry == PLUGIN_RETRY_NO, lost >= PLUGIN_TRIES_MAX);
			if (retry != PLUGIN_RETRY_NO)
				ck_assert_int_eq(retry == PLUGIN_RETRY_NOW, instance);
		}
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
	tcase_add_test(tc, a_lost_call);
	tcase_add_test(tc, a_call_that_waits);
}

int
main(void)
{
	return unit_run("plugin_retry", add);
}
