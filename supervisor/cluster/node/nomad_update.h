/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_update.h: reports the state of allocs to the servers. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_UPDATE_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_UPDATE_H

#include "supervisor/cluster/node/nomad.h"

/* Prepares the part of a new alloc that this file uses. */
void nomad_update_init(struct nomad_alloc *na);
/* Reads what the servers have acknowledged of each alloc. */
int nomad_update_load(struct nomad *n, struct err *e);
/* Forgets that the servers have an update of the alloc. */
void nomad_update_unacked(struct nomad *n, struct nomad_alloc *na);
/* Reports the alloc soon if the servers do not have its state. */
void nomad_update_check(struct nomad *n, struct nomad_alloc *na);
/* Removes the alloc from the list of allocs to be reported. */
void nomad_update_forget(struct nomad *n, struct nomad_alloc *na);
/* Reports all allocs that have not ended, even if the servers have their state. anew: the ended
 * ones too. */
void nomad_update_all(struct nomad *n, bool anew);
/* Reports one alloc that has not ended, even if the servers have its state: servers that consider
 * the node lost make it ready again after an update. */
void nomad_update_one(struct nomad *n);
/* Reports the waiting allocs at once. */
void nomad_update_soon(struct nomad *n);
void nomad_update_free(struct nomad *n);

#endif
