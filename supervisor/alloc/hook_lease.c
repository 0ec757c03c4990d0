// SPDX-License-Identifier: Apache-2.0
/*
 * hook_lease.c: an alloc with stop_after_client_disconnect starts only while its lease holds (row
 * G01): one that was restored after its limit has passed does not run, and where no beat came since
 * boot the first one is waited for. Runs in: supervisor.
 */
#include <errno.h>
#include <stdio.h>
#include <systemd/sd-event.h>

#include "common/duration.h"
#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/driver/lease_page.h"

#define LOOK_USEC 100000

static void look(struct alloc_runner *ar);

static int
on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct alloc_runner *ar = userdata;

	ar->retry = sd_event_source_disable_unref(ar->retry);
	look(ar);
	return 0;
}

/* Has a task of it a run that may live on? Its executor watches the lease then. */
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
look(struct alloc_runner *ar)
{
	uint64_t limit_ms = group_stop_after_ms(ar->sa->group), now = boottime_ns();
	struct lease_page page;
	struct err e = { 0 };
	bool passed;
	int r;

	if (limit_ms == 0 || ar->stopping) {
		alloc_hook_done(ar, 0, NULL);
		return;
	}
	r = lease_page_read(ar->sup, &page, &e);
	passed = r >= 0 && lease_deadline_ns(&page, limit_ms, now) <= now;
	if (is_followed(ar)) {
		/* Whatever has become of its run: once that is over, there is no other. */
		ar->lease_passed = ar->restored && passed;
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
	if (sd_event_add_time_relative(
		ar->sup->event, &ar->retry, CLOCK_BOOTTIME, LOOK_USEC, 0, on_look, ar) < 0)
		alloc_hook_done(ar, err_set(&e, -ENOMEM, "wait for a heartbeat"), &e);
}

const struct alloc_hook alloc_hook_lease = { .name = "heartbeat_stop", .prerun = look };
