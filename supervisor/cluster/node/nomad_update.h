/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_update.h: what became of allocs, told to the servers. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_UPDATE_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_UPDATE_H

#include "supervisor/cluster/node/nomad.h"

void nomad_update_look(struct nomad *n, struct nomad_alloc *na);
void nomad_update_forget(struct nomad *n, struct nomad_alloc *na);
/* Reports all allocs that have not ended again. */
void nomad_update_all(struct nomad *n);
void nomad_update_soon(struct nomad *n);
void nomad_update_free(struct nomad *n);

#endif
