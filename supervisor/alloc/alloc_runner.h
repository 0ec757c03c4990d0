/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_runner.h: the life of one alloc on this node: hooks before its tasks, the tasks, hooks
 * after them. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_RUNNER_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_RUNNER_H

#include "supervisor/alloc/alloc_state.h"
#include "supervisor/core/histogram.h"

/* Makes sa->runner. restored: the alloc ran when the last supervisor ended. */
void alloc_runner_new(struct sup *sup, struct sup_alloc *sa, bool restored);
void alloc_runner_free(struct alloc_runner *ar);
/* The source has changed the alloc or its job. */
void alloc_runner_update(struct alloc_runner *ar);
/* Stops the alloc and removes it from the node. */
void alloc_runner_destroy(struct alloc_runner *ar);
/* A run of this alloc was reaped and its row was deleted: a start may have waited for that. */
void alloc_runner_run_gone(struct sup *sup, const struct id *alloc);

/* For the metrics: how long the preruns of allocs took that succeeded. */
const struct histogram *alloc_setup_times(void);

#endif
