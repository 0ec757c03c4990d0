/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_events.h: events of the node, for `nomad node status`. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_EVENTS_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_EVENTS_H

#include "supervisor/cluster/node/nomad.h"

/* Sends the node's newest event to the servers within some seconds. How many of the last ten were
 * not sent yet is in state.db, so they are sent after a restart, too; one may then come twice. */
void nomad_event_add(struct nomad *n);
int nomad_events_load(struct nomad *n, struct err *e);
void nomad_events_free(struct nomad *n);

#endif
