/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_sign.h: the tokens that the embedded server signs for tasks. Their claims are those of
 * Nomad 2.0. The default identity's are signed with Ed25519 when the alloc is made; the others with
 * RS256, which more programs can verify, when the node asks for them. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_SIGN_LOCAL_SIGN_H
#define DROVER_SUPERVISOR_SERVER_SIGN_LOCAL_SIGN_H

#include "supervisor/server/base/local.h"
#include "supervisor/table/alloc_table.h"

void local_signings_init(struct local *l);
void local_signings_free(struct local *l);

/* Signs the tokens of the default identity for the tasks of a new alloc that want them. */
void local_sign_defaults(
    struct local *l, struct alloc *a, const struct job *job, const struct task_group *group);

/* See struct source_ops. Other events of the work loop come first. */
void local_sign(struct source *s, struct sup_alloc *sa, const struct source_token *wanted, size_t n,
    sign_cb *cb, void *arg);
void local_sign_cancel(struct source *s, struct sup_alloc *sa);

#endif
