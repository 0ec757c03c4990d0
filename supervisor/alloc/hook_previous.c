// SPDX-License-Identifier: Apache-2.0
/*
 * hook_previous.c: an alloc waits until the alloc that it replaces, and those that it preempted,
 * have no running task on this node. Runs in: supervisor.
 */
#include "common/list.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/core/changed.h"

struct previous {
	struct alloc_runner *ar;
	struct changed_watch others; /* watches while the alloc waits */
};

static struct previous *
state_of(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_previous);
}

static bool
is_alive(struct sup *sup, const char *uuid)
{
	const struct sup_alloc *sa;
	struct id id;

	sa = id_from_uuid(str(uuid), &id) ? alloc_find(sup, &id) : NULL;
	return sa && sa->runner && sa->runner->phase < ALLOC_POSTRUN;
}

/* An alloc with a task that has started waits for no other alloc. */
static bool
must_wait(const struct alloc_runner *ar)
{
	const struct alloc *a = &ar->sa->a;

	if (ar->stopping || alloc_has_started(a))
		return false;
	if (is_alive(ar->sup, a->previous_allocation))
		return true;
	for (size_t i = 0; i < a->preempted_allocations.n; i++)
		if (is_alive(ar->sup, a->preempted_allocations.v[i]))
			return true;
	return false;
}

static void
wait_for_others(struct alloc_runner *ar)
{
	struct previous *p = state_of(ar);

	if (must_wait(ar)) {
		changed_watch(ar->sup, CHANGED_ALLOC_PHASE, &p->others);
		return;
	}
	changed_unwatch(ar->sup, &p->others);
	alloc_hook_done(ar, 0, NULL);
}

static void
on_phase(struct sup *sup, struct changed_watch *w)
{
	struct previous *p = container_of(w, struct previous, others);

	wait_for_others(p->ar);
}

static void
init_previous(struct alloc_runner *ar, const struct alloc_record *kept)
{
	*state_of(ar) = (struct previous){ .ar = ar, .others.fn = on_phase };
}

static void
stop_waiting(struct alloc_runner *ar)
{
	changed_unwatch(ar->sup, &state_of(ar)->others);
}

ALLOC_HOOK(previous, "await_previous_allocations", sizeof(struct previous), .init = init_previous,
    .shutdown = stop_waiting, .prerun = wait_for_others, .stop = wait_for_others);
