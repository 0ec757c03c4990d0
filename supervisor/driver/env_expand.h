/* SPDX-License-Identifier: Apache-2.0 */
/* env_expand.h: the variables of a task, and what ${…} means in its fields. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_DRIVER_ENV_EXPAND_H
#define DROVER_SUPERVISOR_DRIVER_ENV_EXPAND_H

#include "model/engine/field.h"
#include "supervisor/core/sup.h"

struct task_env {
	struct string_map vars; /* NAME to value */
	uint32_t *index;        /* of vars, by a hash of the name: the number behind it, 0: none */
	size_t index_size, n_indexed; /* the last of vars may not be in it */
	size_t grown;                 /* by how much all that was replaced is longer than it was */
	const struct node *node;
};

/* Sets a variable. 0 or -ENOMEM. task_env_putf() cuts a value at 4095 bytes. */
int task_env_put(struct task_env *env, const char *name, const char *value);
int task_env_putf(struct task_env *env, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Replaces in place the characters that no name of a variable has by '_'. */
void task_env_make_name(char *name);
void task_env_done(struct task_env *env);

/*
 * Replaces ${NAME}, ${attr.x}, ${meta.x}, ${node.x}. *ret is the caller's. strict (driver config):
 * ${env["NAME"]} too; an unknown name, any other expression or an unclosed ${ is -EINVAL with a
 * sentence; $${ gives ${ and %%{ gives %{. Otherwise they stay as they are.
 * -E2BIG: it comes to 128 KiB, or all that was replaced by this env has grown by 4 MiB.
 */
int task_env_expand(struct task_env *env, const char *text, bool strict, char **ret, struct err *e);

#endif
