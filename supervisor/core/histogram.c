// SPDX-License-Identifier: Apache-2.0
/* histogram.c: counts durations. Runs in: supervisor. */
#include "supervisor/core/histogram.h"

void
histogram_add(struct histogram *h, uint64_t usec)
{
	static const uint64_t bounds[] = HISTOGRAM_BOUNDS;
	const double s = (double)usec / 1e6;
	unsigned i = 0;

	_Static_assert(sizeof bounds / sizeof bounds[0] == HISTOGRAM_BUCKETS - 1,
	    "the last bucket has no bound");
	while (i < HISTOGRAM_BUCKETS - 1 && usec > bounds[i])
		i++;
	h->buckets[i]++;
	if (h->n == 0 || usec < h->min_usec)
		h->min_usec = usec;
	if (usec > h->max_usec)
		h->max_usec = usec;
	h->n++;
	h->sum_usec += usec;
	h->sum_of_squares += s * s;
}
