/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_sign.h: tokens that the servers sign for tasks. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_SIGN_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_SIGN_H

#include "supervisor/cluster/node/nomad.h"

void nomad_sign(struct source *s, struct sup_alloc *sa, const struct source_token *wanted, size_t n,
    sign_cb *cb, void *arg);
void nomad_sign_cancel(struct source *s, struct sup_alloc *sa);
void nomad_sign_free(struct nomad *n);

#endif
