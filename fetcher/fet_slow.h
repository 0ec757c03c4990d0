/* SPDX-License-Identifier: Apache-2.0 */
/* fet_slow.h: which transfers are slow. Runs in: fetcher. */
#ifndef DROVER_FETCHER_FET_SLOW_H
#define DROVER_FETCHER_FET_SLOW_H

#include <stdbool.h>
#include <stdint.h>

#define FET_SLOW_RATE (16 << 10) /* bytes a second: a server that sends less is slow */

struct fet_progress;

/* How much of an artifact had arrived at a time. */
struct fet_pace {
	uint64_t since_ms, bytes;
};

/*
 * Returns whether less than FET_SLOW_RATE has arrived since the time of *pace, at least slow_ms
 * ago; *ret_rate: bytes a second. If it is fast enough, *pace becomes what it is now, so that a
 * transfer that becomes slow is noticed. False while no server sends.
 */
bool fet_pace_is_slow(struct fet_pace *pace, const struct fet_progress *told, uint64_t now_ms,
    uint32_t slow_ms, uint64_t *ret_rate);

#endif
