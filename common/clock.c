// SPDX-License-Identifier: Apache-2.0
/* clock.c: the monotonic clock. Runs in: every process. */
#include "common/clock.h"

#include <time.h>

uint64_t
clock_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}
