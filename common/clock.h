/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h: the monotonic clock. Runs in: every process. */
#ifndef DROVER_COMMON_CLOCK_H
#define DROVER_COMMON_CLOCK_H

#include <stdint.h>

/* Returns CLOCK_MONOTONIC in milliseconds. */
uint64_t clock_ms(void);

#endif
