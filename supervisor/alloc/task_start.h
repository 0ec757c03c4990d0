/* SPDX-License-Identifier: Apache-2.0 */
/* task_start.h: the request that starts a task, from job, node and policy. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_START_H
#define DROVER_SUPERVISOR_ALLOC_TASK_START_H

#include "common/err.h"
#include "common/spec.h"
#include "proto/ipc_records.h"

struct driver_ops;
struct run;
struct run_events;
struct task_env;
struct task_runner;

/* Begins a run, which reports to ev with tr. -EINVAL with *e: the task's configuration is wrong, so
 * another start would fail too. */
int task_start(
    struct task_runner *tr, const struct run_events *ev, struct run **ret, struct err *e);
/*
 * For a session in a running task: fills *ret as the task's own start would be now, without mounts
 * and limits; env: adds the task's environment to spec. 0 or negative with *e.
 */
int task_start_again(struct task_runner *tr, struct spec_writer *spec, bool env,
    struct exec_start *ret, struct err *e);

/* Finishes the spec of a start or a session, as spec_finish(). Returns its descriptor, or -errno
 * with *e. */
int task_start_spec(const struct task_runner *tr, struct spec_writer *spec, struct err *e);

/* Appends an event for each of these volume mounts, bits by their number, whose file system cannot
 * map the ids of the task's container. */
void task_start_tell_unmapped(struct task_runner *tr, uint32_t mounts);

/* The environment of a start of the task. Returns 0, with *ret for task_env_done(), or -errno with
 * *e. */
int task_start_env(const struct task_runner *tr, const struct driver_ops *driver,
    struct task_env *ret, struct err *e);

#endif
