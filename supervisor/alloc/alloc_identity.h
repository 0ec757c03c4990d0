/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_identity.h: the tokens that the source signs for an alloc's tasks: asked for before the
 * tasks, kept, renewed, given to tasks that run. Runs in: supervisor.
 *
 * Tokens are in state.db beside the alloc until its tasks are over. So an alloc starts again after
 * a reboot without a server, and a restart of the agent does not renew every token, which would
 * restart tasks with that change_mode. Only the supervisor can read state.db, which has the node's
 * secret and the default tokens too. No token is ever logged or in an answer of the API.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_IDENTITY_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_IDENTITY_H

#include "common/spec.h"
#include "model/task.h"
#include "supervisor/table/alloc_table.h"

struct alloc_identities;
struct alloc_record;
struct alloc_runner;
struct task_runner;

/* kept: what alloc_identities_save() added. NULL: no task asks for a token. */
struct alloc_identities *alloc_identities_new(
    struct alloc_runner *ar, const struct alloc_record *kept);
void alloc_identities_free(struct alloc_identities *ids);
/* Adds the signed tokens. */
void alloc_identities_save(const struct alloc_identities *ids, struct alloc_record *rec);

/* Those of an alloc; NULL: its tasks ask for none. */
struct alloc_identities *alloc_identities_of(const struct alloc_runner *ar);

/* Sets NOMAD_TOKEN and NOMAD_TOKEN_name, as the job asks. Returns 0. */
int alloc_identities_put_env(
    const struct sup_alloc *sa, const struct task *task, struct string_map *vars);
/* Adds the token files to a start. 0, or -EINVAL for a path that is not allowed. */
int alloc_identities_add_files(
    const struct sup_alloc *sa, const struct task *task, struct spec_writer *spec, struct err *e);

#endif
