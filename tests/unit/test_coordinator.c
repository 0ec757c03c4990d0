// SPDX-License-Identifier: Apache-2.0
/* test_coordinator.c: every transition of the lifecycle coordinator, and every gate. */
#include <stdio.h>
#include <string.h>

#include "supervisor/alloc/coordinator.h"
#include "tests/unit/unit.h"

/*
 * Counts the tasks of an alloc, which are given by stage as one letter each: "p" pending, "r"
 * running, "d" dead and successful, "f" dead and failed. "-": the stage has no tasks.
 */
static void
count(const char *const tasks[STAGES], struct stage_count ret[STAGES])
{
	memset(ret, 0, STAGES * sizeof ret[0]);
	for (unsigned i = 0; i < STAGES; i++) {
		for (const char *t = tasks[i]; *t && *t != '-'; t++) {
			ret[i].n++;
			ret[i].pending += *t == 'p';
			ret[i].running += *t == 'r';
			ret[i].dead += *t == 'd' || *t == 'f';
			ret[i].failed += *t == 'f';
		}
	}
}

static const struct {
	enum coordinator_state from, to;
	const char
	    *tasks[STAGES]; /* prestart, its sidecars, main, poststart, its sidecars, poststop */
} cases[] = {
	/* An alloc that has all stages, step by step. */
	{ COORDINATOR_INIT, COORDINATOR_PRESTART, { "p", "p", "p", "p", "p", "p" } },
	{ COORDINATOR_PRESTART, COORDINATOR_PRESTART, { "r", "p", "p", "p", "p", "p" } },
	{ COORDINATOR_PRESTART, COORDINATOR_PRESTART, { "d", "p", "p", "p", "p", "p" } },
	{ COORDINATOR_PRESTART, COORDINATOR_PRESTART, { "r", "r", "p", "p", "p", "p" } },
	{ COORDINATOR_PRESTART, COORDINATOR_MAIN, { "d", "r", "p", "p", "p", "p" } },
	{ COORDINATOR_MAIN, COORDINATOR_MAIN, { "dd", "r", "rp", "p", "p", "p" } },
	{ COORDINATOR_MAIN, COORDINATOR_POSTSTART, { "d", "r", "r", "p", "p", "p" } },
	{ COORDINATOR_POSTSTART, COORDINATOR_POSTSTART, { "d", "r", "r", "r", "r", "p" } },
	{ COORDINATOR_POSTSTART, COORDINATOR_WAIT, { "d", "r", "r", "d", "r", "p" } },
	{ COORDINATOR_WAIT, COORDINATOR_WAIT, { "d", "r", "d", "d", "r", "p" } },
	{ COORDINATOR_WAIT, COORDINATOR_POSTSTOP, { "d", "d", "d", "d", "d", "p" } },
	{ COORDINATOR_POSTSTOP, COORDINATOR_POSTSTOP, { "d", "d", "d", "d", "d", "r" } },
	/* Stages without tasks are skipped. */
	{ COORDINATOR_INIT, COORDINATOR_MAIN, { "-", "-", "p", "-", "-", "-" } },
	{ COORDINATOR_INIT, COORDINATOR_MAIN, { "-", "-", "p", "p", "p", "p" } },
	{ COORDINATOR_MAIN, COORDINATOR_WAIT, { "-", "-", "r", "-", "-", "-" } },
	{ COORDINATOR_MAIN, COORDINATOR_WAIT, { "-", "-", "r", "-", "p", "p" } },
	/* A main task that has ended does not delay poststart; one that restarts does not lead
	 * back. */
	{ COORDINATOR_MAIN, COORDINATOR_POSTSTART, { "-", "-", "rd", "p", "-", "-" } },
	{ COORDINATOR_POSTSTART, COORDINATOR_POSTSTART, { "-", "-", "p", "r", "-", "-" } },
	{ COORDINATOR_WAIT, COORDINATOR_WAIT, { "d", "p", "p", "d", "p", "p" } },
	/* A failed task does not open the next stage. */
	{ COORDINATOR_PRESTART, COORDINATOR_PRESTART, { "f", "r", "p", "-", "-", "p" } },
	{ COORDINATOR_PRESTART, COORDINATOR_PRESTART, { "df", "-", "p", "-", "-", "-" } },
	{ COORDINATOR_PRESTART, COORDINATOR_PRESTART, { "d", "d", "p", "-", "-", "-" } },
	{ COORDINATOR_POSTSTART, COORDINATOR_POSTSTART, { "-", "-", "r", "f", "r", "p" } },
	/* From every state to poststop when all other tasks are dead. */
	{ COORDINATOR_INIT, COORDINATOR_POSTSTOP, { "d", "d", "d", "d", "d", "p" } },
	{ COORDINATOR_PRESTART, COORDINATOR_POSTSTOP, { "f", "d", "d", "d", "d", "p" } },
	{ COORDINATOR_MAIN, COORDINATOR_POSTSTOP, { "d", "d", "f", "d", "d", "p" } },
	{ COORDINATOR_POSTSTART, COORDINATOR_POSTSTOP, { "d", "d", "d", "f", "d", "p" } },
	{ COORDINATOR_WAIT, COORDINATOR_POSTSTOP, { "-", "-", "d", "-", "-", "-" } },
	/* Restarted: it waits until all tasks are back. */
	{ COORDINATOR_INIT, COORDINATOR_INIT, { "p", "r", "p", "p", "p", "p" } },
	{ COORDINATOR_INIT, COORDINATOR_INIT, { "d", "p", "p", "p", "p", "p" } },
	/* Restored in the middle: it advances as far as the tasks have come. */
	{ COORDINATOR_PRESTART, COORDINATOR_WAIT, { "d", "r", "r", "d", "r", "p" } },
	{ COORDINATOR_PRESTART, COORDINATOR_POSTSTART, { "d", "r", "r", "r", "p", "p" } },
	{ COORDINATOR_PRESTART, COORDINATOR_POSTSTOP, { "d", "d", "d", "d", "d", "r" } },
};

START_TEST(transitions)
{
	struct stage_count stages[STAGES];

	count(cases[_i].tasks, stages);
	ck_assert_int_eq(coordinator_next(cases[_i].from, stages), cases[_i].to);
}
END_TEST

/* By state: a letter for each open gate, in the order of the stages. */
static const char *const gates[COORDINATOR_STATES] = {
	[COORDINATOR_INIT] = "......",
	[COORDINATOR_PRESTART] = "oo....",
	[COORDINATOR_MAIN] = ".oo...",
	[COORDINATOR_POSTSTART] = ".oooo.",
	[COORDINATOR_WAIT] = ".oo.o.",
	[COORDINATOR_POSTSTOP] = ".....o",
};

START_TEST(gates_of_each_state)
{
	char open[STAGES + 1] = "";

	for (unsigned i = 0; i < STAGES; i++)
		open[i] =
		    coordinator_opens((enum coordinator_state)_i, (enum task_stage)i) ? 'o' : '.';
	ck_assert_str_eq(open, gates[_i]);
}
END_TEST

START_TEST(stages_of_tasks)
{
	static const struct {
		struct lifecycle lifecycle;
		enum task_stage stage;
	} hooks[] = {
		{ { HOOK_NONE, false }, STAGE_MAIN },
		{ { HOOK_PRESTART, false }, STAGE_PRESTART },
		{ { HOOK_PRESTART, true }, STAGE_PRESTART_SIDECAR },
		{ { HOOK_POSTSTART, false }, STAGE_POSTSTART },
		{ { HOOK_POSTSTART, true }, STAGE_POSTSTART_SIDECAR },
		{ { HOOK_POSTSTOP, false }, STAGE_POSTSTOP },
	};
	struct task task = { 0 };

	ck_assert_int_eq(task_stage(&task), STAGE_MAIN);
	for (unsigned i = 0; i < ELEMENTSOF(hooks); i++) {
		struct lifecycle l = hooks[i].lifecycle;

		task.lifecycle = &l;
		ck_assert_int_eq(task_stage(&task), hooks[i].stage);
	}
}
END_TEST

/* No combination of task states leads back to an earlier state. */
START_TEST(never_backwards)
{
	static const char *const each[] = { "-", "p", "r", "d", "f" };
	struct stage_count stages[STAGES];

	for (unsigned n = 0; n < 5 * 5 * 5 * 5 * 5 * 5; n++) {
		const char *tasks[STAGES];

		for (unsigned i = 0, rest = n; i < STAGES; i++, rest /= 5)
			tasks[i] = each[rest % 5];
		count(tasks, stages);
		ck_assert_int_ge(coordinator_next((enum coordinator_state)_i, stages), _i);
	}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_loop_test(tc, transitions, 0, ELEMENTSOF(cases));
	tcase_add_loop_test(tc, gates_of_each_state, 0, COORDINATOR_STATES);
	tcase_add_test(tc, stages_of_tasks);
	tcase_add_loop_test(tc, never_backwards, 0, COORDINATOR_STATES);
}

int
main(void)
{
	return unit_run("coordinator", add);
}
