/* SPDX-License-Identifier: Apache-2.0 */
/* task_env.h: a task's environment and what ${…} means in its fields (semantics.md 8.3, 8.4). Runs
 * in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_ENV_H
#define DROVER_SUPERVISOR_ALLOC_TASK_ENV_H

#include "model/engine/field.h"
#include "supervisor/core/sup.h"
#include "supervisor/table/alloc_table.h"

struct task_env {
	struct string_map vars; /* NAME to value */
	uint32_t *index;        /* of vars, by a hash of the name: the number behind it, 0: none */
	size_t index_size, n_indexed; /* the last of vars may not be in it */
	size_t grown;                 /* by how much all that was replaced is longer than it was */
	const struct node *node;
};

/* task NULL: what is known to the group, for its services. isolated: paths as the task sees them,
 * else the host's. 0, -ENOMEM or -E2BIG. The caller ends it with task_env_done(). */
int task_env_make(struct sup *sup, const struct sup_alloc *sa, const struct task *task,
    bool isolated, struct task_env *ret);
void task_env_done(struct task_env *env);

/*
 * Replaces ${NAME}, ${attr.x}, ${meta.x}, ${node.x}. *ret is the caller's. strict (driver config):
 * ${env["NAME"]} too; an unknown name, any other expression or an unclosed ${ is -EINVAL with a
 * sentence; $${ gives ${ and %%{ gives %{. Otherwise they stay as they are.
 * -E2BIG: it comes to 128 KiB, or all that was replaced by this env has grown by 4 MiB.
 */
int task_env_expand(struct task_env *env, const char *text, bool strict, char **ret, struct err *e);

#endif
