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

/*
 * Sets *timer to call fn(source, usec, arg) once: after after_usec, or at at_usec of this clock. A
 * timer that *timer already holds is cancelled first. Cannot fail. Times are below 2^63. The caller
 * frees *timer with sd_event_source_disable_unref(), before or after the call. The call comes up to
 * 250 ms late, so that the loop wakes once for several timers.
 *
 * CLOCK_MONOTONIC stops while the machine is suspended, CLOCK_BOOTTIME does not, and CLOCK_REALTIME
 * follows the date.
 */
void sup_timer_set(struct sup *sup, sd_event_source **timer, clockid_t clock, uint64_t after_usec,
    sd_event_time_handler_t fn, void *arg);
void sup_timer_set_at(struct sup *sup, sd_event_source **timer, clockid_t clock, uint64_t at_usec,
    sd_event_time_handler_t fn, void *arg);

#endif
