// SPDX-License-Identifier: Apache-2.0
/* test_value_places.c: jobs share the places for blocking queries. */
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/cluster/node/value_places.h"
#include "tests/unit/unit.h"

/* The values of one job. */
struct values {
	size_t n;
	struct value_place *v;
};

static struct values
make_values(struct value_places *all, const char *job, size_t n)
{
	struct values made = { n, mem_zeroed(n, sizeof(struct value_place)) };

	for (size_t i = 0; i < n; i++)
		value_place_init(all, &made.v[i], job);
	return made;
}

static void
free_values(struct value_places *all, struct values *values)
{
	for (size_t i = 0; i < values->n; i++)
		value_place_done(all, &values->v[i]);
	free(values->v);
	*values = (struct values){ 0 };
}

static unsigned
count_taken(const struct values *values)
{
	unsigned n = 0;

	for (size_t i = 0; i < values->n; i++)
		n += values->v[i].taken;
	return n;
}

/* Each value without a place wants one. Returns how many have lost theirs. */
static unsigned
want_all(struct value_places *all, struct values *values)
{
	struct value_place *loser;
	unsigned lost = 0;

	for (size_t i = 0; i < values->n; i++) {
		if (values->v[i].taken)
			continue;
		ck_assert_int_eq(value_place_take(all, &values->v[i], &loser), values->v[i].taken);
		ck_assert(!loser || (values->v[i].taken && !loser->taken));
		ck_assert_uint_le(all->taken, all->max);
		lost += loser != NULL;
	}
	return lost;
}

START_TEST(one_job_may_have_all)
{
	struct value_places all;
	struct values only;

	value_places_init(&all, 100);
	only = make_values(&all, "default/only", 150);
	ck_assert_uint_eq(want_all(&all, &only), 0);
	ck_assert_uint_eq(count_taken(&only), 100);
	ck_assert_uint_eq(want_all(&all, &only), 0);
	free_values(&all, &only);
	ck_assert_uint_eq(all.taken, 0);
	ck_assert(LIST_EMPTY(&all.jobs));
}
END_TEST

START_TEST(a_small_job_gets_all_it_wants)
{
	struct value_places all;
	struct values large, small;

	value_places_init(&all, 100);
	large = make_values(&all, "default/large", 150);
	(void)want_all(&all, &large);
	small = make_values(&all, "default/small", 10);
	ck_assert_uint_eq(want_all(&all, &small), 10);
	ck_assert_uint_eq(want_all(&all, &large), 0);
	ck_assert_uint_eq(count_taken(&small), 10);
	ck_assert_uint_eq(count_taken(&large), 90);
	free_values(&all, &small);
	(void)want_all(&all, &large);
	ck_assert_uint_eq(count_taken(&large), 100);
	free_values(&all, &large);
}
END_TEST

START_TEST(large_jobs_share_and_nobody_loses_places_without_end)
{
	struct value_places all;
	struct values v[3];
	const char *const jobs[] = { "a/x", "b/x", "a/y" };

	value_places_init(&all, 100);
	for (unsigned i = 0; i < 3; i++) {
		v[i] = make_values(&all, jobs[i], 150);
		(void)want_all(&all, &v[i]);
	}
	for (unsigned round = 0; round < 3; round++)
		for (unsigned i = 0; i < 3; i++)
			ck_assert_uint_le(want_all(&all, &v[i]), round == 0 ? 100 : 0);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_ge(count_taken(&v[i]), 33);
	ck_assert_uint_eq(all.taken, 100);
	for (unsigned i = 0; i < 3; i++)
		free_values(&all, &v[i]);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, one_job_may_have_all);
	tcase_add_test(tc, a_small_job_gets_all_it_wants);
	tcase_add_test(tc, large_jobs_share_and_nobody_loses_places_without_end);
}

int
main(void)
{
	return unit_run("value_places", add);
}
