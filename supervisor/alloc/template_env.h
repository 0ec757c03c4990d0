/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template_env.h: the variables with which a task was started, as its templates with env = true
 * made them. The task's services, checks and sessions use them as long as it runs, whatever the
 * templates show meanwhile. state.db has them, encrypted, so a restarted agent knows them too. Runs
 * in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_TEMPLATE_ENV_H
#define DROVER_SUPERVISOR_ALLOC_TEMPLATE_ENV_H

#include <stdbool.h>

#include "model/engine/containers.h"

struct alloc_record;
struct task_runner;

struct template_env {
	bool known; /* false: no such template, no start yet, or state.db does not have them */
	struct string_map vars;
	char *sealed; /* vars, encrypted, as base64; NULL: they could not be */
};

/* The task is being started with these variables, which move from *vars. */
void template_env_set(
    struct template_env *env, const struct task_runner *tr, struct string_map *vars);
void template_env_forget(struct template_env *env);

void template_env_save(
    const struct template_env *env, const struct task_runner *tr, struct alloc_record *rec);
void template_env_restore(
    struct template_env *env, const struct task_runner *tr, const struct alloc_record *kept);

#endif
