/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_claims.h: claims of volumes at the servers. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_CLAIMS_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_CLAIMS_H

#include "supervisor/cluster/node/nomad.h"

void nomad_claim(struct source *s, struct sup_alloc *sa, const struct volume_request *vr,
    claim_cb *cb, void *arg);
void nomad_claim_cancel(struct source *s, struct sup_alloc *sa);
void nomad_release(struct source *s, struct sup_alloc *sa, const struct volume_request *vr);
/* Sends the claims that waited for the first answered beat. */
void nomad_claims_begin(struct nomad *n);
void nomad_claims_free(struct nomad *n);

#endif
