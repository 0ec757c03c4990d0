/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_update.h: reports the state of allocs to the servers. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_UPDATE_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_UPDATE_H

#include "supervisor/cluster/node/nomad.h"

/* Reports the alloc soon if the servers do not have its state. */
void nomad_update_check(struct nomad *n, struct nomad_alloc *na);
/* Removes the alloc from those that are to be reported. */
void nomad_update_forget(struct nomad *n, struct nomad_alloc *na);
/* Reports all allocs that have not ended, also those that the servers have. */
void nomad_update_all(struct nomad *n);
/* Reports at once what is waiting. */
void nomad_update_soon(struct nomad *n);
void nomad_update_free(struct nomad *n);

#endif
