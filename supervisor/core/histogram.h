/* SPDX-License-Identifier: Apache-2.0 */
/* histogram.h: counts durations, for the metrics. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CORE_HISTOGRAM_H
#define DROVER_SUPERVISOR_CORE_HISTOGRAM_H

#include <stdint.h>

/* The upper bounds of the buckets, in microseconds; the last bucket has none. */
#define HISTOGRAM_BOUNDS                                                                           \
	{                                                                                          \
		100, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000,  \
		    2500000, 10000000, 60000000                                                    \
	}
#define HISTOGRAM_BUCKETS 16

/* Zeros: nothing was counted. */
struct histogram {
	uint64_t buckets[HISTOGRAM_BUCKETS]; /* not cumulative */
	uint64_t n, sum_usec, min_usec, max_usec;
	double sum_of_squares; /* in s² */
};

void histogram_add(struct histogram *h, uint64_t usec);

#endif
