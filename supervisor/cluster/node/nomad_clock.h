/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_clock.h: compares this machine's clock with the servers'. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_CLOCK_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_CLOCK_H

#include "supervisor/cluster/node/nomad.h"

/* Takes the time from a token that a server has just signed; ignores one that does not have it. */
void nomad_clock_note(struct nomad *n, const char *jwt);
/* Returns how many seconds this machine's clock is ahead of the servers' (negative: behind it); 0
 * if no token has come yet. A later correction of the clock counts. */
int64_t nomad_clock_ahead_s(const struct sup *sup);

#endif
