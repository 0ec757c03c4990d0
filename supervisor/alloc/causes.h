/* SPDX-License-Identifier: Apache-2.0 */
/*
 * causes.h: a list of causes: short sentences about why an alloc or its tasks stopped, restarted,
 * or wait, each with its task and time. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_CAUSES_H
#define DROVER_SUPERVISOR_ALLOC_CAUSES_H

#include <stddef.h>
#include <stdint.h>

struct cause {
	int64_t time_ns;  /* CLOCK_REALTIME; 0: the present */
	const char *task; /* the job's; "": the alloc itself */
	char *text;
};

struct causes {
	struct cause *v;
	size_t n;
};

/* Adds a sentence, which ends in one full stop whatever a quoted text ends in. task outlives c. */
void causes_add(struct causes *c, int64_t time_ns, const char *task, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Sorts: the present first, then the latest; causes of the same time keep their order. */
void causes_sort(struct causes *c);
void causes_done(struct causes *c);

#endif
