/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.h: sums of numbers that come from jobs, servers and requests, which may be any of 64 bits:
 * what is too much for them is the most that there is, as a time "never" and as an amount "more
 * than anybody has".
 */
#ifndef MODEL_NUMBER_H
#define MODEL_NUMBER_H

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
