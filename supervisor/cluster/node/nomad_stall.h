/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nomad_stall.h: client { ephemeral }: a node that the servers could not hear for ephemeral_limit
 * after its heartbeat was due, or that they have forgotten, does not come back with what it had.
 * When a server can be reached again it removes everything and joins as a new node (departure.h).
 * Until then it goes on as any node. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_STALL_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_STALL_H

#include "supervisor/cluster/node/nomad.h"

/* The servers have answered a registration or a beat; ttl_ns is until when they expect the next. */
void nomad_stall_heard(struct nomad *n, int64_t ttl_ns);
/* Returns true if the servers must not hear of this node under its present identity. If one can be
 * reached, the renewal begins. */
bool nomad_stall_stops(struct nomad *n);
/* The servers do not know the node. Returns true if it renews itself, instead of registering again
 * as what it was. */
bool nomad_stall_forgotten(struct nomad *n);

/* When the next beat is due, for a row that outlives the process and the boot. */
#define NOMAD_STALL_TEXT_SIZE 96
void nomad_stall_format(const struct nomad *n, char ret[NOMAD_STALL_TEXT_SIZE]);
void nomad_stall_parse(struct nomad *n, const char *text);

#endif
