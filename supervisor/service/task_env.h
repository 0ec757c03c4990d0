/* SPDX-License-Identifier: Apache-2.0 */
/* task_env.h: the environment variables of a task. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVICE_TASK_ENV_H
#define DROVER_SUPERVISOR_SERVICE_TASK_ENV_H

#include "supervisor/driver/env_expand.h"
#include "supervisor/table/alloc_table.h"

/* Layers above this one that add variables, in the order in which they are asked. */
enum task_env_layer {
	TASK_ENV_IDENTITY, /* the task's tokens */
	TASK_ENV_TEMPLATES,
	TASK_ENV_LAYERS
};

typedef void task_env_vars(
    const struct sup_alloc *sa, const struct task *task, struct string_map *vars);
/* vars is called last for each task from now on. */
void task_env_provide(struct sup *sup, enum task_env_layer layer, task_env_vars *vars);

/* Makes the variables of a task, or of its group (task NULL), which its services use. isolated:
 * paths are those that the task sees, else the host's. The caller ends *ret with task_env_done().
 * Returns 0, or -E2BIG, and nothing is made. */
int task_env_make(struct sup *sup, const struct sup_alloc *sa, const struct task *task,
    bool isolated, struct task_env *ret);

#endif
