/* SPDX-License-Identifier: Apache-2.0 */
/* task_config.h: the configuration of a task's driver, evaluated for a start. job-parser evaluates
 * one that has more than plain references in it. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_CONFIG_H
#define DROVER_SUPERVISOR_ALLOC_TASK_CONFIG_H

#include <jansson.h>

#include "common/err.h"

struct task_env;
struct task_runner;

/* Has the configuration evaluated for the next start. Calls done(tr) when task_config_get() has its
 * result, at once if job-parser is not needed; not after task_config_free() or another call of
 * this. */
void task_config_prepare(struct task_runner *tr, void (*done)(struct task_runner *tr));
/* The same for the task of a run that the last supervisor started: for sessions in it. */
void task_config_follow(struct task_runner *tr);
/* Returns 0 with the evaluated configuration, which the caller owns; -EINVAL with *e if it has an
 * error; or another -errno with *e if the same may work later. */
int task_config_get(
    const struct task_runner *tr, struct task_env *env, json_t **ret, struct err *e);
void task_config_free(struct task_runner *tr);

#endif
