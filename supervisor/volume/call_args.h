/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_args.h: what CSI requests have in common, out of volumes and mounts. All of it lies in one
 * place, and points into what it is made of: it is good until the next request is made, and
 * requests are copied when they are sent. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_CALL_ARGS_H
#define DROVER_SUPERVISOR_VOLUME_CALL_ARGS_H

#include "model/volume.h"
#include "proto/csi.pb-c.h"
#include "supervisor/volume/mount_record.h"

/*
 * A map as protobuf's repeated entries, their number; slot (0 to 3) is its place in the request.
 * Beyond 64 entries nothing is sent: validation has refused such a volume.
 */
size_t call_args_map(unsigned slot, const struct string_map *m, Csi__V1__StringEntry ***ret);
/* The at-th (0 to 15) capability. options: NULL, or of the mount. */
Csi__V1__VolumeCapability *call_args_capability(
    unsigned at, const struct csi_capability *cap, const struct mount_options *options);
/* Those that vol was requested with, at most 16: their number. */
size_t call_args_capabilities(const struct csi_volume *vol, Csi__V1__VolumeCapability ***ret);
/* NULL: where it likes. Beyond 16 of each, and 64 segments in all, nothing is sent. */
Csi__V1__TopologyRequirement *call_args_topologies(const struct csi_topology_request *request);
/* Paths as the plugin sees them, below its root. */
void call_args_paths(const struct mount_record *rec, char **ret_staging, char **ret_target);

#endif
