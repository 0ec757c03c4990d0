// SPDX-License-Identifier: Apache-2.0
/*
 * hook_previous.c: an alloc begins once the alloc that it replaces, and those that it preempted,
 * have no task on this node any more. Runs in: supervisor.
 */
#include <errno.h>
#include <systemd/sd-event.h>

#include "supervisor/alloc/alloc_runner.h"

#define LOOK_USEC 100000

struct previous {
	struct sd_event_source *timer;
};

static struct previous *
state_of(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_previous);
}

static void
disarm(struct alloc_runner *ar)
{
	struct previous *p = state_of(ar);

	p->timer = sd_event_source_disable_unref(p->timer);
}

static bool
is_alive(struct sup *sup, const char *uuid)
{
	const struct sup_alloc *sa;
	struct id id;

	sa = id_from_uuid(str(uuid), &id) ? alloc_find(sup, &id) : NULL;
	return sa && sa->runner && sa->runner->phase < ALLOC_POSTRUN;
}

/* After its first start it waits for no other alloc. */
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

static int
on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct alloc_runner *ar = userdata;

	disarm(ar);
	alloc_hook_previous.prerun(ar);
	return 0;
}

static void
wait_for_others(struct alloc_runner *ar)
{
	struct err e = { 0 };

	if (!must_wait(ar))
		alloc_hook_done(ar, 0, NULL);
	else if (sd_event_add_time_relative(ar->sup->event, &state_of(ar)->timer, CLOCK_MONOTONIC,
		     LOOK_USEC, 0, on_look, ar) < 0)
		alloc_hook_done(ar, err_set(&e, -ENOMEM, "wait for another allocation"), &e);
}

const struct alloc_hook alloc_hook_previous = {
	.name = "await_previous_allocations",
	.state_size = sizeof(struct previous),
	.shutdown = disarm,
	.prerun = wait_for_others,
};
