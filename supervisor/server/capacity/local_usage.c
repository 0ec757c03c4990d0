// SPDX-License-Identifier: Apache-2.0
/* local_usage.c: how much of the node is used by allocs. Runs in: supervisor. */
#include "supervisor/server/capacity/local_usage.h"

#include <stdlib.h>

#include "common/mem.h"
#include "common/number.h"
#include "supervisor/server/capacity/local_cores.h"

struct local_used {
	struct local_usage now;
};

void
local_usage_init(struct local *l)
{
	l->used = mem_new(struct local_used);
}

void
local_usage_free(struct local *l)
{
	free(l->used);
}

struct local_usage
local_usage_now(const struct local *l)
{
	return l->used->now;
}

void
local_usage_reserve(struct local *l, const struct local_usage *usage)
{
	struct local_usage *now = &l->used->now;

	now->cpu += usage->cpu;
	now->memory_mb += usage->memory_mb;
	now->cores += usage->cores;
	now->disk_mb += usage->disk_mb;
}

void
local_usage_release(struct local *l, const struct local_usage *usage)
{
	struct local_usage *now = &l->used->now;

	now->cpu -= usage->cpu;
	now->memory_mb -= usage->memory_mb;
	now->cores -= usage->cores;
	now->disk_mb -= usage->disk_mb;
}

static void
add_demand(int64_t *sum, int64_t demand)
{
	*sum = number_add(*sum, demand > 0 ? demand : 0);
}

void
local_usage_add(struct local_usage *usage, const struct task_group *group)
{
	for (size_t i = 0; i < group->tasks.n; i++) {
		const struct resources *res = group->tasks.v[i].resources;

		if (!res)
			continue;
		add_demand(&usage->cpu, res->cpu);
		add_demand(&usage->cores, res->cores);
		add_demand(&usage->memory_mb, res->memory_mb);
		add_demand(&usage->memory_mb, res->secrets_mb);
	}
	add_demand(&usage->disk_mb, group_disk_mb(group));
}

bool
local_usage_equal(const struct local_usage *a, const struct local_usage *b)
{
	return a->cpu == b->cpu && a->cores == b->cores && a->memory_mb == b->memory_mb &&
	       a->disk_mb == b->disk_mb;
}

const char *
local_usage_exhausted(
    const struct node *node, const struct local_usage *used, const struct local_usage *more)
{
	const struct node_cpu *cpu = &node->node_resources.cpu;
	int64_t cores = number_add(used->cores, more->cores);

	if (cores > (int64_t)cpu->reservable_cpu_cores.n)
		return "cores";
	if (number_add(number_add(used->cpu, more->cpu), cores * local_core_mhz(node)) >
	    cpu->cpu_shares - node->reserved_resources.cpu.cpu_shares)
		return "cpu";
	if (number_add(used->memory_mb, more->memory_mb) >
	    node->node_resources.memory.memory_mb - node->reserved_resources.memory.memory_mb)
		return "memory";
	if (number_add(used->disk_mb, more->disk_mb) >
	    node->node_resources.disk.disk_mb - node->reserved_resources.disk.disk_mb)
		return "disk";
	return NULL;
}
