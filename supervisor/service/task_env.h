/* SPDX-License-Identifier: Apache-2.0 */
/* task_env.h: which variables a task has. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVICE_TASK_ENV_H
#define DROVER_SUPERVISOR_SERVICE_TASK_ENV_H

#include "supervisor/driver/env_expand.h"
#include "supervisor/table/alloc_table.h"

/* Adds to vars what a layer above this one knows of a task (its tokens). 0 or -errno. */
typedef int task_env_vars(
    const struct sup_alloc *sa, const struct task *task, struct string_map *vars);
/* Asked last for each task from now on. */
void task_env_provide(task_env_vars *vars);

/* task NULL: what is known to the group, for its services. isolated: paths as the task sees them,
 * else the host's. 0, -ENOMEM or -E2BIG. The caller ends it with task_env_done(). */
int task_env_make(struct sup *sup, const struct sup_alloc *sa, const struct task *task,
    bool isolated, struct task_env *ret);

#endif
