// SPDX-License-Identifier: Apache-2.0
/* test_local_reconcile.c: jobs are compared with their allocs on a node without an agent: what is
 * placed, stopped, replaced, rescheduled and left unplaced, and under which evaluation. */
#include "supervisor/server/place/local_reconcile.h"
#include "tests/unit/local_server.h"

static struct job job;

static void
check_counts(const char *name, size_t placed, int64_t queued)
{
	const struct local_job *j = find_job(name);
	const struct local_alloc *la;
	size_t n = 0;

	LIST_FOREACH (la, &j->allocs, of_job)
		n += la->sa->a.desired_status == DESIRED_RUN && !la->over;
	ck_assert_uint_eq(n, placed);
	ck_assert_int_eq(j->blocked != NULL, queued > 0);
	if (queued > 0)
		ck_assert_int_eq(*int_map_at(&j->blocked->ev.queued_allocations, "g"), queued);
}

START_TEST(a_job_gets_its_allocs_once)
{
	struct local_eval *ev;

	begin_server(1000);
	fill_job(&job, "j", 3);
	ev = register_job(&job);
	check_counts("j", 3, 0);
	ck_assert_uint_eq(seen.started, 3);
	ck_assert_int_eq(ev->ev.status, EVAL_COMPLETE);
	ck_assert_str_eq(alloc_at("j", 2)->name, "j.g[2]");
	ck_assert_str_eq(alloc_at("j", 2)->eval_id, ev->ev.id);
	fill_job(&job, "j", 3);
	ev = register_job(&job);
	ck_assert_uint_eq(seen.started, 3);
	ck_assert_int_eq(ev->ev.status, EVAL_COMPLETE);
	end_server();
}
END_TEST

/* A placed alloc has what its tasks asked for, and it is taken from the node until its end. */
START_TEST(an_alloc_takes_its_resources)
{
	struct resources *res;
	struct alloc_task_resources *got;
	struct alloc *a;

	begin_server(1000);
	for (int i = 0; i < 2; i++) {
		fill_job(&job, i == 0 ? "j" : "k", 1);
		res = job.task_groups.v[0].tasks.v[0].resources;
		res->cpu = 0;
		res->cores = 1;
		res->secrets_mb = 5;
		res->memory_max_mb = 300;
		register_job(&job);
	}
	a = alloc_at("j", 0);
	got = map_get(alloc_task_resources, &a->allocated_resources->tasks, "t");
	ck_assert_uint_eq(got->cpu.reserved_cores.n, 1);
	ck_assert_int_eq(got->cpu.cpu_shares, 100000);
	ck_assert_int_eq(got->memory.memory_mb, 105);
	ck_assert_int_eq(got->memory.memory_max_mb, 305);
	ck_assert_int_eq(local_usage_now(&local).memory_mb, 105);
	/* The node has one core. */
	check_counts("k", 0, 1);
	end_alloc(a, CLIENT_COMPLETE);
	ck_assert_int_eq(local_usage_now(&local).memory_mb, 0);
	local_retry_run(&local, false);
	check_counts("k", 1, 0);
	end_server();
}
END_TEST

START_TEST(a_lower_count_and_a_stop_stop_allocs)
{
	begin_server(1000);
	fill_job(&job, "j", 3);
	register_job(&job);
	fill_job(&job, "j", 1);
	register_job(&job);
	check_counts("j", 1, 0);
	ck_assert_str_eq(
	    alloc_at("j", 2)->desired_description, "alloc not needed due to job update");
	fill_job(&job, "j", 1);
	job.stop = true;
	register_job(&job);
	check_counts("j", 0, 0);
	ck_assert_str_eq(
	    alloc_at("j", 0)->desired_description, "alloc not needed: its job was stopped");
	ck_assert_uint_eq(seen.started, 3);
	end_server();
}
END_TEST

/* A slot without room is counted in a blocked evaluation with the reason; room that is released is
 * used. */
START_TEST(what_does_not_fit_waits_for_room)
{
	struct local_eval *ev, *blocked;
	struct alloc_metric *m;
	bool all;

	begin_server(250);
	fill_job(&job, "first", 1);
	register_job(&job);
	fill_job(&job, "j", 3);
	ev = register_job(&job);
	check_counts("j", 1, 2);
	blocked = find_job("j")->blocked;
	ck_assert_int_eq(ev->ev.status, EVAL_COMPLETE);
	ck_assert_str_eq(ev->ev.blocked_eval, blocked->ev.id);
	ck_assert_int_eq(blocked->ev.status, EVAL_BLOCKED);
	m = map_get(alloc_metric, &ev->ev.failed_tg_allocs, "g");
	ck_assert_ptr_nonnull(m);
	ck_assert_int_eq(m->coalesced_failures, 1);
	ck_assert_int_eq(*int_map_at(&m->dimension_exhausted, "memory"), 1);
	end_alloc(alloc_at("first", 0), CLIENT_COMPLETE);
	ck_assert(local_marks_clear_retry(&local, &all) && !all);
	local_retry_run(&local, false);
	check_counts("j", 2, 1);
	ck_assert_ptr_eq(find_job("j")->blocked, blocked);
	fill_job(&job, "j", 2);
	register_job(&job);
	check_counts("j", 2, 0);
	ck_assert_int_eq(blocked->ev.status, EVAL_COMPLETE);
	end_server();
}
END_TEST

/* A new version without a deployment stops the old alloc, and places the new one when it has ended.
 */
START_TEST(a_changed_alloc_is_replaced_after_its_end)
{
	struct local_eval *ev;
	struct alloc *old;

	begin_server(1000);
	fill_job(&job, "j", 1);
	register_job(&job);
	old = alloc_at("j", 0);
	fill_job(&job, "j", 1);
	str_set(&job.task_groups.v[0].tasks.v[0].user, "nobody");
	ev = register_job(&job);
	ck_assert_ptr_eq(alloc_at("j", 0), old);
	ck_assert_int_eq(old->desired_status, DESIRED_STOP);
	ck_assert_int_eq(ev->ev.status, EVAL_PENDING);
	ck_assert_uint_eq(ev->n_waiting, 1);
	end_alloc(old, CLIENT_COMPLETE);
	ck_assert_ptr_ne(alloc_at("j", 0), old);
	ck_assert_str_eq(alloc_at("j", 0)->previous_allocation, old->id);
	ck_assert_str_eq(old->next_allocation, alloc_at("j", 0)->id);
	ck_assert_int_eq(ev->ev.status, EVAL_COMPLETE);
	check_counts("j", 1, 0);
	end_server();
}
END_TEST

/* A change that needs no restart is made in the running alloc. */
START_TEST(an_update_in_place_keeps_the_alloc)
{
	struct alloc *a;

	begin_server(1000);
	fill_job(&job, "j", 1);
	register_job(&job);
	a = alloc_at("j", 0);
	fill_job(&job, "j", 1);
	job.priority = 7;
	register_job(&job);
	ck_assert_ptr_eq(alloc_at("j", 0), a);
	ck_assert_int_eq(a->desired_status, DESIRED_RUN);
	ck_assert_uint_eq(find_alloc(a)->sa->job->job.version, 1);
	ck_assert_uint_eq(seen.started, 1);
	ck_assert_uint_eq(seen.updated, 1);
	end_server();
}
END_TEST

static void
set_policy(int64_t attempts, int64_t delay)
{
	struct task_group *g = &job.task_groups.v[0];

	g->reschedule_policy = reschedule_policy_new();
	*g->reschedule_policy = (struct reschedule_policy){ .attempts = attempts,
		.interval = 3600 * 1000000000LL,
		.delay = delay,
		.delay_function = DELAY_CONSTANT };
}

/* A failed alloc is replaced by its policy, after the delay, until its attempts are used up. */
START_TEST(a_failed_alloc_is_rescheduled)
{
	struct local_slot *slot;
	struct alloc *first, *second;

	begin_server(1000);
	fill_job(&job, "j", 1);
	set_policy(1, 5 * 1000000000LL);
	register_job(&job);
	first = alloc_at("j", 0);
	slot = find_alloc(first)->slot;
	end_alloc(first, CLIENT_FAILED);
	ck_assert_ptr_eq(alloc_at("j", 0), first);
	ck_assert_uint_eq(seen.timers, 1);
	ck_assert_ptr_nonnull(slot->waits);
	ck_assert_str_eq(slot->waits->ev.triggered_by, "alloc-failure");
	ck_assert_int_gt(slot->waits->ev.wait_until, clock_real_ns());
	ck_assert_str_eq(first->followup_eval_id, slot->waits->ev.id);
	/* The delay is over. */
	first->task_states.v[0].value.finished_at -= 6 * 1000000000LL;
	seen.on_timer(seen.timer_arg);
	ck_assert_ptr_eq(local_marks_pop_job(&local), slot->job);
	ck_assert_ptr_eq(local_marks_pop_slot(slot->job), slot);
	local_reconcile_slot(&local, slot, NULL);
	second = alloc_at("j", 0);
	ck_assert_ptr_ne(second, first);
	ck_assert_ptr_null(slot->waits);
	ck_assert_int_eq(first->desired_transition.reschedule, OPT_TRUE);
	ck_assert_uint_eq(second->reschedule_tracker->events.n, 1);
	/* The only attempt is used up: it stays failed until an operator asks. */
	end_alloc(second, CLIENT_FAILED);
	ck_assert_ptr_eq(alloc_at("j", 0), second);
	ck_assert_uint_eq(seen.timers, 1);
	fill_job(&job, "j", 1);
	set_policy(1, 5 * 1000000000LL);
	register_job(&job);
	ck_assert_ptr_ne(alloc_at("j", 0), second);
	end_server();
}
END_TEST

/* A comparison that nobody requested does nothing for a slot that waits already. */
START_TEST(a_waiting_slot_is_left_to_its_evaluation)
{
	struct local_eval *ev;
	uint64_t index;

	begin_server(250);
	fill_job(&job, "j", 3);
	register_job(&job);
	fill_job(&job, "j", 3);
	str_set(&job.task_groups.v[0].tasks.v[0].user, "nobody");
	ev = register_job(&job);
	ck_assert_uint_eq(ev->n_waiting, 2);
	index = local.index;
	local_reconcile_job(&local, find_job("j"), NULL, false);
	ck_assert_uint_eq(local.index, index);
	ck_assert_uint_eq(ev->n_waiting, 2);
	check_counts("j", 0, 1);
	end_server();
}
END_TEST

/* At the agent's start one pending and one blocked evaluation go on, and the others are cancelled.
 */
START_TEST(open_evaluations_are_resumed)
{
	struct local_eval *evs[4];
	struct local_job *j;

	begin_server(250);
	fill_job(&job, "j", 3);
	register_job(&job);
	j = find_job("j");
	j->blocked = NULL;
	for (size_t i = 0; i < 4; i++) {
		evs[i] = local_eval_new(&local, j, "job-register");
		evs[i]->ev.status = i % 2 ? EVAL_BLOCKED : EVAL_PENDING;
	}
	*int_map_at(&evs[3]->ev.queued_allocations, "g") = 9;
	local_unplaced_forget_job(&local, j);
	local_reconcile_resume(&local, j);
	ck_assert_int_eq(evs[0]->ev.status, EVAL_CANCELLED);
	ck_assert_int_eq(evs[1]->ev.status, EVAL_CANCELLED);
	ck_assert_int_eq(evs[2]->ev.status, EVAL_COMPLETE);
	ck_assert_ptr_eq(j->blocked, evs[3]);
	check_counts("j", 2, 1);
	end_server();
}
END_TEST

static void
register_version(const char *user, int64_t count, int64_t canaries)
{
	(void)fill_version(&job, user, count, 1, canaries);
	register_job(&job);
}

/* The first version runs and is healthy; the deployment of the second one begins. */
static void
begin_rollout(int64_t count, int64_t canaries)
{
	register_version(NULL, count, canaries);
	for (int64_t i = 0; i < count; i++)
		set_health(alloc_at("j", (size_t)i), OPT_TRUE);
	local_deployment_finish(
	    &local, local_deployment_active(find_job("j")), DEPLOYMENT_SUCCESSFUL, "done");
	register_version("nobody", count, canaries);
}

/* A deployment replaces max_parallel allocs, and the next ones when those are healthy. */
START_TEST(a_deployment_replaces_a_few_at_a_time)
{
	begin_server(1000);
	begin_rollout(3, 0);
	for (size_t i = 0; i < 3; i++) {
		struct alloc *old = alloc_at("j", i);

		ck_assert_int_eq(old->desired_status, DESIRED_STOP);
		if (i < 2)
			ck_assert_int_eq(alloc_at("j", i + 1)->desired_status, DESIRED_RUN);
		end_alloc(old, CLIENT_COMPLETE);
		ck_assert_ptr_ne(alloc_at("j", i), old);
		local_reconcile_job(&local, find_job("j"), NULL, false);
		if (i < 2)
			ck_assert_int_eq(alloc_at("j", i + 1)->desired_status, DESIRED_RUN);
		set_health(alloc_at("j", i), OPT_TRUE);
		local_reconcile_job(&local, find_job("j"), NULL, false);
	}
	check_counts("j", 3, 0);
	end_server();
}
END_TEST

/* Canaries run beside the old allocs, and take their slots when they are promoted. */
START_TEST(a_canary_takes_the_slot_of_an_old_alloc)
{
	struct local_group *g;
	struct alloc *old, *canary;

	begin_server(1000);
	begin_rollout(1, 1);
	old = alloc_at("j", 0);
	g = local_group_find(find_job("j"), "g");
	ck_assert_int_eq(old->desired_status, DESIRED_RUN);
	ck_assert_uint_eq(g->n_canaries, 1);
	canary = &g->canaries[0]->current->sa->a;
	ck_assert(canary->deployment_status->canary);
	local_reconcile_promote(&local, g->slots[0], g->canaries[0]);
	ck_assert_ptr_eq(alloc_at("j", 0), canary);
	ck_assert(!canary->deployment_status->canary);
	ck_assert_int_eq(old->desired_status, DESIRED_STOP);
	ck_assert_str_eq(old->next_allocation, canary->id);
	end_server();
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, a_job_gets_its_allocs_once);
	tcase_add_test(tc, an_alloc_takes_its_resources);
	tcase_add_test(tc, a_lower_count_and_a_stop_stop_allocs);
	tcase_add_test(tc, what_does_not_fit_waits_for_room);
	tcase_add_test(tc, a_changed_alloc_is_replaced_after_its_end);
	tcase_add_test(tc, an_update_in_place_keeps_the_alloc);
	tcase_add_test(tc, a_failed_alloc_is_rescheduled);
	tcase_add_test(tc, a_waiting_slot_is_left_to_its_evaluation);
	tcase_add_test(tc, open_evaluations_are_resumed);
	tcase_add_test(tc, a_deployment_replaces_a_few_at_a_time);
	tcase_add_test(tc, a_canary_takes_the_slot_of_an_old_alloc);
}

int
main(void)
{
	return unit_run("local_reconcile", add);
}
