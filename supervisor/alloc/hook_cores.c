// SPDX-License-Identifier: Apache-2.0
/*
 * hook_cores.c: removes the reserved cores of an alloc from the cores that all other tasks share,
 * before its first task starts, and adds them again after its last one. Runs in: supervisor.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "common/fd.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/driver/run_usage.h"
#include "supervisor/node/cores.h"
#include "supervisor/node/node_state.h"

struct cores {
	bool held; /* the alloc's reserved cores are not shared */
};

static struct cores *
state_of(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_cores);
}

static bool
wants_cores(const struct alloc_runner *ar)
{
	const struct alloc_resources *all = ar->sa->a.allocated_resources;

	for (size_t i = 0; all && i < all->tasks.n; i++)
		if (all->tasks.v[i].value.cpu.reserved_cores.n > 0)
			return true;
	return false;
}

/* Two allocs may hold the same core: servers reassign it while its last alloc is still stopping. */
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

/* A restored alloc holds its cores already, before this hook is called again. */
static bool
holds_cores(const struct alloc_runner *ar)
{
	return state_of(ar)->held || (ar->restored && ar->phase < ALLOC_POSTRUN);
}

/*
 * Sets the cores of all tasks without reserved cores: in cgroup v2 these run in two cgroups, in v1
 * in that of the executors. Group drover can write these files. A hierarchy without the cpuset
 * controller does not have them.
 */
static int
write_shared(struct sup *sup, const char *text, struct err *e)
{
	struct usage_roots roots = { 0 };
	const char *const dirs[] = { roots.v2, "exec", roots.v2, "tasks", roots.cpuset, "exec" };
	int written = 0, r = usage_roots_find("/proc/self/mounts", sup->args.cgroup, &roots);

	for (size_t i = 0; r >= 0 && i < ELEMENTSOF(dirs); i += 2) {
		char path[sizeof roots.v2 + sizeof "/exec/cpuset.cpus"];

		(void)snprintf(path, sizeof path, "%s/%s/cpuset.cpus", dirs[i], dirs[i + 1]);
		r = dirs[i][0] ? fd_write_file(AT_FDCWD, path, text) : -ENOENT;
		written += r == 0;
		r = r == -ENOENT ? 0 : r;
	}
	if (r < 0)
		return err_set(e, r, "share the cores that are not reserved");
	return written ? 0
		       : err_say(e, -ENOTSUP,
			     "cores cannot be reserved: this machine has no cpuset controller");
}

/* If all cores are reserved, the tasks without reserved cores and the agent share all of them. */
static void
share_others(struct alloc_runner *ar)
{
	const struct topology *t = node_get(ar->sup)->node_resources.processors.topology;
	char left[CORES_MAX * sizeof ",4095"] = "";
	struct core_set held = { 0 };
	struct err e = { 0 };
	size_t at = 0;
	int r;

	alloc_foreach(ar->sup, sa)
	{
		if (sa->runner && holds_cores(sa->runner))
			add_held(sa, &held);
	}
	for (int pass = 0; t && pass < 2 && at == 0; pass++)
		for (size_t i = 0; i < t->cores.n && i < CORES_MAX; i++)
			if (pass == 1 || !core_set_has(&held, t->cores.v[i].id))
				at += (size_t)snprintf(left + at, sizeof left - at,
				    at ? ",%d" : "%d", (int)t->cores.v[i].id);
	r = at > 0 ? write_shared(ar->sup, left, &e)
		   : err_say(&e, -EINVAL, "the list of this machine's cores is empty");
	alloc_hook_done(ar, r, &e);
}

static void
take_cores(struct alloc_runner *ar)
{
	struct cores *c = state_of(ar);

	c->held = wants_cores(ar);
	if (c->held)
		share_others(ar);
	else
		alloc_hook_done(ar, 0, NULL);
}

static void
give_back_cores(struct alloc_runner *ar)
{
	struct cores *c = state_of(ar);
	bool held = c->held || wants_cores(ar); /* the last supervisor may have taken them */

	c->held = false;
	if (held)
		share_others(ar);
	else
		alloc_hook_done(ar, 0, NULL);
}

ALLOC_HOOK(cores, "cpuset", sizeof(struct cores), .prerun = take_cores, .postrun = give_back_cores);
