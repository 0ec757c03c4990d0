// SPDX-License-Identifier: Apache-2.0
/*
 * hook_lease.c: an alloc with stop_after_client_disconnect starts only while its lease is valid.
 * Before the first answered heartbeat since boot it waits for one. An alloc that was restored after
 * its lease had passed does not run. Runs in: supervisor.
 */
#include <errno.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/list.h"
#include "model/task_event.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/alloc_status.h"
#include "supervisor/core/changed.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/driver/lease_page.h"
#include "supervisor/driver/run.h"
#include "supervisor/source/source.h"

struct lease {
	struct alloc_runner *ar;
	struct changed_watch beats; /* watches while the alloc waits for a heartbeat */
	struct sup_timer deadline;  /* the end of the lease during that wait */
	bool passed;                /* it had passed when the alloc was restored */
};

static void check_lease(struct alloc_runner *ar);

static struct lease *
state_of(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_lease);
}

static void
end_waits(struct alloc_runner *ar)
{
	struct lease *l = state_of(ar);

	changed_unwatch(ar->sup, &l->beats);
	sup_timer_cancel(&l->deadline);
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

static void
on_deadline(void *arg)
{
	check_again(arg);
}

/* deadline_ns: the end of the lease by CLOCK_BOOTTIME; 0: there is none. */
static void
wait_for_beat(struct alloc_runner *ar, uint64_t deadline_ns)
{
	struct lease *l = state_of(ar);

	changed_watch(ar->sup, CHANGED_LEASE, &l->beats);
	if (deadline_ns != 0)
		sup_timer_set_at(
		    ar->sup, &l->deadline, CLOCK_BOOTTIME, deadline_ns / 1000 + 1, on_deadline, ar);
}

/* A task has a run that may be alive. Then its executor watches the lease. */
static bool
is_followed(const struct alloc_runner *ar)
{
	for (unsigned i = 0; i < ar->n_tasks; i++)
		if (ar->tasks[i].run && !run_is_of_other_boot(ar->tasks[i].run))
			return true;
	return false;
}

/* Writes the sentence for an alloc that does not run because its lease has passed. */
static void
write_passed(const struct alloc_runner *ar, char *buf, size_t size)
{
	char limit[DURATION_SIZE];

	duration_format((int64_t)group_stop_after_ms(ar->sa->group) * 1000000, limit);
	(void)snprintf(buf, size,
	    "stop_after_client_disconnect of %s has passed without an answered heartbeat; the task "
	    "is not started",
	    limit);
}

static void
end_unstarted(struct alloc_runner *ar)
{
	struct err e = { 0 };

	if (alloc_fails_by_lease(ar)) {
		write_passed(ar, e.msg, sizeof e.msg);
		alloc_hook_done(ar, -ETIME, &e);
		return;
	}
	ar->stop_reason = ALLOC_LEASE_PASSED;
	ar->starts_nothing = true;
	alloc_stop_soon(ar);
	alloc_hook_done(ar, 0, NULL);
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
		/* If the lease has passed, the task is not started again after this run. */
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
		end_unstarted(ar);
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

/* The executor checks the lease itself: a task that it lets run proves that the lease is valid. */
static void
on_reported(struct task_runner *tr, const struct exe_hello *hello)
{
	if (hello->state == EXE_RUNNING)
		state_of(tr->ar)->passed = false;
}

/* The lease passed while no agent ran: a task that ran then is not started again. */
static bool
bars_restart(struct task_runner *tr, struct task_event *ev)
{
	char text[400];

	if (!state_of(tr->ar)->passed)
		return false;
	write_passed(tr->ar, text, sizeof text);
	task_event_make(ev, EVENT_NOT_RESTARTING, clock_real_ns(), text);
	if (alloc_fails_by_lease(tr->ar))
		task_event_set_fails(ev);
	task_event_detail(ev, EVENT_DETAIL_LEASE, "passed");
	return true;
}

static void
init_lease(struct alloc_runner *ar, const struct alloc_record *kept)
{
	*state_of(ar) = (struct lease){ .ar = ar, .beats.fn = on_beat };
}

ALLOC_HOOK(lease, "heartbeat_stop", sizeof(struct lease), .init = init_lease, .shutdown = end_waits,
    .prerun = check_lease, .stop = stop_waiting, .task.reported = on_reported,
    .task.bars_restart = bars_restart);
