/* SPDX-License-Identifier: Apache-2.0 */
/* csl_topology.h: from where volumes can be reached. Runs in: drover-csi-local. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_TOPOLOGY_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_TOPOLOGY_H

#include "contrib/csi-local/csl.h"

/*
 * Decides v's topology: the first preferred, then the first requisite one that a known node has;
 * without a requirement that of this process. Returns 0, or RESOURCE_EXHAUSTED if no node has any.
 */
int csl_topology_choose(
    struct csl_op *op, const Csi__V1__TopologyRequirement *wanted, CslVolume *v);
/* Whether a known node has these segments. */
bool csl_topology_known(struct csl_op *op, const Csi__V1__Topology *topology);

#endif
