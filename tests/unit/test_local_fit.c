// SPDX-License-Identifier: Apache-2.0
/* test_local_fit.c: every combination of reasons why a group does not fit a node, and what is
 * noted. */
#include "supervisor/node/cores.h"
#include "supervisor/server/place/local_fit_node.h"
#include "tests/unit/unit.h"

/* One bit for each reason. */
enum {
	WRONG_DATACENTER = 1 << 0,
	WRONG_POOL = 1 << 1,
	WRONG_CONSTRAINT = 1 << 2,
	NO_DRIVER = 1 << 3,
	SICK_DRIVER = 1 << 4,
	NO_VOLUME = 1 << 5,
	READ_ONLY_VOLUME = 1 << 6,
	TOO_MANY_CORES = 1 << 7,
	TOO_MUCH_CPU = 1 << 8,
	TOO_MUCH_MEMORY = 1 << 9,
	TOO_MUCH_DISK = 1 << 10,
	ALL = 1 << 11,
};

static struct node node;
static struct job job;

static void
fill_node(void)
{
	node_init(&node);
	str_set(&node.datacenter, "dc1");
	str_set(&node.node_pool, "default");
	string_map_set(&node.attributes, "cpu.arch", "amd64");
	(void)map_put(driver_info, &node.drivers, "exec");
	(void)map_put(host_volume, &node.host_volumes, "data");
	node.node_resources.cpu.cpu_shares = 4000;
	node.node_resources.cpu.total_cpu_cores = 4;
	for (int i = 0; i < 4; i++)
		ints_add(&node.node_resources.cpu.reservable_cpu_cores, i);
	node.node_resources.memory.memory_mb = 1000;
	node.node_resources.disk.disk_mb = 1000;
}

static void
fill_job(void)
{
	struct task_group *group;
	struct constraint *c;
	struct volume_request *vr;
	struct task *task;

	job_init(&job);
	strings_add(&job.datacenters, "dc*");
	str_set(&job.node_pool, "default");
	group = list_add(task_group, &job.task_groups);
	c = list_add(constraint, &job.constraints);
	str_set(&c->l_target, "${attr.cpu.arch}");
	str_set(&c->r_target, "amd64");
	vr = map_put(volume_request, &group->volumes, "v");
	vr->type = VOLUME_HOST;
	str_set(&vr->source, "data");
	task = list_add(task, &group->tasks);
	str_set(&task->driver, "exec");
	task->resources = resources_new();
	task->resources->cpu = 100;
	task->resources->memory_mb = 100;
}

static void
set_wrong(unsigned wrong)
{
	struct driver_info *exec = map_get(driver_info, &node.drivers, "exec");
	struct host_volume *data = map_get(host_volume, &node.host_volumes, "data");
	struct volume_request *vr = &job.task_groups.v[0].volumes.v[0].value;

	str_set(&node.datacenter, wrong & WRONG_DATACENTER ? "x" : "dc1");
	str_set(&node.node_pool, wrong & WRONG_POOL ? "x" : "default");
	string_map_set(&node.attributes, "cpu.arch", wrong & WRONG_CONSTRAINT ? "arm64" : "amd64");
	exec->detected = !(wrong & NO_DRIVER);
	exec->healthy = !(wrong & SICK_DRIVER);
	str_set(&vr->source, wrong & NO_VOLUME ? "none" : "data");
	data->read_only = wrong & READ_ONLY_VOLUME;
}

static struct local_usage
get_used(unsigned wrong)
{
	return (struct local_usage){
		.cores = wrong & TOO_MANY_CORES ? 5 : 0,
		.cpu = wrong & TOO_MUCH_CPU ? 3901 : 3900,
		.memory_mb = wrong & TOO_MUCH_MEMORY ? 901 : 900,
		.disk_mb = wrong & TOO_MUCH_DISK ? 1001 : 0,
	};
}

/* The group fits if there is no reason; otherwise only the first reason is noted. */
START_TEST(one_reason_is_noted)
{
	fill_node();
	fill_job();
	for (unsigned wrong = 0; wrong < ALL; wrong++) {
		cleanup_done(alloc_metric) struct alloc_metric m;
		struct local_fit f = {
			.node = &node, .job = &job, .group = &job.task_groups.v[0], .m = &m
		};
		struct local_shortage s = { .kind = LOCAL_SHORT_OTHER };
		struct local_usage used = get_used(wrong);
		unsigned place = WRONG_DATACENTER | WRONG_POOL;
		unsigned on_node =
		    WRONG_CONSTRAINT | NO_DRIVER | SICK_DRIVER | NO_VOLUME | READ_ONLY_VOLUME;
		bool fits;

		alloc_metric_init(&m);
		set_wrong(wrong);
		fits = local_fit_datacenter(&f) && local_fit_node(&f) &&
		       local_fit_usage(&f, &used, &s);
		ck_assert_msg(fits == (wrong == 0), "%#x", wrong);
		ck_assert_msg((m.nodes_filtered == 1) == (!(wrong & place) && (wrong & on_node)),
		    "%#x", wrong);
		ck_assert_msg(m.constraint_filtered.n == (size_t)m.nodes_filtered, "%#x", wrong);
		ck_assert_msg((m.nodes_exhausted == 1) == (wrong && !(wrong & (place | on_node))),
		    "%#x", wrong);
		ck_assert_msg(m.dimension_exhausted.n == (size_t)m.nodes_exhausted, "%#x", wrong);
		ck_assert_msg(
		    (s.kind == LOCAL_SHORT_USAGE) == (m.nodes_exhausted == 1), "%#x", wrong);
	}
	job_done(&job);
	node_done(&node);
}
END_TEST

/* A shortage is what the group needs: when that much is freed, it fits. */
START_TEST(a_shortage_ends_when_so_much_is_given_back)
{
	static const struct local_usage full = { 4000, 1000, 4, 1000 };

	fill_node();
	fill_job();
	job.task_groups.v[0].tasks.v[0].resources->cores = 2;
	{
		cleanup_done(alloc_metric) struct alloc_metric m;
		struct local_fit f = {
			.node = &node, .job = &job, .group = &job.task_groups.v[0], .m = &m
		};
		struct local_shortage s;
		struct local_usage left = full;

		alloc_metric_init(&m);
		ck_assert(!local_fit_usage(&f, &full, &s));
		left.cpu -= s.usage.cpu + s.usage.cores * 1000;
		left.cores -= s.usage.cores;
		left.memory_mb -= s.usage.memory_mb;
		left.disk_mb -= s.usage.disk_mb;
		left.cpu -= left.cores * 1000;
		ck_assert(local_fit_usage(&f, &left, &s));
		left.memory_mb++;
		ck_assert(!local_fit_usage(&f, &left, &s));
	}
	job_done(&job);
	node_done(&node);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, one_reason_is_noted);
	tcase_add_test(tc, a_shortage_ends_when_so_much_is_given_back);
}

int
main(void)
{
	return unit_run("local_fit", add);
}
