/* SPDX-License-Identifier: Apache-2.0 */
/* sup_timer.h: one-shot timers of the work loop. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CORE_SUP_TIMER_H
#define DROVER_SUPERVISOR_CORE_SUP_TIMER_H

#include <stdint.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "common/err.h"
#include "supervisor/core/sup.h"

/* Opens the clocks, so that no timer needs a descriptor later. */
int sup_timers_open(struct sup *sup, struct err *e);

/* Zeroed: not set. Its memory must not move while it is set. */
struct sup_timer {
	sd_event_source *source; /* NULL: not set */
	void (*fn)(void *arg);
	void *arg;
};

/*
 * Lets the work loop call fn(arg) once: after after_usec, or at at_usec of this clock. During the
 * call the timer is not set, and may be set again or freed. A timer that is set already is
 * cancelled first. Cannot fail. Times are below 2^63. The call comes up to 250 ms late, so that the
 * loop wakes once for several timers.
 *
 * CLOCK_MONOTONIC stops while the machine is suspended, CLOCK_BOOTTIME does not, and CLOCK_REALTIME
 * follows the date.
 */
void sup_timer_set(struct sup *sup, struct sup_timer *t, clockid_t clock, uint64_t after_usec,
    void (*fn)(void *arg), void *arg);
void sup_timer_set_at(struct sup *sup, struct sup_timer *t, clockid_t clock, uint64_t at_usec,
    void (*fn)(void *arg), void *arg);

/* Frees what a timer holds. Does nothing if it is not set. */
void sup_timer_cancel(struct sup_timer *t);

static inline bool
sup_timer_is_set(const struct sup_timer *t)
{
	return t->source != NULL;
}

#endif
