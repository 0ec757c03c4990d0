/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_self.h: the methods Agent.Host, NodeMeta.* and NodeIdentity.* that servers call, and
 * changes of the node's metadata by an operator. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_SERVE_NOMAD_SELF_H
#define DROVER_SUPERVISOR_CLUSTER_SERVE_NOMAD_SELF_H

#include "supervisor/cluster/node/nomad.h"
#include "supervisor/cluster/serve/nomad_csi.h"

nomad_method nomad_self_apply_meta, nomad_self_read_meta, nomad_self_get_identity,
    nomad_self_renew_identity, nomad_self_host;

#endif
