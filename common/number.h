/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.h: additions and multiplications that saturate instead of overflowing. Their numbers come
 * from jobs, servers and requests and may be any 64-bit value; the highest means "never" as a time
 * and "more than exists" as an amount. Runs in: supervisor, cli.
 */
#ifndef DROVER_COMMON_NUMBER_H
#define DROVER_COMMON_NUMBER_H

#include <stdint.h>

static inline int64_t
number_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b < 0 ? -INT64_MAX : INT64_MAX;
	return sum;
}

#endif
