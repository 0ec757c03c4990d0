// SPDX-License-Identifier: Apache-2.0
/* test_local_reschedule.c: the delay before each replacement in a series of failures. */
#include "common/duration.h"
#include "supervisor/server/job/local_reschedule.h"
#include "tests/unit/unit.h"

#define S     NS_PER_S
#define NEVER LOCAL_RESCHEDULE_NEVER

static const struct {
	const char *story;
	struct reschedule_policy p;
	int64_t ran[8];   /* s that each alloc ran before it failed */
	int64_t delay[8]; /* s; NEVER ends the series */
} rows[] = {
	{ "no attempts", { .attempts = 0, .unlimited = OPT_FALSE, .delay = 5 * S }, .ran = { 1 },
	    .delay = { NEVER } },
	{ "one attempt in a day",
	    { .attempts = 1,
		.interval = 86400 * S,
		.unlimited = OPT_FALSE,
		.delay = 5 * S,
		.delay_function = DELAY_CONSTANT },
	    .ran = { 1, 1 }, .delay = { 5, NEVER } },
	{ "two attempts in 100 s, the first of them long ago",
	    { .attempts = 2,
		.interval = 100 * S,
		.unlimited = OPT_FALSE,
		.delay = 5 * S,
		.delay_function = DELAY_CONSTANT },
	    .ran = { 1, 60, 60, 1 }, .delay = { 5, 5, 5, NEVER } },
	{ "exponential up to the greatest delay",
	    { .unlimited = OPT_TRUE,
		.delay = 30 * S,
		.max_delay = 200 * S,
		.delay_function = DELAY_EXPONENTIAL },
	    .ran = { 1, 1, 1, 1, 1 }, .delay = { 30, 60, 120, 200, 200 } },
	{ "exponential, and one that ran for long",
	    { .unlimited = OPT_TRUE,
		.delay = 30 * S,
		.max_delay = 3600 * S,
		.delay_function = DELAY_EXPONENTIAL },
	    .ran = { 1, 1, 121, 1 }, .delay = { 30, 60, 30, 60 } },
	{ "Fibonacci",
	    { .unlimited = OPT_TRUE,
		.delay = 5 * S,
		.max_delay = 3600 * S,
		.delay_function = DELAY_FIBONACCI },
	    .ran = { 1, 1, 1, 1, 1, 1 }, .delay = { 5, 5, 10, 15, 25, 40 } },
	{ "Fibonacci begins again",
	    { .unlimited = OPT_TRUE,
		.delay = 5 * S,
		.max_delay = 3600 * S,
		.delay_function = DELAY_FIBONACCI },
	    .ran = { 1, 1, 1, 100, 1, 1 }, .delay = { 5, 5, 10, 5, 5, 10 } },
	{ "constant, without end",
	    { .unlimited = OPT_TRUE, .delay = 7 * S, .delay_function = DELAY_CONSTANT },
	    .ran = { 1, 1, 1000, 1 }, .delay = { 7, 7, 7, 7 } },
};

static void
fail_at(struct alloc *a, unsigned n, int64_t at)
{
	struct task_state *s = map_put(task_state, &a->task_states, "t");

	str_setf(&a->id, "alloc%u", n);
	s->finished_at = at;
}

START_TEST(a_row_of_failures)
{
	struct alloc a, next;
	int64_t now = 1000000 * S;

	alloc_init(&a);
	for (unsigned i = 0; i < 8 && rows[_i].ran[i]; i++) {
		int64_t delay;

		now += rows[_i].ran[i] * S;
		fail_at(&a, i, now);
		delay = local_reschedule_delay(&rows[_i].p, &a);
		ck_assert_msg(delay == (rows[_i].delay[i] == NEVER ? NEVER : rows[_i].delay[i] * S),
		    "%s: failure %u: %lld s", rows[_i].story, i, (long long)(delay / S));
		if (delay == NEVER)
			break;
		now += delay;
		alloc_init(&next);
		local_reschedule_record(&rows[_i].p, &a, &next, now);
		alloc_done(&a);
		a = next;
	}
	alloc_done(&a);
}
END_TEST

START_TEST(an_unlimited_row_keeps_five)
{
	const struct reschedule_policy p = { .unlimited = OPT_TRUE,
		.delay = S,
		.max_delay = 4 * S,
		.delay_function = DELAY_EXPONENTIAL };
	struct alloc a, next;

	alloc_init(&a);
	for (unsigned i = 0; i < 20; i++) {
		fail_at(&a, i, (int64_t)i * 5 * S);
		alloc_init(&next);
		local_reschedule_record(&p, &a, &next, (int64_t)i * 5 * S);
		alloc_done(&a);
		a = next;
	}
	ck_assert_uint_eq(a.reschedule_tracker->events.n, 5);
	ck_assert_str_eq(a.reschedule_tracker->events.v[0].prev_alloc_id, "alloc15");
	ck_assert_str_eq(a.reschedule_tracker->events.v[4].prev_alloc_id, "alloc19");
	alloc_done(&a);
}
END_TEST

/* Only a failed alloc of a service or batch job is rescheduled, its delay after its end. */
START_TEST(which_allocs_are_rescheduled)
{
	struct reschedule_policy p = { .attempts = 1,
		.interval = 3600 * S,
		.delay = 7 * S,
		.delay_function = DELAY_CONSTANT };
	struct task_group group = { .reschedule_policy = &p }, none = { 0 };
	struct job_ref ref = { 0 };
	struct sup_alloc sa = { .job = &ref, .group = &group };

	alloc_init(&sa.a);
	fail_at(&sa.a, 0, 100 * S);
	for (int type = JOB_TYPE_NONE; type <= JOB_SYSBATCH; type++)
		for (int status = CLIENT_NONE; status <= CLIENT_UNKNOWN; status++) {
			bool is =
			    (type == JOB_SERVICE || type == JOB_BATCH) && status == CLIENT_FAILED;

			ref.job.type = (enum job_kind)type;
			sa.a.client_status = (enum client_status)status;
			ck_assert_int_eq(
			    local_reschedule_at(&sa), is ? 107 * S : LOCAL_RESCHEDULE_NEVER);
		}
	ref.job.type = JOB_SERVICE;
	sa.a.client_status = CLIENT_FAILED;
	p.delay = INT64_MAX;
	ck_assert_int_eq(local_reschedule_at(&sa), LOCAL_RESCHEDULE_NEVER);
	sa.group = &none;
	ck_assert_int_eq(local_reschedule_at(&sa), LOCAL_RESCHEDULE_NEVER);
	alloc_done(&sa.a);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_loop_test(tc, a_row_of_failures, 0, sizeof rows / sizeof rows[0]);
	tcase_add_test(tc, an_unlimited_row_keeps_five);
	tcase_add_test(tc, which_allocs_are_rescheduled);
}

int
main(void)
{
	return unit_run("local_reschedule", add);
}
