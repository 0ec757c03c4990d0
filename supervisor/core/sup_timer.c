// SPDX-License-Identifier: Apache-2.0
/* sup_timer.c: one-shot timers of the work loop, over sd-event. Runs in: supervisor. */
#include "supervisor/core/sup_timer.h"

#include "common/cleanup.h"
#include "common/mem.h"

static int
on_nothing(sd_event_source *source, uint64_t usec, void *userdata)
{
	return 0;
}

/* sd-event opens a clock's timerfd with the clock's first timer and keeps it. */
int
sup_timers_open(struct sup *sup, struct err *e)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };

	for (size_t i = 0; i < ELEMENTSOF(clocks); i++) {
		sd_event_source *source = NULL;
		int r = sd_event_add_time(
		    sup->event, &source, clocks[i], UINT64_MAX, 0, on_nothing, NULL);

		if (r < 0)
			return err_set(e, r, "open the clocks of the work loop");
		sd_event_source_disable_unref(source);
	}
	return 0;
}

void
sup_timer_set(struct sup *sup, sd_event_source **timer, clockid_t clock, uint64_t after_usec,
    sd_event_time_handler_t fn, void *arg)
{
	*timer = sd_event_source_disable_unref(*timer);
	if (sd_event_add_time_relative(sup->event, timer, clock, after_usec, 0, fn, arg) < 0)
		mem_exhausted();
}

void
sup_timer_set_at(struct sup *sup, sd_event_source **timer, clockid_t clock, uint64_t at_usec,
    sd_event_time_handler_t fn, void *arg)
{
	*timer = sd_event_source_disable_unref(*timer);
	if (sd_event_add_time(sup->event, timer, clock, at_usec, 0, fn, arg) < 0)
		mem_exhausted();
}
