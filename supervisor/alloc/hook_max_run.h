/* SPDX-License-Identifier: Apache-2.0 */
/* hook_max_run.h: an alloc that is older than its max_run_duration. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_HOOK_MAX_RUN_H
#define DROVER_SUPERVISOR_ALLOC_HOOK_MAX_RUN_H

#include <stdbool.h>

struct alloc_runner;

/* The description of such an alloc, and the reason of its tasks' end. */
#define ALLOC_OVERDUE "allocation exceeded max_run_duration"

/* The alloc is being ended for its age. */
bool alloc_is_overdue(const struct alloc_runner *ar);

#endif
