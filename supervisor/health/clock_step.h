/* SPDX-License-Identifier: Apache-2.0 */
/* clock_step.h: notices that the machine's clock was set. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_HEALTH_CLOCK_STEP_H
#define DROVER_SUPERVISOR_HEALTH_CLOCK_STEP_H

#include <stddef.h>

#include "supervisor/health/component.h"

struct clock_step {
	/* CLOCK_REALTIME - CLOCK_BOOTTIME: it changes only if the clock is set, because a time
	 * service that adjusts the clock's rate adjusts that of both. */
	int64_t offset_ns;
	int64_t step_ns; /* the last change, and when it was found (CLOCK_BOOTTIME) */
	int64_t found_at_ns;
};

void clock_step_begin(struct clock_step *c, int64_t real_ns, int64_t boot_ns);
/* Returns the state of the clock at this time, with a sentence unless it is HEALTH_OK. */
enum health_state clock_step_judge(
    struct clock_step *c, int64_t real_ns, int64_t boot_ns, char *sentence, size_t size);

#endif
