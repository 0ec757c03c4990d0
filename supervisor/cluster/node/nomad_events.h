/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_events.h: events of the node, for `nomad node status`. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_EVENTS_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_EVENTS_H

#include "supervisor/cluster/node/nomad.h"

/* Sends the event to the servers within some seconds. The last ten are kept until they can be sent.
 */
void nomad_event_add(struct nomad *n, const struct node_event *ev);
void nomad_events_free(struct nomad *n);

#endif
