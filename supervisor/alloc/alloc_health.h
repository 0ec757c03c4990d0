/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_health.h: whether an alloc is healthy, for whoever wants to know before he goes on: a
 * deployment, a drain. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_HEALTH_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

struct alloc_runner;
struct sd_event_source;

/* In an alloc runner. */
struct alloc_health {
	struct sd_event_source *timer;
	char *deployment;    /* that it is watched for; NULL: none */
	int64_t deadline_ms; /* CLOCK_MONOTONIC; 0: nothing is watched */
	int64_t start;       /* the latest start of its tasks; 0: not all run */
	int64_t since_ms;    /* when that was seen */
};

/* Something of the alloc has changed, its deployment perhaps. What is decided is in its
 * deployment_status: who calls this tells the source. */
void alloc_health_look(struct alloc_runner *ar);
/* An operator has found it to be so: that ends the watch, and the source is told soon. */
void alloc_health_set(struct alloc_runner *ar, bool healthy);
void alloc_health_done(struct alloc_runner *ar);

#endif
