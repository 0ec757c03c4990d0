/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h: reads the clocks. Runs in: every process. */
#ifndef DROVER_COMMON_CLOCK_H
#define DROVER_COMMON_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in milliseconds: for deadlines. It stops while the machine is suspended. */
uint64_t clock_ms(void);
/* CLOCK_BOOTTIME in nanoseconds: it goes on while the machine is suspended. */
uint64_t clock_boot_ns(void);
/* CLOCK_REALTIME in nanoseconds since 1970 UTC. */
int64_t clock_real_ns(void);

#endif
