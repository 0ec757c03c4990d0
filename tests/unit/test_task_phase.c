// SPDX-License-Identifier: Apache-2.0
/* test_task_phase.c: every transition of a task, every one that is rejected, and every decision
 * after a run. */
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "supervisor/alloc/task_phase.h"
#include "tests/unit/unit.h"

/* One letter for each phase, in their order. */
static const char letters[] = "wpsrltdbx";

/* For each phase, by event in the order of enum task_ev: the next phase, or '.' if the event is
 * ignored. */
static const char *const matrix[TASK_PHASES] = {
	/*                   dead run gate prep shut pfail start fail lost end lease rest anew kill
			     timer again over */
	[TASK_WAITING] = "xsp..........x...",
	[TASK_PREPARING] = "...swd.......x...",
	[TASK_STARTING] = "......rdwdxl.l...",
	[TASK_RUNNING] = "......rd.dxl.l...",
	[TASK_DELAYING] = "......ldddx..lt..",
	[TASK_STOPPING] = "......tdddx..t...",
	[TASK_DECIDING] = "...............bx",
	[TASK_BACKOFF] = ".............xw..",
	[TASK_DEAD] = "............d....",
};

START_TEST(every_event_in_every_phase)
{
	enum task_phase phase = (enum task_phase)_i;

	ck_assert_uint_eq(strlen(matrix[phase]), TASK_EVS);
	for (enum task_ev ev = 0; ev < TASK_EVS; ev++) {
		int next = task_phase_next(phase, ev);
		char found = '.';

		if (next >= 0)
			found = letters[next];
		ck_assert_msg(found == matrix[phase][ev], "%s, %s: '%c', not '%c'",
		    task_phase_names[phase], task_ev_names[ev], found, matrix[phase][ev]);
	}
}
END_TEST

START_TEST(each_has_a_name)
{
	ck_assert_uint_eq(strlen(letters), TASK_PHASES);
	for (enum task_phase p = 0; p < TASK_PHASES; p++)
		ck_assert_ptr_nonnull(task_phase_names[p]);
	for (enum task_ev ev = 0; ev < TASK_EVS; ev++)
		ck_assert_ptr_nonnull(task_ev_names[ev]);
}
END_TEST

/* Returns the phases that events of this set lead to from one phase. */
static unsigned
reach(enum task_phase from, unsigned events)
{
	unsigned seen = 1U << from, before;

	do {
		before = seen;
		for (enum task_phase p = 0; p < TASK_PHASES; p++)
			for (enum task_ev ev = 0; (seen & 1U << p) && ev < TASK_EVS; ev++)
				if ((events & 1U << ev) && task_phase_next(p, ev) >= 0)
					seen |= 1U << task_phase_next(p, ev);
	} while (seen != before);
	return seen;
}

START_TEST(a_killed_task_can_die_from_every_phase)
{
	unsigned events =
	    1U << TASK_EV_KILL | 1U << TASK_EV_TIMER | 1U << TASK_EV_ENDED | 1U << TASK_EV_OVER;

	ck_assert(reach((enum task_phase)_i, events) & 1U << TASK_DEAD);
}
END_TEST

/* Without a new start no event leads from the end of a run back to a running task. */
START_TEST(no_run_without_a_start)
{
	unsigned events = (1U << TASK_EVS) - 1;
	unsigned with_run =
	    1U << TASK_STARTING | 1U << TASK_RUNNING | 1U << TASK_DELAYING | 1U << TASK_STOPPING;

	events &= ~(1U << TASK_EV_PREPARED | 1U << TASK_EV_FOUND_RUN);
	if (!(with_run & 1U << _i))
		ck_assert_uint_eq(reach((enum task_phase)_i, events) & with_run, 0);
}
END_TEST

static const struct {
	const char *story;
	struct task_end_facts f;
	enum task_outcome outcome;
} decisions[] = {
	{ "it failed and may start again", { .verdict = RESTART_AGAIN }, TASK_STARTS_AGAIN },
	{ "it is done", { .verdict = RESTART_TERMINATED }, TASK_ENDS },
	{ "nothing is known of it", { .verdict = RESTART_UNKNOWN }, TASK_ENDS },
	{ "it has used up its restarts", { .verdict = RESTART_NOT }, TASK_ENDS_BY_POLICY },
	{ "it was killed", { .killed = true, .verdict = RESTART_KILLED }, TASK_ENDS_KILLED },
	{ "it was told to restart, and killed before it ended",
	    { .killed = true, .verdict = RESTART_AGAIN }, TASK_ENDS_KILLED },
	{ "it would start, but a hook bars it", { .verdict = RESTART_AGAIN, .barred = true },
	    TASK_ENDS_BARRED },
	{ "a hook bars it, but it is done", { .verdict = RESTART_TERMINATED, .barred = true },
	    TASK_ENDS },
	{ "it would start, but its alloc ends", { .verdict = RESTART_AGAIN, .alloc_ends = true },
	    TASK_ENDS },
	{ "its alloc ends, and it has used up its restarts",
	    { .verdict = RESTART_NOT, .alloc_ends = true }, TASK_ENDS_BY_POLICY },
};

START_TEST(the_decisions)
{
	ck_assert_msg(
	    task_outcome(&decisions[_i].f) == decisions[_i].outcome, "%s", decisions[_i].story);
}
END_TEST

START_TEST(every_combination_of_facts)
{
	for (unsigned bits = 0; bits < (RESTART_KILLED + 1) << 3; bits++) {
		struct task_end_facts f = {
			.killed = bits & 1,
			.barred = bits & 2,
			.alloc_ends = bits & 4,
			.verdict = (enum restart_verdict)(bits >> 3),
		};
		enum task_outcome o = task_outcome(&f);

		ck_assert_msg(
		    (o == TASK_STARTS_AGAIN) ==
			(f.verdict == RESTART_AGAIN && !f.killed && !f.barred && !f.alloc_ends),
		    "facts %#x", bits);
		ck_assert_msg((o == TASK_ENDS_KILLED) == (f.killed || f.verdict == RESTART_KILLED),
		    "facts %#x", bits);
		/* Only these two fail the task. */
		if (o == TASK_ENDS_BARRED || o == TASK_ENDS_BY_POLICY)
			ck_assert_msg(!f.killed && f.verdict != RESTART_TERMINATED &&
					  f.verdict != RESTART_UNKNOWN,
			    "facts %#x", bits);
	}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_loop_test(tc, every_event_in_every_phase, 0, TASK_PHASES);
	tcase_add_test(tc, each_has_a_name);
	tcase_add_loop_test(tc, a_killed_task_can_die_from_every_phase, 0, TASK_PHASES);
	tcase_add_loop_test(tc, no_run_without_a_start, 0, TASK_PHASES);
	tcase_add_loop_test(tc, the_decisions, 0, ELEMENTSOF(decisions));
	tcase_add_test(tc, every_combination_of_facts);
}

int
main(void)
{
	return unit_run("task_phase", add);
}
