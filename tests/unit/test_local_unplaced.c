// SPDX-License-Identifier: Apache-2.0
/* test_local_unplaced.c: the slots that could not be placed: by which shortage they wait, what the
 * blocked evaluation says, and which of them are tried again. */
#include "supervisor/server/place/local_unplaced.h"
#include "tests/unit/local_server.h"

static struct job job;

/* Registers a job whose allocs take this much memory. */
static struct local_job *
register_sized(const char *name, int64_t count, int64_t memory_mb)
{
	fill_job(&job, name, count);
	job.task_groups.v[0].tasks.v[0].resources->memory_mb = memory_mb;
	register_job(&job);
	return find_job(name);
}

static struct local_slot *
slot_of(const char *name, size_t index)
{
	return local_group_find(find_job(name), "g")->slots[index];
}

static size_t
count_queues(struct local_queues *queues)
{
	const struct local_queue *queue;
	size_t n = 0;

	TAILQ_FOREACH (queue, queues, entry)
		n++;
	return n;
}

static int64_t
queued(const char *name)
{
	const struct local_job *j = find_job(name);

	return j->blocked ? *int_map_at(&j->blocked->ev.queued_allocations, "g") : 0;
}

/* Tries again after the end of an alloc. */
static void
end_and_retry(const char *name)
{
	end_alloc(alloc_at(name, 0), CLIENT_COMPLETE);
	local_retry_run(&local, false);
}

START_TEST(equal_shortages_are_one)
{
	struct local_queue *queue;

	begin_server(100);
	register_sized("big", 1, 100);
	register_sized("a", 2, 60);
	register_sized("b", 1, 60);
	register_sized("c", 1, 70);
	queue = slot_of("a", 0)->queue;
	ck_assert_ptr_nonnull(queue);
	ck_assert_ptr_eq(slot_of("a", 1)->queue, queue);
	ck_assert_ptr_eq(slot_of("b", 0)->queue, queue);
	ck_assert_ptr_ne(slot_of("c", 0)->queue, queue);
	ck_assert_ptr_eq(TAILQ_FIRST(&queue->slots), slot_of("a", 0));
	ck_assert_uint_eq(count_queues(local_unplaced_capacity(&local)), 2);
	ck_assert_uint_eq(count_queues(local_unplaced_other(&local)), 0);
	ck_assert_int_eq(queued("a"), 2);
	end_server();
}
END_TEST

/* Slots that wait for a change of the node wait by group. */
START_TEST(other_shortages_wait_by_group)
{
	begin_server(1000);
	map_get(driver_info, &node.drivers, "exec")->healthy = false;
	register_sized("a", 2, 100);
	register_sized("b", 1, 100);
	ck_assert_ptr_eq(slot_of("a", 0)->queue, slot_of("a", 1)->queue);
	ck_assert_ptr_ne(slot_of("a", 0)->queue, slot_of("b", 0)->queue);
	ck_assert_uint_eq(count_queues(local_unplaced_other(&local)), 2);
	/* Capacity that is released does not help them; a change of the node does. */
	map_get(driver_info, &node.drivers, "exec")->healthy = true;
	local_retry_run(&local, false);
	ck_assert_uint_eq(seen.started, 0);
	local_retry_run(&local, true);
	ck_assert_uint_eq(seen.started, 3);
	ck_assert_uint_eq(count_queues(local_unplaced_other(&local)), 0);
	ck_assert_ptr_null(find_job("a")->blocked);
	end_server();
}
END_TEST

/* A slot is counted once, under its last reason, until it is removed. */
START_TEST(a_slot_is_counted_once)
{
	struct local_shortage memory = { .kind = LOCAL_SHORT_USAGE, .usage.memory_mb = 60 };
	struct local_shortage other = { .kind = LOCAL_SHORT_OTHER };
	struct local_slot *slot;

	begin_server(100);
	register_sized("big", 1, 100);
	register_sized("a", 1, 60);
	slot = slot_of("a", 0);
	for (int i = 0; i < 2; i++) {
		local_unplaced_add(&local, slot, &other);
		ck_assert_int_eq(queued("a"), 1);
		ck_assert_uint_eq(slot->job->n_unplaced, 1);
		ck_assert_ptr_eq(slot->queue, &slot->group->other);
		ck_assert_uint_eq(count_queues(local_unplaced_capacity(&local)), 0);
	}
	local_unplaced_add(&local, slot, &memory);
	ck_assert_uint_eq(count_queues(local_unplaced_capacity(&local)), 1);
	ck_assert_uint_eq(count_queues(local_unplaced_other(&local)), 0);
	for (int i = 0; i < 2; i++) {
		local_unplaced_remove(&local, slot);
		ck_assert_int_eq(queued("a"), 0);
		ck_assert_uint_eq(slot->job->n_unplaced, 0);
		ck_assert_ptr_null(slot->queue);
	}
	local_unplaced_unblock(&local, slot->job);
	ck_assert_ptr_null(slot->job->blocked);
	end_server();
}
END_TEST

/* The blocked evaluation goes on as a pending one while a slot waits under it. */
START_TEST(a_blocked_evaluation_ends_with_its_slots)
{
	struct local_eval *b;

	begin_server(100);
	register_sized("big", 1, 100);
	register_sized("a", 1, 60);
	b = find_job("a")->blocked;
	ck_assert_str_eq(b->ev.triggered_by, "queued-allocs");
	ck_assert_ptr_eq(local_unplaced_block(&local, find_job("a"), b), b);
	local_unplaced_unblock(&local, find_job("a"));
	ck_assert_ptr_eq(find_job("a")->blocked, b);
	b->n_waiting = 1;
	local_unplaced_remove(&local, slot_of("a", 0));
	local_unplaced_unblock(&local, find_job("a"));
	ck_assert_ptr_null(find_job("a")->blocked);
	ck_assert_int_eq(b->ev.status, EVAL_PENDING);
	end_server();
}
END_TEST

/* The same reason again is no change, although it was found at another time. */
START_TEST(a_reason_is_written_once)
{
	struct local_eval *ev;
	struct alloc_metric m, *known;

	begin_server(100);
	register_sized("a", 1, 60);
	ev = local_eval_new(&local, find_job("a"), "job-register");
	alloc_metric_init(&m);
	m.nodes_exhausted = 1;
	m.allocation_time = 5;
	ck_assert(local_unplaced_set_reason(ev, "g", &m));
	known = map_get(alloc_metric, &ev->ev.failed_tg_allocs, "g");
	known->coalesced_failures = 3;
	m.nodes_exhausted = 1;
	m.allocation_time = 9;
	ck_assert(!local_unplaced_set_reason(ev, "g", &m));
	ck_assert_int_eq(known->allocation_time, 5);
	m.nodes_filtered = 1;
	ck_assert(local_unplaced_set_reason(ev, "g", &m));
	ck_assert_int_eq(known->nodes_filtered, 1);
	ck_assert_int_eq(known->nodes_exhausted, 0);
	ck_assert_int_eq(known->coalesced_failures, 3);
	end_server();
}
END_TEST

/* Capacity that is released goes to the oldest slots with each shortage, as far as it suffices. */
START_TEST(released_capacity_is_used)
{
	begin_server(100);
	register_sized("big", 1, 100);
	register_sized("large", 2, 90);
	register_sized("small", 2, 40);
	end_and_retry("big");
	ck_assert_ptr_nonnull(alloc_at("large", 0));
	ck_assert_ptr_null(alloc_at("large", 1));
	ck_assert_ptr_null(alloc_at("small", 0));
	end_and_retry("large");
	/* Slot 0 of large is complete and stays so; slot 1 is the next that fits. */
	ck_assert_ptr_nonnull(alloc_at("large", 1));
	fill_job(&job, "large", 0);
	register_job(&job);
	end_alloc(alloc_at("large", 1), CLIENT_COMPLETE);
	local_retry_run(&local, false);
	ck_assert_ptr_nonnull(alloc_at("small", 0));
	ck_assert_ptr_nonnull(alloc_at("small", 1));
	ck_assert_uint_eq(count_queues(local_unplaced_capacity(&local)), 0);
	end_server();
}
END_TEST

/* While the node is drained nothing is tried. */
START_TEST(a_drained_node_places_nothing)
{
	begin_server(100);
	register_sized("big", 1, 100);
	register_sized("a", 1, 60);
	local_set_drain(sup.source, true);
	end_and_retry("big");
	ck_assert_ptr_null(alloc_at("a", 0));
	ck_assert_int_eq(slot_of("a", 0)->queue->shortage.kind, LOCAL_SHORT_USAGE);
	local_set_drain(sup.source, false);
	local_retry_run(&local, true);
	ck_assert_ptr_nonnull(alloc_at("a", 0));
	end_server();
}
END_TEST

/* Each alloc of a group can have its own volume, so each of its slots is tried. */
START_TEST(every_slot_with_its_own_volume_is_tried)
{
	struct volume_request *vr;

	begin_server(1000);
	fill_job(&job, "a", 3);
	vr = map_put(volume_request, &job.task_groups.v[0].volumes, "v");
	vr->type = VOLUME_HOST;
	vr->per_alloc = true;
	str_set(&vr->source, "data");
	register_job(&job);
	ck_assert_int_eq(queued("a"), 3);
	(void)map_put(host_volume, &node.host_volumes, "data[1]");
	local_retry_run(&local, true);
	ck_assert_ptr_null(alloc_at("a", 0));
	ck_assert_ptr_nonnull(alloc_at("a", 1));
	ck_assert_ptr_null(alloc_at("a", 2));
	end_server();
}
END_TEST

static void
register_with_port(const char *name)
{
	struct network_resource *net;
	struct port *port;

	fill_job(&job, name, 1);
	net = list_add(network_resource, &job.task_groups.v[0].networks);
	port = list_add(port, &net->reserved_ports);
	str_set(&port->label, "http");
	port->value = 9000;
	register_job(&job);
}

/* Slots that wait for a port are told when another alloc has it. */
START_TEST(the_reason_names_the_new_holder)
{
	struct alloc_metric *m;

	begin_server(1000);
	register_with_port("a");
	register_with_port("b");
	register_with_port("c");
	ck_assert_int_eq(slot_of("c", 0)->queue->shortage.kind, LOCAL_SHORT_PORT);
	end_and_retry("a");
	ck_assert_ptr_nonnull(alloc_at("b", 0));
	ck_assert_ptr_null(alloc_at("c", 0));
	m = map_get(alloc_metric, &find_job("c")->blocked->ev.failed_tg_allocs, "g");
	ck_assert_str_eq(m->dimension_exhausted.v[0].key,
	    "network: reserved port collision http=9000 (b.g[0] has it)");
	end_server();
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, equal_shortages_are_one);
	tcase_add_test(tc, other_shortages_wait_by_group);
	tcase_add_test(tc, a_slot_is_counted_once);
	tcase_add_test(tc, a_blocked_evaluation_ends_with_its_slots);
	tcase_add_test(tc, a_reason_is_written_once);
	tcase_add_test(tc, released_capacity_is_used);
	tcase_add_test(tc, a_drained_node_places_nothing);
	tcase_add_test(tc, every_slot_with_its_own_volume_is_tried);
	tcase_add_test(tc, the_reason_names_the_new_holder);
}

int
main(void)
{
	return unit_run("local_unplaced", add);
}
