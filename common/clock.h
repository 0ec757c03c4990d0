/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h: time that only goes forward. Runs in: every process. */
#ifndef DROVER_COMMON_CLOCK_H
#define DROVER_COMMON_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in milliseconds. */
uint64_t clock_ms(void);

#endif
