/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_csi.h: the methods CSI.* that servers call on this node. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_SERVE_NOMAD_CSI_H
#define DROVER_SUPERVISOR_CLUSTER_SERVE_NOMAD_CSI_H

#include <stddef.h>
#include <stdint.h>

#include "supervisor/core/sup.h"

struct nomad;

typedef void nomad_method(struct sup *sup, uint64_t stream, const void *body, size_t len);

nomad_method nomad_csi_create_volume, nomad_csi_delete_volume, nomad_csi_validate_volume,
    nomad_csi_attach_volume, nomad_csi_detach_volume, nomad_csi_detach_here,
    nomad_csi_expand_volume, nomad_csi_list_volumes, nomad_csi_create_snapshot,
    nomad_csi_delete_snapshot, nomad_csi_list_snapshots, nomad_csi_expand_here;

/* Forgets the requests that wait for an unmount. */
void nomad_detach_free(struct nomad *n);

#endif
