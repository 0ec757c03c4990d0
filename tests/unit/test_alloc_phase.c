// SPDX-License-Identifier: Apache-2.0
/* test_alloc_phase.c: the transitions of an alloc's phase, and every combination of facts in every
 * phase. */
#include "common/cleanup.h"
#include "supervisor/alloc/alloc_phase.h"
#include "tests/unit/unit.h"

static const struct {
	const char *story;
	enum alloc_phase from, to;
	struct alloc_facts f;
} cases[] = {
	{ "a new alloc begins", ALLOC_NEW, ALLOC_PRERUN, { .hooks_left = true } },
	{ "a new alloc without tasks begins too", ALLOC_NEW, ALLOC_PRERUN, { .tasks_dead = true } },
	{ "a restored alloc runs its hooks again", ALLOC_NEW, ALLOC_PRERUN, { .restored = true } },
	{ "a restored alloc has ended", ALLOC_NEW, ALLOC_POSTRUN,
	    { .restored = true, .tasks_dead = true } },
	{ "a restored alloc has run its hooks after that", ALLOC_NEW, ALLOC_DONE,
	    { .restored = true, .tasks_dead = true, .was_done = true } },
	{ "its hooks run", ALLOC_PRERUN, ALLOC_PRERUN, { .hooks_left = true } },
	{ "its hooks are done", ALLOC_PRERUN, ALLOC_RUNNING, { 0 } },
	{ "a hook failed", ALLOC_PRERUN, ALLOC_ABANDONED,
	    { .hooks_left = true, .hook_failed = true } },
	{ "the last hook failed", ALLOC_PRERUN, ALLOC_ABANDONED, { .hook_failed = true } },
	{ "it is stopped between two hooks", ALLOC_PRERUN, ALLOC_ABANDONED,
	    { .hooks_left = true, .stopping = true } },
	{ "it is stopped, and its poststop tasks need the hooks", ALLOC_PRERUN, ALLOC_PRERUN,
	    { .hooks_left = true, .stopping = true, .poststop_left = true } },
	{ "the same, and its lease is over", ALLOC_PRERUN, ALLOC_ABANDONED,
	    { .hooks_left = true,
		.stopping = true,
		.poststop_left = true,
		.starts_nothing = true } },
	{ "its tasks are dead before its hooks are done", ALLOC_PRERUN, ALLOC_PRERUN,
	    { .hooks_left = true, .tasks_dead = true } },
	{ "its tasks run", ALLOC_RUNNING, ALLOC_RUNNING, { 0 } },
	{ "its tasks are dead", ALLOC_RUNNING, ALLOC_POSTRUN, { .tasks_dead = true } },
	{ "it is stopped and its tasks are not dead yet", ALLOC_RUNNING, ALLOC_RUNNING,
	    { .stopping = true, .destroy = true } },
	{ "it is abandoned, a restored task still runs", ALLOC_ABANDONED, ALLOC_ABANDONED, { 0 } },
	{ "it is abandoned, and its tasks are dead", ALLOC_ABANDONED, ALLOC_POSTRUN,
	    { .tasks_dead = true } },
	{ "its hooks run in reverse", ALLOC_POSTRUN, ALLOC_POSTRUN,
	    { .hooks_left = true, .tasks_dead = true, .destroy = true } },
	{ "all is given back", ALLOC_POSTRUN, ALLOC_DONE, { .tasks_dead = true } },
	{ "it is kept", ALLOC_DONE, ALLOC_DONE, { .tasks_dead = true, .stopping = true } },
	{ "it is removed", ALLOC_DONE, ALLOC_DESTROYING, { .tasks_dead = true, .destroy = true } },
	{ "its directory is still there", ALLOC_DESTROYING, ALLOC_DESTROYING,
	    { .hooks_left = true, .destroy = true } },
	{ "its directory is removed", ALLOC_DESTROYING, ALLOC_GONE, { .destroy = true } },
	{ "nothing follows", ALLOC_GONE, ALLOC_GONE, { .destroy = true, .tasks_dead = true } },
};

START_TEST(the_cases)
{
	ck_assert_msg(
	    alloc_phase_next(cases[_i].from, &cases[_i].f) == cases[_i].to, "%s", cases[_i].story);
}
END_TEST

#define FACTS 9

static struct alloc_facts
unpack(unsigned bits)
{
	struct alloc_facts f;

	_Static_assert(sizeof f == FACTS * sizeof(bool), "all facts are bools");
	(void)unit_bools(&f, FACTS, bits);
	return f;
}

/* The phases that may follow each phase, as a set. */
#define SET(phase) (1U << ALLOC_##phase)
static const unsigned followers[ALLOC_PHASES] = {
	[ALLOC_NEW] = SET(PRERUN) | SET(POSTRUN) | SET(DONE),
	[ALLOC_PRERUN] = SET(PRERUN) | SET(RUNNING) | SET(ABANDONED),
	[ALLOC_RUNNING] = SET(RUNNING) | SET(POSTRUN),
	[ALLOC_ABANDONED] = SET(ABANDONED) | SET(POSTRUN),
	[ALLOC_POSTRUN] = SET(POSTRUN) | SET(DONE),
	[ALLOC_DONE] = SET(DONE) | SET(DESTROYING),
	[ALLOC_DESTROYING] = SET(DESTROYING) | SET(GONE),
	[ALLOC_GONE] = SET(GONE),
};

START_TEST(each_follower_and_no_other)
{
	unsigned found = 0;

	for (unsigned bits = 0; bits < 1U << FACTS; bits++) {
		struct alloc_facts f = unpack(bits);

		found |= 1U << alloc_phase_next((enum alloc_phase)_i, &f);
	}
	ck_assert_uint_eq(found, followers[_i]);
}
END_TEST

START_TEST(every_combination_of_facts)
{
	enum alloc_phase from = (enum alloc_phase)_i;

	for (unsigned bits = 0; bits < 1U << FACTS; bits++) {
		struct alloc_facts f = unpack(bits);
		enum alloc_phase to = alloc_phase_next(from, &f);

		if (to == from)
			continue;
		/* Postrun begins only when all tasks are dead, and an alloc is destroyed only if
		 * that was requested. */
		if (to == ALLOC_POSTRUN)
			ck_assert_msg(f.tasks_dead, "facts %#x", bits);
		if (to == ALLOC_DESTROYING)
			ck_assert_msg(f.destroy, "facts %#x", bits);
		/* All hooks of a phase have been called before it ends, unless one has failed or
		 * the alloc is stopped. */
		if (from == ALLOC_POSTRUN || from == ALLOC_DESTROYING || to == ALLOC_RUNNING)
			ck_assert_msg(!f.hooks_left, "facts %#x", bits);
		/* No task starts after a failure. */
		if (to == ALLOC_RUNNING)
			ck_assert_msg(
			    !f.hook_failed && (!f.stopping || f.poststop_left), "facts %#x", bits);
		if (to == ALLOC_ABANDONED)
			ck_assert_msg(f.hook_failed || f.stopping, "facts %#x", bits);
	}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_loop_test(tc, the_cases, 0, ELEMENTSOF(cases));
	tcase_add_loop_test(tc, each_follower_and_no_other, 0, ALLOC_PHASES);
	tcase_add_loop_test(tc, every_combination_of_facts, 0, ALLOC_PHASES);
}

int
main(void)
{
	return unit_run("alloc_phase", add);
}
