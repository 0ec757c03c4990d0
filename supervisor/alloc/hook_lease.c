// SPDX-License-Identifier: Apache-2.0
/*
 * hook_lease.c: an alloc with stop_after_client_disconnect starts only while its lease holds. An
 * alloc that was restored after its limit had passed does not run; before the first answered
 * heartbeat since boot it waits for that. Runs in: supervisor.
 */
#include "supervisor/alloc/hook_lease.h"

#include <errno.h>
#include <stdio.h>
#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/list.h"
#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/core/changed.h"
#include "supervisor/driver/lease_page.h"

struct lease {
	struct alloc_runner *ar;
	struct changed_watch beats;       /* while it waits for one */
	struct sd_event_source *deadline; /* of the lease, meanwhile */
	bool passed;                      /* when the alloc was restored */
};

static void check_lease(struct alloc_runner *ar);

static struct lease *
state_of(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_lease);
}

bool
alloc_lease_passed(const struct alloc_runner *ar)
{
	return state_of(ar)->passed;
}

void
alloc_lease_holds(struct alloc_runner *ar)
{
	state_of(ar)->passed = false;
}

static void
end_waits(struct alloc_runner *ar)
{
	struct lease *l = state_of(ar);

	changed_unwatch(ar->sup, &l->beats);
	l->deadline = sd_event_source_disable_unref(l->deadline);
}

static void
check_again(struct alloc_runner *ar)
{
	end_waits(ar);
	check_lease(ar);
}

static void
on_beat(struct sup *sup, struct changed_watch *w)
{
	struct lease *l = container_of(w, struct lease, beats);

	check_again(l->ar);
}

static int
on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
	check_again(userdata);
	return 0;
}

/* deadline_ns: CLOCK_BOOTTIME; 0: there is none. */
static void
wait_for_beat(struct alloc_runner *ar, uint64_t deadline_ns)
{
	struct lease *l = state_of(ar);
	struct err e = { 0 };

	changed_watch(ar->sup, CHANGED_LEASE, &l->beats);
	if (deadline_ns == 0 || sd_event_add_time(ar->sup->event, &l->deadline, CLOCK_BOOTTIME,
				    deadline_ns / 1000 + 1, 0, on_deadline, ar) >= 0)
		return;
	end_waits(ar);
	alloc_hook_done(ar, err_set(&e, -ENOMEM, "wait for a heartbeat"), &e);
}

/* A task has a run that may be alive: its executor watches the lease. */
static bool
is_followed(const struct alloc_runner *ar)
{
	for (unsigned i = 0; i < ar->n_tasks; i++)
		if (ar->tasks[i].run && !run_is_of_other_boot(ar->tasks[i].run))
			return true;
	return false;
}

void
alloc_lease_text(const struct alloc_runner *ar, char *buf, size_t size)
{
	char limit[DURATION_SIZE];

	duration_format((int64_t)group_stop_after_ms(ar->sa->group) * 1000000, limit);
	(void)snprintf(buf, size,
	    "stop_after_client_disconnect of %s has passed without an answered heartbeat; it is "
	    "not run",
	    limit);
}

static void
check_lease(struct alloc_runner *ar)
{
	uint64_t limit_ms = group_stop_after_ms(ar->sa->group), now = clock_boot_ns();
	struct lease_page page;
	struct err e = { 0 };
	uint64_t deadline;
	bool passed;
	int r;

	if (limit_ms == 0 || ar->stopping) {
		alloc_hook_done(ar, 0, NULL);
		return;
	}
	r = lease_page_read(ar->sup, &page, &e);
	deadline = r >= 0 ? lease_deadline_ns(&page, limit_ms, now) : 0;
	passed = r >= 0 && deadline <= now;
	if (is_followed(ar)) {
		/* Whatever becomes of that run: no other follows it. */
		state_of(ar)->passed = ar->restored && passed;
		alloc_hook_done(ar, 0, NULL);
		return;
	}
	if (r < 0 && r != -ENOENT) {
		alloc_hook_done(ar, e.code, &e);
		return;
	}
	if (r >= 0 && !passed && page.last_ok != 0) {
		alloc_hook_done(ar, 0, NULL);
		return;
	}
	if (r >= 0 && passed && (ar->restored || page.last_ok == 0)) {
		alloc_lease_text(ar, e.msg, sizeof e.msg);
		alloc_hook_done(ar, -ETIME, &e);
		return;
	}
	wait_for_beat(ar, passed ? 0 : deadline);
}

static void
stop_waiting(struct alloc_runner *ar)
{
	if (state_of(ar)->beats.on)
		check_again(ar);
}

static int
init(struct alloc_runner *ar, const json_t *kept)
{
	*state_of(ar) = (struct lease){ .ar = ar, .beats.fn = on_beat };
	return 0;
}

const struct alloc_hook alloc_hook_lease = {
	.name = "heartbeat_stop",
	.state_size = sizeof(struct lease),
	.init = init,
	.shutdown = end_waits,
	.prerun = check_lease,
	.stop = stop_waiting,
};
