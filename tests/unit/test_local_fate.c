// SPDX-License-Identifier: Apache-2.0
/* test_local_fate.c: every combination of facts about an alloc, and what they mean for its
 * replacement. */
#include "supervisor/server/place/local_fate.h"
#include "tests/unit/unit.h"

#define FACTS 9

static struct local_fate_facts
unpack(unsigned bits)
{
	struct local_fate_facts f;

	_Static_assert(sizeof f == FACTS * sizeof(bool), "all facts are bools");
	(void)unit_bools(&f, FACTS, bits);
	return f;
}

/* One fate follows from each combination, and each fate only from its own facts. */
START_TEST(each_fate_has_its_facts)
{
	for (unsigned bits = 0; bits < 1 << FACTS; bits++) {
		struct local_fate_facts f = unpack(bits);
		bool placed = f.current && !f.unplaced, ended = f.wanted && f.failed;
		bool never = placed && ended && !f.reschedules;

		switch (local_fate_decide(&f)) {
		case LOCAL_FATE_NONE:
			ck_assert_msg(!f.current || (placed && !ended && !f.waits), "%#x", bits);
			break;
		case LOCAL_FATE_UNPLACED:
			ck_assert_msg(f.current && f.unplaced, "%#x", bits);
			break;
		case LOCAL_FATE_LATER:
			ck_assert_msg(placed && ended && f.reschedules, "%#x", bits);
			break;
		case LOCAL_FATE_NEVER_TYPE:
			ck_assert_msg(never && f.system, "%#x", bits);
			break;
		case LOCAL_FATE_NEVER_RULE:
			ck_assert_msg(never && !f.system && !f.policy, "%#x", bits);
			break;
		case LOCAL_FATE_NEVER_AGAIN:
			ck_assert_msg(never && !f.system && f.policy, "%#x", bits);
			break;
		case LOCAL_FATE_ENDS:
			ck_assert_msg(placed && !ended && f.waits && !f.over, "%#x", bits);
			break;
		case LOCAL_FATE_UNMOUNTS:
			ck_assert_msg(placed && !ended && f.waits && f.over, "%#x", bits);
			break;
		}
	}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, each_fate_has_its_facts);
}

int
main(void)
{
	return unit_run("local_fate", add);
}
