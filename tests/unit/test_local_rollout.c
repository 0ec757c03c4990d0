// SPDX-License-Identifier: Apache-2.0
/* test_local_rollout.c: the progress of a deployment by its allocs, and what it permits next. */
#include "supervisor/server/deploy/local_rollout.h"
#include "supervisor/server/place/local_facts.h"
#include "tests/unit/local_server.h"

#define COUNT 3

static struct job job;

static struct local_job *
j(void)
{
	return find_job("j");
}

static struct deployment *
deployment(void)
{
	return &local_deployment_newest(j())->d;
}

static struct deployment_group *
deployed_group(void)
{
	return map_get(deployment_group, &deployment()->groups, "g");
}

static void
register_version(const char *user, int64_t canaries, int64_t attempts)
{
	struct task_group *g = fill_version(&job, user, COUNT, 2, canaries);

	g->update->progress_deadline = 600 * 1000000000LL;
	g->reschedule_policy = reschedule_policy_new();
	g->reschedule_policy->attempts = attempts;
	g->reschedule_policy->interval = 3600 * 1000000000LL;
	g->reschedule_policy->delay = 30 * 1000000000LL;
	register_job(&job);
}

/* The first version runs and is healthy; the second one has begun. */
static void
begin_second(int64_t canaries)
{
	begin_server(2000);
	register_version("a", 0, 1);
	for (size_t i = 0; i < COUNT; i++)
		set_health(alloc_at("j", i), OPT_TRUE);
	local_deployment_finish(
	    &local, local_deployment_active(j()), DEPLOYMENT_SUCCESSFUL, "done");
	register_version("b", canaries, 1);
}

static struct local_progress
progress(void)
{
	struct local_progress p;

	local_rollout_count(local_deployment_newest(j()), "g", deployed_group(), &p);
	return p;
}

static int64_t
budget(void)
{
	return local_rollout_budget(j(), local_group_find(j(), "g"));
}

static enum local_gate
gate(void)
{
	return local_rollout_gate(j(), local_job_wanted(j()), "g");
}

START_TEST(the_gate_of_the_wanted_version)
{
	begin_second(0);
	ck_assert_int_eq(gate(), LOCAL_GATE_ROLLING);
	ck_assert_int_eq(local_rollout_gate(j(), local_job_wanted(j()), "x"), LOCAL_GATE_OPEN);
	deployment()->status = DEPLOYMENT_PAUSED;
	ck_assert_int_eq(gate(), LOCAL_GATE_WAITING);
	deployment()->status = DEPLOYMENT_FAILED;
	ck_assert_int_eq(gate(), LOCAL_GATE_SHUT);
	ck_assert_int_eq(budget(), 0);
	deployment()->status = DEPLOYMENT_SUCCESSFUL;
	ck_assert_int_eq(gate(), LOCAL_GATE_OPEN);
	/* The deployment of another version permits everything. */
	deployment()->status = DEPLOYMENT_FAILED;
	deployment()->job_version--;
	ck_assert_int_eq(gate(), LOCAL_GATE_OPEN);
	ck_assert_int_eq(budget(), INT64_MAX);
	end_server();
}
END_TEST

START_TEST(slots_are_counted_by_their_allocs)
{
	struct local_progress p;

	begin_second(0);
	/* Two old allocs are being replaced, the third has to wait. */
	p = progress();
	ck_assert_int_eq(p.turning, 2);
	ck_assert_int_eq(p.done, 0);
	ck_assert_int_eq(budget(), 0);
	end_alloc(alloc_at("j", 0), CLIENT_COMPLETE);
	end_alloc(alloc_at("j", 1), CLIENT_COMPLETE);
	ck_assert_int_eq(progress().turning, 2);
	set_health(alloc_at("j", 0), OPT_TRUE);
	p = progress();
	ck_assert_int_eq(p.turning, 1);
	ck_assert_int_eq(p.done, 1);
	ck_assert_int_eq(p.last_healthy_ns, alloc_at("j", 0)->deployment_status->timestamp);
	ck_assert_int_eq(budget(), 1);
	/* An unhealthy alloc stops the replacement of others. */
	set_health(alloc_at("j", 1), OPT_FALSE);
	p = progress();
	ck_assert(p.unhealthy);
	ck_assert(p.hopeless);
	ck_assert_int_eq(budget(), 0);
	/* A failed task may be restarted or rescheduled, so there is still hope. */
	map_put(task_state, &alloc_at("j", 1)->task_states, "t")->failed = true;
	p = progress();
	ck_assert(!p.hopeless);
	ck_assert_int_eq(p.turning, 1);
	end_server();
}
END_TEST

/* The first slot has its alloc of the second version. */
static struct alloc *
begin_with_new(void)
{
	begin_second(0);
	end_alloc(alloc_at("j", 0), CLIENT_COMPLETE);
	return alloc_at("j", 0);
}

/* An alloc that ended is hopeless only if its policy does not replace it. */
START_TEST(an_ended_alloc_and_its_policy)
{
	struct alloc *first = begin_with_new();

	end_alloc(first, CLIENT_FAILED);
	ck_assert(!progress().hopeless);
	ck_assert_int_eq(progress().turning, 2);
	find_alloc(first)->sa->group = &(struct task_group){ 0 };
	ck_assert(progress().hopeless);
	first->client_status = CLIENT_LOST;
	ck_assert(!progress().hopeless);
	end_server();
}
END_TEST

/* Without a progress_deadline an unhealthy alloc fails the deployment even if it was replaced. */
START_TEST(without_a_deadline_unhealthy_is_hopeless)
{
	struct alloc *first = begin_with_new();

	set_health(first, OPT_FALSE);
	first->desired_status = DESIRED_STOP;
	end_alloc(first, CLIENT_COMPLETE);
	ck_assert_ptr_ne(alloc_at("j", 0), first);
	ck_assert(!progress().hopeless);
	deployed_group()->progress_deadline = 0;
	ck_assert(progress().hopeless);
	end_server();
}
END_TEST

START_TEST(canaries)
{
	struct local_group *g;
	struct local_slot *slot;

	begin_second(1);
	g = local_group_find(j(), "g");
	ck_assert(local_rollout_has_canaries(deployed_group()));
	ck_assert_int_eq(gate(), LOCAL_GATE_WAITING);
	ck_assert_int_eq(budget(), 0);
	ck_assert_uint_eq(g->n_canaries, 1);
	slot = g->canaries[0];
	ck_assert(local_rollout_wants_canary(slot));
	ck_assert_int_eq(progress().turning, 1);
	set_health(&slot->current->sa->a, OPT_TRUE);
	ck_assert_int_eq(progress().canaries, 1);
	ck_assert_int_eq(progress().turning, 0);
	/* A paused deployment keeps its canaries, but places no new ones. */
	deployment()->status = DEPLOYMENT_PAUSED;
	ck_assert(local_rollout_wants_canary(slot));
	slot->current = NULL;
	ck_assert(!local_rollout_wants_canary(slot));
	deployment()->status = DEPLOYMENT_RUNNING;
	ck_assert(local_rollout_wants_canary(slot));
	deployed_group()->promoted = true;
	ck_assert(!local_rollout_wants_canary(slot));
	ck_assert_int_eq(gate(), LOCAL_GATE_ROLLING);
	end_server();
}
END_TEST

static uint64_t
next_version(const struct local_slot *slot)
{
	return local_facts_next_version(slot)->job.version;
}

/* Of which version a slot's next alloc is: a failed or waiting deployment keeps the old one. */
START_TEST(the_version_of_the_next_alloc)
{
	struct local_slot *replaced, *held;
	struct local_slot_facts f;

	begin_second(0);
	replaced = local_group_find(j(), "g")->slots[0];
	held = local_group_find(j(), "g")->slots[2];
	ck_assert_uint_eq(next_version(replaced), 1);
	ck_assert_uint_eq(next_version(held), 0);
	f = local_facts_get(held, local_job_wanted(j()), false);
	ck_assert(f.held && f.outdated == LOCAL_CURRENT);
	/* An alloc that ends anyway need not wait. */
	held->current->sa->a.client_status = CLIENT_LOST;
	ck_assert_uint_eq(next_version(held), 1);
	deployment()->status = DEPLOYMENT_FAILED;
	ck_assert_uint_eq(next_version(held), 0);
	deployment()->status = DEPLOYMENT_SUCCESSFUL;
	ck_assert_uint_eq(next_version(held), 1);
	f = local_facts_get(held, local_job_wanted(j()), false);
	ck_assert(!f.held && f.outdated == LOCAL_UPDATE_REPLACE && f.lease_ended);
	end_server();
}
END_TEST

/* Which slots are wanted: new slots stay empty while the deployment waits. */
START_TEST(the_slots_that_are_wanted)
{
	struct local_slot *slot, *beyond;

	begin_second(0);
	slot = local_group_find(j(), "g")->slots[2];
	beyond = local_slot_get(j(), "g", COUNT);
	ck_assert(local_facts_get(slot, local_job_wanted(j()), false).wanted);
	ck_assert(!local_facts_get(beyond, local_job_wanted(j()), false).wanted);
	slot->current = NULL;
	ck_assert(local_facts_get(slot, local_job_wanted(j()), false).wanted);
	deployment()->status = DEPLOYMENT_PAUSED;
	ck_assert(!local_facts_get(slot, local_job_wanted(j()), false).wanted);
	deployment()->status = DEPLOYMENT_FAILED;
	ck_assert(local_facts_get(slot, local_job_wanted(j()), false).wanted);
	end_server();
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, the_gate_of_the_wanted_version);
	tcase_add_test(tc, slots_are_counted_by_their_allocs);
	tcase_add_test(tc, an_ended_alloc_and_its_policy);
	tcase_add_test(tc, without_a_deadline_unhealthy_is_hopeless);
	tcase_add_test(tc, canaries);
	tcase_add_test(tc, the_version_of_the_next_alloc);
	tcase_add_test(tc, the_slots_that_are_wanted);
}

int
main(void)
{
	return unit_run("local_rollout", add);
}
