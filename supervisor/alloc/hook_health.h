/* SPDX-License-Identifier: Apache-2.0 */
/* hook_health.h: an operator's decision about the health of an alloc. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_HOOK_HEALTH_H
#define DROVER_SUPERVISOR_ALLOC_HOOK_HEALTH_H

#include <stdbool.h>

struct alloc_runner;

/* Sets the alloc's health and ends the watch. The source is notified soon. */
void alloc_health_set(struct alloc_runner *ar, bool healthy);

#endif
