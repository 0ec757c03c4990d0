/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_why.h: why an alloc or its tasks stopped, restarted, or wait: short sentences, each with
 * its task and time. A cause that is unknown is said to be. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_WHY_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_WHY_H

#include "supervisor/table/alloc_table.h"

struct cause {
	int64_t time_ns;  /* CLOCK_REALTIME; 0: the present */
	const char *task; /* the job's; "": the alloc itself */
	char *text;
};

struct causes {
	struct cause *v;
	size_t n;
	bool failed; /* no memory: some are missing */
};

/* All causes that are known, the newest first. -errno with *e: the history cannot be read. The
 * caller ends *ret with causes_done() in either case. */
int alloc_why(struct sup *sup, struct sup_alloc *sa, struct causes *ret, struct err *e);
void causes_done(struct causes *c);

/* For task_why.c */
void causes_add(struct causes *c, int64_t time_ns, const char *task, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds the causes in the events of a task; *past has them, the oldest first. */
void task_why(const struct sup_alloc *sa, const struct task *task, const struct task_state *past,
    struct causes *c);

#endif
