/* SPDX-License-Identifier: Apache-2.0 */
/* local_reach.h: whether this node can reach a volume, and has room for one more of its plugin.
 * Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_CLAIM_LOCAL_REACH_H
#define DROVER_SUPERVISOR_SERVER_CLAIM_LOCAL_REACH_H

#include "supervisor/server/claim/local_volumes.h"

/* Checks the volume's topologies, one of which the node must have with all its segments, and for
 * a volume that is not used yet, that the plugin takes one more on this node: it has not said that
 * it has nothing left, and has not reached its number. Returns 0, -ENOENT or -ENOSPC. */
int local_reach_check(const struct local *l, const struct csi_volume *vol,
    const struct csi_node_info *node, struct err *e);

#endif
