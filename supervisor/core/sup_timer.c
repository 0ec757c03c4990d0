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

static int
on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct sup_timer *t = userdata;

	t->source = sd_event_source_disable_unref(t->source);
	t->fn(t->arg);
	return 0;
}

static void
set_call(struct sup_timer *t, void (*fn)(void *arg), void *arg)
{
	sup_timer_cancel(t);
	t->fn = fn;
	t->arg = arg;
}

void
sup_timer_set(struct sup *sup, struct sup_timer *t, clockid_t clock, uint64_t after_usec,
    void (*fn)(void *arg), void *arg)
{
	set_call(t, fn, arg);
	if (sd_event_add_time_relative(sup->event, &t->source, clock, after_usec, 0, on_time, t) <
	    0)
		mem_exhausted();
}

void
sup_timer_set_at(struct sup *sup, struct sup_timer *t, clockid_t clock, uint64_t at_usec,
    void (*fn)(void *arg), void *arg)
{
	set_call(t, fn, arg);
	if (sd_event_add_time(sup->event, &t->source, clock, at_usec, 0, on_time, t) < 0)
		mem_exhausted();
}

void
sup_timer_cancel(struct sup_timer *t)
{
	t->source = sd_event_source_disable_unref(t->source);
}
