// SPDX-License-Identifier: Apache-2.0
/*
 * hook_cores.c: an alloc's reserved cores leave what all others share before its first task starts,
 * and come back after its last one. Runs in: supervisor.
 */
#include <errno.h>

#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/node/cores.h"
#include "supervisor/node/node_state.h"
#include "supervisor/sup_calls.h"

/* Of how many allocs a core is. Servers may give one anew while the alloc before is being stopped.
 */
static uint16_t holders[CORES_MAX];

static bool
wants_cores(const struct alloc_runner *ar)
{
	const struct alloc_resources *all = ar->sa->a.allocated_resources;

	for (size_t i = 0; all && i < all->tasks.n; i++)
		if (all->tasks.v[i].value.cpu.reserved_cores.n > 0)
			return true;
	return false;
}

static void
hold(struct alloc_runner *ar, bool on)
{
	const struct alloc_resources *all = ar->sa->a.allocated_resources;

	if (ar->holds_cores == on)
		return;
	ar->holds_cores = on;
	for (size_t i = 0; i < all->tasks.n; i++) {
		const struct ints *cores = &all->tasks.v[i].value.cpu.reserved_cores;

		for (size_t k = 0; k < cores->n; k++)
			if (cores->v[k] >= 0 && cores->v[k] < CORES_MAX)
				holders[cores->v[k]] += on ? 1 : -1;
	}
}

static void
on_shared(
    struct sup *sup, void *arg, int r, const ProtobufCMessage *rep, int fd, const struct err *e)
{
	struct alloc_runner *ar = arg;

	ar->call = 0;
	alloc_hook_done(ar, r, e);
}

/* Where every core is somebody's the agent's own executors and what asked for none share them all.
 */
static void
share(struct alloc_runner *ar)
{
	const struct topology *t = node_get(ar->sup)->node_resources.processors.topology;
	ExecCoresShareReq req = EXEC_CORES_SHARE_REQ__INIT;
	uint32_t left[CORES_MAX];

	req.cores = left;
	for (int pass = 0; t && pass < 2 && req.n_cores == 0; pass++)
		for (size_t i = 0; i < t->cores.n && i < CORES_MAX; i++)
			if (pass == 1 || holders[t->cores.v[i].id] == 0)
				left[req.n_cores++] = (uint32_t)t->cores.v[i].id;
	ar->call = exec_call_cores_share(ar->sup, &req, on_shared, ar);
}

static void
take(struct alloc_runner *ar)
{
	if (!wants_cores(ar)) {
		alloc_hook_done(ar, 0, NULL);
		return;
	}
	hold(ar, true);
	share(ar);
}

static void
give_back(struct alloc_runner *ar)
{
	if (!wants_cores(ar)) {
		alloc_hook_done(ar, 0, NULL);
		return;
	}
	hold(ar, false);
	share(ar);
}

const struct alloc_hook alloc_hook_cores = {
	.name = "cpuset",
	.prerun = take,
	.postrun = give_back,
};
