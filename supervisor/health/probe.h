/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h: a probe finds out whether this node can do its work, by doing a little of it. There is
 * one probe at a time, and everybody who asks meanwhile gets its result. Each check has a deadline
 * for each of its steps. A probe changes nothing but its results. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_HEALTH_PROBE_H
#define DROVER_SUPERVISOR_HEALTH_PROBE_H

#include <stdbool.h>

#include "common/id.h"
#include "common/list.h"
#include "supervisor/core/sup.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/health/component.h"

/* Reads the rows of the tasks of probes that the last supervisor has left. */
int health_new(struct sup *sup, struct err *e);
void health_free(struct sup *sup);

/* The results of the last probe, and of the present one as far as it is. */
const struct components *health_components(const struct sup *sup);
/* How many probes have ended, and how long the last one took. */
uint64_t health_probes(const struct sup *sup, uint64_t *ret_took_ms);

struct probe_waiter {
	TAILQ_ENTRY(probe_waiter) link;
	void (*done)(struct sup *sup, struct probe_waiter *w);
};
/* Calls w->done() at the end of the present probe; begins one if there is none. Never calls it
 * within this call. */
void probe_join(struct sup *sup, struct probe_waiter *w);
/* The waiter is not called any more. */
void probe_leave(struct sup *sup, struct probe_waiter *w);

/* --- for the check_*.c --- */

/* One component that is being checked. */
struct check {
	TAILQ_ENTRY(check) link;
	struct sup *sup;
	char *name; /* of the component */
	const char *step;
	uint64_t begun_ms;
	unsigned step_ms;
	struct sup_timer deadline;
	/* The deadline of a step has passed, and the check has ended. */
	void (*late)(struct check *c);
};
/* Adds the check to the present probe. late may be called only from the work loop. */
void check_begin(struct check *c, struct sup *sup, const char *name, void (*late)(struct check *));
/* Begins a step, such as "make its directory", which has ms milliseconds. */
void check_step(struct check *c, const char *step, unsigned ms);
/* Reports the result and takes the check out of the probe. The probe may end within this call.
 * Does nothing if it has ended. */
void check_end(struct check *c, enum health_state state, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Cancels it, without a result. */
void check_cancel(struct check *c);
/* Reports a result that has no steps. */
void check_report(struct sup *sup, const char *name, enum health_state state, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Reports that the component is not checked in this probe, and is as bad as it was. */
void check_keep(struct sup *sup, const char *name, enum health_state state, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Returns whether the component has no bad result of this probe. */
bool check_is_well(struct sup *sup, const char *name);

/* Each adds its checks to the present probe. */
void check_clock(struct sup *sup);
void check_file_helper(struct sup *sup);
void check_disk(struct sup *sup);
void check_state(struct sup *sup);
void check_audit(struct sup *sup);
void check_helpers(struct sup *sup);
void check_plugins(struct sup *sup);
void check_volumes(struct sup *sup);
void check_names(struct sup *sup);
void check_drivers(struct sup *sup);

/* The state that checks keep from one probe to the next. */
struct check_memory;
struct check_memory *check_memory(struct sup *sup);

#endif
