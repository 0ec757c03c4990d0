/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_identity.h: the tokens that the source signs for an alloc's tasks: asked for before the
 * tasks, kept, renewed, given to tasks that run. Runs in: supervisor.
 *
 * They are in state.db beside the alloc until its tasks are over: an alloc starts again without a
 * server after a reboot, and a restart of the agent neither asks for every token anew nor makes
 * tasks restart that want to when theirs change. The same file holds the node's own secret and the
 * default tokens, which come with the alloc, and nobody but the supervisor can read it. No token is
 * ever logged or in an answer of the API.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_IDENTITY_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_IDENTITY_H

#include <jansson.h>

#include "common/spec.h"
#include "model/task.h"
#include "supervisor/table/alloc_table.h"

struct alloc_identities;
struct alloc_runner;
struct task_runner;

/* saved: the list that alloc_identities_save() made, or NULL. *ret is NULL where no task asks for a
 * token. 0 or -ENOMEM. */
int alloc_identities_new(
    struct alloc_runner *ar, const json_t *saved, struct alloc_identities **ret);
void alloc_identities_free(struct alloc_identities *ids);
/* As a JSON list. */
void alloc_identities_save(const struct alloc_identities *ids, struct text *t);

/* hook_identity.c: those of an alloc; NULL: its tasks ask for none. */
struct alloc_identities *alloc_identities_of(const struct alloc_runner *ar);

/* NOMAD_TOKEN and NOMAD_TOKEN_name, as the job asks. 0 or -ENOMEM. */
int alloc_identities_put_env(
    const struct sup_alloc *sa, const struct task *task, struct string_map *vars);
/* The files, for a start. 0, or -EINVAL for a path that cannot be one. */
int alloc_identities_add_files(
    const struct sup_alloc *sa, const struct task *task, struct spec_writer *spec, struct err *e);
/* A start has been made of what is there now. */
void alloc_identities_start_made(struct task_runner *tr);
/* The task runs: what has been renewed since its start was made is given to it. */
void alloc_identities_task_runs(struct task_runner *tr);

#endif
