/* SPDX-License-Identifier: Apache-2.0 */
/* task_start.h: one start request out of job, node and policy. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_START_H
#define DROVER_SUPERVISOR_ALLOC_TASK_START_H

#include "common/spec.h"
#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/driver/run.h"

/* Begins a run; what follows comes by ev. -EINVAL with *e: the task's configuration is wrong and
 * stays so. */
int task_start(struct sup *sup, struct alloc_runner *ar, struct task_runner *tr,
    const struct run_events *ev, struct run **ret, struct err *e);
/*
 * What a session in a task that runs asks for: the request of its start, without mounts and limits,
 * in memory that lives until the next call; with env the task's environment goes into spec. 0 or
 * negative with *e.
 */
int task_start_again(struct task_runner *tr, struct spec_writer *spec, bool env,
    struct exec_start *ret, struct err *e);

#endif
