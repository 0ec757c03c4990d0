/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_identity.h: the tokens that the source signs for an alloc's tasks. They are requested
 * before the tasks start, renewed in time, and given to running tasks. Runs in: supervisor.
 *
 * Tokens are kept in state.db beside the alloc, encrypted (seal.h), until its tasks have ended. So
 * an alloc can start again after a reboot without a server, and a restart of the agent does not
 * renew every token, which would restart tasks with that change_mode. The default tokens, which
 * come with the alloc, are in a column of their own (alloc_table.c). No token is ever logged or
 * returned by the API.
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

/* kept: the record of the last supervisor. NULL: no task wants a token. */
struct alloc_identities *alloc_identities_new(
    struct alloc_runner *ar, const struct alloc_record *kept);
void alloc_identities_free(struct alloc_identities *ids);
/* Adds the signed tokens to the record. */
void alloc_identities_save(const struct alloc_identities *ids, struct alloc_record *rec);

/* Returns the tokens of an alloc; NULL: no task wants a token. */
struct alloc_identities *alloc_identities_of(const struct alloc_runner *ar);

/* Sets the variables NOMAD_TOKEN and NOMAD_TOKEN_name that the job wants. */
void alloc_identities_put_env(
    const struct sup_alloc *sa, const struct task *task, struct string_map *vars);
/* Adds the token files to a start. 0, or -EINVAL for a path that is not allowed. */
int alloc_identities_add_files(
    const struct sup_alloc *sa, const struct task *task, struct spec_writer *spec, struct err *e);

#endif
