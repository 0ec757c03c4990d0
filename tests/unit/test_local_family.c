// SPDX-License-Identifier: Apache-2.0
/* test_local_family.c: how long dead children of a job are kept. */
#include "supervisor/server/job/local_family.h"
#include "tests/unit/local_server.h"

static struct job job;

static struct local_eval *evals[1002];

/* Makes a child of the batch job "p" and ends its alloc at this time. */
static struct local_job *
add_dead(unsigned i, int64_t end_s)
{
	char name[32];
	struct local_alloc *la;

	(void)snprintf(name, sizeof name, "p/periodic-%u", i);
	fill_job(&job, name, 1);
	job.type = JOB_BATCH;
	str_set(&job.parent_id, "p");
	evals[i] = register_job(&job);
	la = find_alloc(alloc_at(name, 0));
	end_alloc(&la->sa->a, CLIENT_COMPLETE);
	la->sa->a.task_states.v[0].value.finished_at = end_s * 1000000000;
	local_job_wanted_ref(la->job)->job.submit_time = 0;
	return la->job;
}

/* The times are those of the ends, in any order in which the agent learns of them. */
START_TEST(the_oldest_is_purged_first)
{
	static const int64_t ends[] = { 500, 300, 400, 600 };
	struct local_job *j[4];

	begin_server(1000);
	config.job_gc_ms = 1000 * 1000;
	for (unsigned i = 0; i < 4; i++) {
		j[i] = add_dead(i, ends[i]);
		/* Only a new oldest child changes the time of the next purge. */
		ck_assert_int_eq(local_family_examine(&local, j[i]), i < 2);
		ck_assert(!local_family_examine(&local, j[i]));
	}
	ck_assert_int_eq(local_family_collect_at(&local), 300 + 1000);
	local_family_collect(&local, 300 + 999);
	ck_assert(!j[1]->purge);
	local_family_collect(&local, 400 + 1000);
	ck_assert(j[1]->purge && j[2]->purge && !j[0]->purge && !j[3]->purge);
	ck_assert_int_eq(local_family_collect_at(&local), 500 + 1000);
	end_server();
}
END_TEST

/* A child that runs again, or that is no child, is not purged. */
START_TEST(only_dead_children_are_purged)
{
	struct local_job *j, *single;

	begin_server(1000);
	j = add_dead(0, 100);
	(void)local_family_examine(&local, j);
	fill_job(&job, "single", 0);
	register_job(&job);
	single = find_job("single");
	ck_assert(!local_family_examine(&local, single));
	LIST_FIRST(&j->allocs)->over = false;
	ck_assert(!local_family_examine(&local, j));
	ck_assert_int_eq(local_family_collect_at(&local), 0);
	local_family_collect(&local, INT64_MAX);
	ck_assert(!j->purge && !single->purge);
	LIST_FIRST(&j->allocs)->over = true;
	end_server();
}
END_TEST

/* Beyond 1000 dead children the oldest ones are purged at once, but not the one that died last. */
START_TEST(too_many_dead_children)
{
	struct local_job *j[1002];

	begin_server(1000);
	config.gc_max_allocs = 2000;
	config.job_gc_ms = 1000 * 1000;
	for (unsigned i = 0; i < 1002; i++) {
		j[i] = add_dead(i, i == 1001 ? 1 : 100 + i);
		(void)local_family_examine(&local, j[i]);
	}
	for (unsigned i = 0; i < 1002; i++)
		ck_assert_msg(j[i]->purge == (i < 1), "%u", i);
	/* The server forgets the evaluations beyond 1000; their rows are written by no turn here.
	 */
	for (unsigned i = 0; i < 2; i++) {
		ck_assert(evals[i]->gone);
		turn_forget_write(&sup, &evals[i]->row);
		evals[i]->row.written(&sup, &evals[i]->row);
	}
	end_server();
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, the_oldest_is_purged_first);
	tcase_add_test(tc, only_dead_children_are_purged);
	tcase_add_test(tc, too_many_dead_children);
}

int
main(void)
{
	return unit_run("local_family", add);
}
