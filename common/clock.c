// SPDX-License-Identifier: Apache-2.0
/* clock.c: reads the clocks. Runs in: every process. */
#include "common/clock.h"

#include <time.h>

static int64_t
read_clock(clockid_t clock)
{
	struct timespec ts;

	(void)clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

uint64_t
clock_ms(void)
{
	return (uint64_t)read_clock(CLOCK_MONOTONIC) / 1000000;
}

uint64_t
clock_boot_ns(void)
{
	return (uint64_t)read_clock(CLOCK_BOOTTIME);
}

int64_t
clock_real_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}
