// SPDX-License-Identifier: Apache-2.0
/* test_local_slot.c: every combination of facts about a slot, and the possible actions. */
#include <stdio.h>

#include "supervisor/server/place/local_slot.h"
#include "tests/unit/unit.h"

static const struct {
	const char *story;
	struct local_slot_facts f;
	enum local_slot_action action;
} cases[] = {
	{ "an empty slot of a job that runs", { .wanted = true }, LOCAL_SLOT_PLACE },
	{ "an empty slot of a job that is stopped", { 0 }, LOCAL_SLOT_KEEP },
	{ "it runs as it should", { .wanted = true, .exists = true }, LOCAL_SLOT_KEEP },
	{ "the job is stopped", { .exists = true }, LOCAL_SLOT_STOP },
	{ "the job is stopped, it stops already", { .exists = true, .stopped = true },
	    LOCAL_SLOT_KEEP },
	{ "the job is stopped, it has ended by itself", { .exists = true, .ended = true },
	    LOCAL_SLOT_KEEP },
	{ "a new version changes it",
	    { .wanted = true, .exists = true, .outdated = LOCAL_UPDATE_REPLACE },
	    LOCAL_SLOT_REPLACE },
	{ "a new version leaves it",
	    { .wanted = true, .exists = true, .outdated = LOCAL_UPDATE_IN_PLACE },
	    LOCAL_SLOT_UPDATE },
	{ "it stops for its successor", { .wanted = true, .exists = true, .stopped = true },
	    LOCAL_SLOT_WAIT },
	{ "it has ended for its successor",
	    { .wanted = true, .exists = true, .stopped = true, .ended = true }, LOCAL_SLOT_PLACE },
	{ "it has ended but its volumes are not given back",
	    { .wanted = true,
		.exists = true,
		.stopped = true,
		.ended = true,
		.holds_claims = true },
	    LOCAL_SLOT_WAIT },
	{ "it failed by itself", { .wanted = true, .exists = true, .ended = true },
	    LOCAL_SLOT_KEEP },
	{ "it failed by itself, and the job is registered again",
	    { .wanted = true, .exists = true, .ended = true, .again = true }, LOCAL_SLOT_PLACE },
	{ "it failed by itself, and the job has changed since",
	    { .wanted = true, .exists = true, .ended = true, .outdated = LOCAL_UPDATE_IN_PLACE },
	    LOCAL_SLOT_PLACE },
	{ "its lease ended", { .wanted = true, .exists = true, .ended = true, .lease_ended = true },
	    LOCAL_SLOT_PLACE },
	{ "its lease ended, its volume is still mounted",
	    { .wanted = true,
		.exists = true,
		.ended = true,
		.lease_ended = true,
		.holds_claims = true },
	    LOCAL_SLOT_WAIT },
	{ "it failed by itself and may be rescheduled later",
	    { .wanted = true, .exists = true, .ended = true, .reschedule = LOCAL_AGAIN_LATER },
	    LOCAL_SLOT_LATER },
	{ "it failed by itself and may be rescheduled now",
	    { .wanted = true, .exists = true, .ended = true, .reschedule = LOCAL_AGAIN_NOW },
	    LOCAL_SLOT_PLACE },
	{ "it may be rescheduled, its volume is still mounted",
	    { .wanted = true,
		.exists = true,
		.ended = true,
		.holds_claims = true,
		.reschedule = LOCAL_AGAIN_NOW },
	    LOCAL_SLOT_WAIT },
	{ "it may be rescheduled later, but the job has changed since",
	    { .wanted = true,
		.exists = true,
		.ended = true,
		.outdated = LOCAL_UPDATE_REPLACE,
		.reschedule = LOCAL_AGAIN_LATER },
	    LOCAL_SLOT_PLACE },
	{ "it would be rescheduled, but the job is stopped",
	    { .exists = true, .ended = true, .reschedule = LOCAL_AGAIN_NOW }, LOCAL_SLOT_KEEP },
	{ "registering again leaves what runs", { .wanted = true, .exists = true, .again = true },
	    LOCAL_SLOT_KEEP },
};

START_TEST(the_table)
{
	ck_assert_msg(local_slot_decide(&cases[_i].f) == cases[_i].action, "%s", cases[_i].story);
}
END_TEST

static struct local_slot_facts
unpack(unsigned bits)
{
	struct local_slot_facts f = { 0 };
	unsigned left = unit_bools(&f, 7, bits);

	f.outdated = (enum local_outdated)(left % 3);
	f.reschedule = (enum local_again)(left / 3);
	return f;
}

START_TEST(no_two_allocs_of_one_name_run_at_once)
{
	for (unsigned bits = 0; bits < 9 << 7; bits++) {
		struct local_slot_facts f = unpack(bits);
		enum local_slot_action a = local_slot_decide(&f);

		if (a == LOCAL_SLOT_PLACE)
			ck_assert_msg(f.wanted && (!f.exists || (f.ended && !f.holds_claims)),
			    "facts %#x", bits);
		if (a == LOCAL_SLOT_STOP || a == LOCAL_SLOT_REPLACE || a == LOCAL_SLOT_UPDATE)
			ck_assert_msg(f.exists && !f.ended && !f.stopped, "facts %#x", bits);
		if (!f.wanted)
			ck_assert_msg(
			    a == LOCAL_SLOT_KEEP || a == LOCAL_SLOT_STOP, "facts %#x", bits);
	}
}
END_TEST

/* An evaluation counts a slot that waits; a placed slot no longer waits; an attempt is counted only
 * for an alloc that failed by itself and is replaced for that reason. */
START_TEST(the_steps_fit_the_action)
{
	for (unsigned bits = 0; bits < 9 << 7; bits++) {
		struct local_slot_facts f = unpack(bits);
		enum local_slot_action a = local_slot_decide(&f);
		struct local_slot_steps s = local_slot_get_steps(&f, a);

		ck_assert_msg(!s.waits || local_slot_needs_eval(a), "facts %#x", bits);
		ck_assert_msg(
		    !s.keeps_timer || (s.waits && a == LOCAL_SLOT_LATER), "facts %#x", bits);
		ck_assert_msg(s.keeps_unplaced == (a == LOCAL_SLOT_PLACE), "facts %#x", bits);
		ck_assert_msg(!s.keeps_unplaced || f.wanted, "facts %#x", bits);
		ck_assert_msg(!s.releases_alloc || (f.ended && !f.wanted && a == LOCAL_SLOT_KEEP),
		    "facts %#x", bits);
		/* An operator's request and an update do not count as attempts of the policy. */
		ck_assert_msg(!s.counts_attempt || (f.reschedule == LOCAL_AGAIN_NOW && !f.again &&
						       f.outdated == LOCAL_CURRENT),
		    "facts %#x", bits);
		if (f.reschedule == LOCAL_AGAIN_NOW && f.wanted && f.exists && f.ended &&
		    !f.stopped && !f.again && f.outdated == LOCAL_CURRENT)
			ck_assert_msg(
			    s.counts_attempt && (a == LOCAL_SLOT_PLACE || a == LOCAL_SLOT_WAIT),
			    "facts %#x", bits);
	}
}
END_TEST

START_TEST(every_action_has_its_evaluation)
{
	for (int a = LOCAL_SLOT_KEEP; a <= LOCAL_SLOT_LATER; a++)
		for (int waits = 0; waits < 2; waits++)
			for (int blocked = 0; blocked < 2; blocked++) {
				enum local_slot_action action = (enum local_slot_action)a;
				enum local_slot_eval ev =
				    local_slot_choose_eval(action, waits, blocked);

				if (local_slot_needs_eval(action))
					ck_assert_int_ne(ev, LOCAL_EVAL_NONE);
				ck_assert_int_eq(ev == LOCAL_EVAL_WAITING, waits);
				if (ev == LOCAL_EVAL_BLOCKED)
					ck_assert(blocked && action == LOCAL_SLOT_PLACE);
				if (ev == LOCAL_EVAL_NEW)
					ck_assert(local_slot_needs_eval(action) && !waits);
			}
}
END_TEST

/* Nothing is done twice for a slot that waits: it is placed, stopped or updated only once. */
START_TEST(what_a_slot_waits_for_already)
{
	for (int a = LOCAL_SLOT_KEEP; a <= LOCAL_SLOT_LATER; a++)
		for (unsigned bits = 0; bits < 8; bits++) {
			enum local_slot_action action = (enum local_slot_action)a;
			struct local_slot_state s = { bits & 1, bits & 2, bits & 4 };
			bool arranged = local_slot_is_arranged(&s, action);

			if (action == LOCAL_SLOT_PLACE)
				ck_assert_int_eq(arranged, s.unplaced && s.same_version);
			else if (action == LOCAL_SLOT_WAIT || action == LOCAL_SLOT_LATER)
				ck_assert_int_eq(arranged, s.waits);
			else
				ck_assert(!arranged);
		}
}
END_TEST

/* As many held slots are replaced as the budget has, and no others. */
START_TEST(the_budget_is_spent_on_held_slots)
{
	for (int64_t budget = 0; budget < 4; budget++) {
		int64_t left = budget, replaced = 0;

		for (int i = 0; i < 6; i++) {
			struct local_slot_facts f = {
				.wanted = true, .exists = true, .held = i % 2 == 0
			};

			local_slot_spend_budget(&f, &left);
			ck_assert(f.held || f.outdated == LOCAL_CURRENT);
			replaced += local_slot_decide(&f) == LOCAL_SLOT_REPLACE;
		}
		ck_assert_int_eq(replaced, budget < 3 ? budget : 3);
		ck_assert_int_eq(left, budget - replaced);
	}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_loop_test(tc, the_table, 0, sizeof cases / sizeof cases[0]);
	tcase_add_test(tc, no_two_allocs_of_one_name_run_at_once);
	tcase_add_test(tc, the_steps_fit_the_action);
	tcase_add_test(tc, every_action_has_its_evaluation);
	tcase_add_test(tc, what_a_slot_waits_for_already);
	tcase_add_test(tc, the_budget_is_spent_on_held_slots);
}

int
main(void)
{
	return unit_run("local_slot", add);
}
