/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_watch.h: the list of this node's allocs at the servers. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_WATCH_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_WATCH_H

#include "supervisor/cluster/node/nomad.h"

void nomad_watch_start(struct nomad *n);
/* Restarts the lists from index 0, after a node that was unknown to the servers was registered
 * again. */
void nomad_watch_restart(struct nomad *n);
/* Retries delayed lists now, because a call was answered. */
void nomad_watch_wake(struct nomad *n);
/* Asks for no list any more. */
void nomad_watch_stop(struct nomad *n);
void nomad_watch_free(struct nomad *n);

#endif
