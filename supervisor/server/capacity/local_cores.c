// SPDX-License-Identifier: Apache-2.0
/* local_cores.c: which cores of the node are reserved by tasks. Runs in: supervisor. */
#include "supervisor/server/capacity/local_cores.h"

#include <stdlib.h>

#include "common/mem.h"
#include "supervisor/node/node_state.h"

struct local_cores {
	struct core_set used;
};

void
local_cores_init(struct local *l)
{
	l->cores = mem_new(struct local_cores);
}

void
local_cores_free(struct local *l)
{
	free(l->cores);
}

struct core_set
local_cores_used(const struct local *l)
{
	return l->cores->used;
}

int64_t
local_core_mhz(const struct node *n)
{
	const struct node_cpu *cpu = &n->node_resources.cpu;

	return cpu->total_cpu_cores > 0 ? cpu->cpu_shares / cpu->total_cpu_cores : 0;
}

void
local_cores_mark(struct local *l, const struct alloc *a, bool used)
{
	const struct alloc_resources *all = a->allocated_resources;

	for (size_t i = 0; all && i < all->tasks.n; i++) {
		const struct ints *cores = &all->tasks.v[i].value.cpu.reserved_cores;

		for (size_t k = 0; k < cores->n; k++)
			if (cores->v[k] >= 0 && cores->v[k] < CORES_MAX)
				l->cores->used.has[cores->v[k]] = used;
	}
}

bool
local_cores_fill(struct local *l, int64_t n, struct core_set *used, struct alloc_cpu *ret)
{
	const struct node *node = node_get(l->base.sup);
	const struct ints *all = &node->node_resources.cpu.reservable_cpu_cores;

	for (size_t i = 0; i < all->n && (int64_t)ret->reserved_cores.n < n; i++) {
		if (core_set_has(used, all->v[i]))
			continue;
		used->has[all->v[i]] = 1;
		ints_add(&ret->reserved_cores, all->v[i]);
	}
	ret->cpu_shares = n * local_core_mhz(node);
	return (int64_t)ret->reserved_cores.n == n;
}
