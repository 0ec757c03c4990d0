// SPDX-License-Identifier: Apache-2.0
/* clock_step.c: compares the date with the time since the boot. Runs in: supervisor. */
#include "supervisor/health/clock_step.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/duration.h"

#define STEP_NS    NS_PER_S             /* smaller ones are adjustments */
#define TOLD_NS    (10 * 60 * NS_PER_S) /* a step is reported for so long */
#define EARLIEST_S 1735689600           /* 2025: before the first version of drover */

void
clock_step_begin(struct clock_step *c, int64_t real_ns, int64_t boot_ns)
{
	*c = (struct clock_step){ .offset_ns = real_ns - boot_ns };
}

enum health_state
clock_step_judge(
    struct clock_step *c, int64_t real_ns, int64_t boot_ns, char *sentence, size_t size)
{
	int64_t step = real_ns - boot_ns - c->offset_ns;

	if (llabs(step) >= STEP_NS) {
		c->step_ns = step;
		c->found_at_ns = boot_ns;
		c->offset_ns += step;
	}
	if (real_ns < EARLIEST_S * NS_PER_S) {
		(void)snprintf(sentence, size,
		    "the machine's date is wrong: it is before 2025, so certificates and tokens "
		    "are not valid");
		return HEALTH_FAILED;
	}
	if (c->step_ns == 0 || boot_ns - c->found_at_ns >= TOLD_NS)
		return HEALTH_OK;
	(void)snprintf(sentence, size,
	    "the machine's clock was set %s by %lld seconds less than 10 minutes ago",
	    c->step_ns < 0 ? "back" : "forward", (long long)(llabs(c->step_ns) / NS_PER_S));
	return HEALTH_DEGRADED;
}
