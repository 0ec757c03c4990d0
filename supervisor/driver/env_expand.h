/* SPDX-License-Identifier: Apache-2.0 */
/* env_expand.h: the variables of a task, and the expressions ${…} in its fields. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_DRIVER_ENV_EXPAND_H
#define DROVER_SUPERVISOR_DRIVER_ENV_EXPAND_H

#include "model/engine/field.h"
#include "supervisor/core/sup.h"

struct task_env {
	struct string_map vars;       /* NAME to value */
	uint32_t *index;              /* hash table: a variable's position in vars + 1; 0: free */
	size_t index_size, n_indexed; /* n_indexed: the first variables, which are in the index */
	size_t grown;                 /* bytes that were added by all replacements so far */
	const struct node *node;
};

/* Sets a variable. task_env_putf() truncates a value at 4095 bytes. */
void task_env_put(struct task_env *env, const char *name, const char *value);
void task_env_putf(struct task_env *env, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool task_env_has(const struct task_env *env, const char *name);
/* Removes the variables whose names fit one of the patterns, a list of texts; NULL: none. */
void task_env_deny(struct task_env *env, const json_t *patterns);
void task_env_done(struct task_env *env);

/*
 * Replaces ${NAME}, ${attr.x}, ${meta.x} and ${node.x}; other expressions stay as they are. The
 * caller frees *ret. strict is for a driver's configuration: ${env["NAME"]} is replaced too; an
 * unknown name, another expression or an unclosed ${ is -EINVAL with *e; $${ becomes ${, and %%{
 * becomes %{. Returns 0, or -E2BIG with *e if the result has 128 KiB or if all replacements of this
 * env have added 4 MiB.
 */
int task_env_expand(struct task_env *env, const char *text, bool strict, char **ret, struct err *e);
/* Returns whether every ${…} of the text is a reference that task_env_expand(strict) can replace if
 * its name is known, and the text has no %{. Other texts are evaluated by job-parser. */
bool task_env_can_expand(const char *text);
/* Returns all names and values for job-parser, as jobspec/task_config.h has them. The caller owns
 * the result. */
json_t *task_env_values(const struct task_env *env);

#endif
