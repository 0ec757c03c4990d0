/* SPDX-License-Identifier: Apache-2.0 */
/* local_claims.h: the claims that a namespace adds to the tokens of its tasks. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_SIGN_LOCAL_CLAIMS_H
#define DROVER_SUPERVISOR_SERVER_SIGN_LOCAL_CLAIMS_H

#include <jansson.h>

#include "model/alloc.h"
#include "supervisor/server/base/local.h"

/*
 * Sets claims.extra_claims: the namespace's RequiredExtraClaims, and those of its
 * OptionalExtraClaims that the identity lists. Values may contain ${job.id}, ${job.region},
 * ${job.namespace}, ${job.node_pool}, ${job.meta.KEY}, ${group.name}, ${task.name}, ${alloc.id} and
 * ${node.id}, ${node.datacenter}, ${node.pool}, ${node.class}; anything else stays as it is.
 */
void local_claims_add_extra(struct local *l, json_t *claims, const struct alloc *a,
    const struct job *job, const char *task, const struct workload_identity *w);

#endif
