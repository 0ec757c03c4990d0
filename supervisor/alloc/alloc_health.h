/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_health.h: whether an alloc is healthy: a deployment or a drain waits for that. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_HEALTH_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_HEALTH_H

#include <stdbool.h>

struct alloc_runner;

/* Checks the health again after any change of the alloc. A decision is in its deployment_status;
 * the caller tells the source. */
void alloc_health_check(struct alloc_runner *ar);
/* An operator's decision: ends the watch; the source is told soon. */
void alloc_health_set(struct alloc_runner *ar, bool healthy);

#endif
