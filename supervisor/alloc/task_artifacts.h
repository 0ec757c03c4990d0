/* SPDX-License-Identifier: Apache-2.0 */
/* task_artifacts.h: the artifacts of a task, before its start. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_ARTIFACTS_H
#define DROVER_SUPERVISOR_ALLOC_TASK_ARTIFACTS_H

#include <stddef.h>

#include "common/err.h"

struct task_runner;

/*
 * Fetches the artifacts of the task that are not in their places yet, and calls done(): within the
 * call if there are none. r < 0: *e says which one failed, and why; -EINVAL: another try cannot
 * succeed. done() is not called once the task was told to stop.
 */
void task_artifacts_prepare(
    struct task_runner *tr, void (*done)(struct task_runner *tr, int r, const struct err *e));

/* Returns how many artifacts the task waits for. */
size_t task_artifacts_left(const struct task_runner *tr);

#endif
