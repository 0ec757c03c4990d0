/* SPDX-License-Identifier: Apache-2.0 */
/* worker_texts.h: a worker that gets two texts in a memfd and returns another. Runs in: workers of
 * job-parser and template-renderer. */
#ifndef DROVER_COMMON_WORKER_TEXTS_H
#define DROVER_COMMON_WORKER_TEXTS_H

#include "common/worker.h"

/* The two texts of a request: the second follows the first, and may be empty. */
struct worker_texts {
	const char *first, *second;
	size_t first_len, second_len;
};

/* The limits of a worker. The kernel ends a worker that needs more time, and refuses it more
 * memory; longer texts are an error of the request. */
struct worker_limits {
	size_t memory_bytes;
	unsigned cpu_seconds;
	size_t texts_bytes;
};

/* Limits the worker, and maps the memfd with texts of these lengths. Returns 0, or -errno with *e.
 */
int worker_texts_begin(
    const struct worker_limits *limits, int fd, struct worker_texts *texts, struct err *e);
/* Returns the result in a memfd. Returns 0, -EFBIG if it is larger than max, or another -errno. */
int worker_texts_end(
    const char *result, size_t len, size_t max, struct worker_result *ret, struct err *e);

#endif
