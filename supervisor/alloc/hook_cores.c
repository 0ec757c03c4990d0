// SPDX-License-Identifier: Apache-2.0
/*
 * hook_cores.c: an alloc's reserved cores leave what all others share before its first task starts,
 * and come back after its last one. Runs in: supervisor.
 */
#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/node/cores.h"
#include "supervisor/node/node_state.h"
#include "supervisor/core/sup_calls.h"

static bool
wants_cores(const struct alloc_runner *ar)
{
	const struct alloc_resources *all = ar->sa->a.allocated_resources;

	for (size_t i = 0; all && i < all->tasks.n; i++)
		if (all->tasks.v[i].value.cpu.reserved_cores.n > 0)
			return true;
	return false;
}

/* A core may be of two: servers give it anew while the alloc before is still being stopped. */
static void
add_held(const struct sup_alloc *sa, struct core_set *held)
{
	const struct alloc_resources *all = sa->a.allocated_resources;

	for (size_t i = 0; all && i < all->tasks.n; i++) {
		const struct ints *cores = &all->tasks.v[i].value.cpu.reserved_cores;

		for (size_t k = 0; k < cores->n; k++)
			if (cores->v[k] >= 0 && cores->v[k] < CORES_MAX)
				held->has[cores->v[k]] = 1;
	}
}

/* One that was restored has its cores already, whatever the hooks before this one wait for. */
static bool
holds(const struct alloc_runner *ar)
{
	return ar->holds_cores || (ar->restored && ar->phase == ALLOC_PRERUN);
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
	struct core_set held = { 0 };
	uint32_t left[CORES_MAX];

	alloc_foreach(ar->sup, sa)
	{
		if (sa->runner && holds(sa->runner))
			add_held(sa, &held);
	}
	req.cores = left;
	for (int pass = 0; t && pass < 2 && req.n_cores == 0; pass++)
		for (size_t i = 0; i < t->cores.n && i < CORES_MAX; i++)
			if (pass == 1 || !core_set_has(&held, t->cores.v[i].id))
				left[req.n_cores++] = (uint32_t)t->cores.v[i].id;
	ar->call = exec_call_cores_share(ar->sup, &req, on_shared, ar);
}

static void
take(struct alloc_runner *ar)
{
	ar->holds_cores = wants_cores(ar);
	if (ar->holds_cores)
		share(ar);
	else
		alloc_hook_done(ar, 0, NULL);
}

static void
give_back(struct alloc_runner *ar)
{
	bool held = ar->holds_cores || wants_cores(ar); /* by an agent before this one, too */

	ar->holds_cores = false;
	if (held)
		share(ar);
	else
		alloc_hook_done(ar, 0, NULL);
}

const struct alloc_hook alloc_hook_cores = {
	.name = "cpuset",
	.prerun = take,
	.postrun = give_back,
};
