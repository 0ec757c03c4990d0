/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_csi.h: requests of servers for a CSI plugin on this node. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_RPC_RPC_CSI_H
#define DROVER_SUPERVISOR_CLUSTER_RPC_RPC_CSI_H

#include "model/volume.h"
#include "supervisor/cluster/rpc/rpc.h"

/* CSI.NodeDetachVolume, NodeExpandVolume. */
struct rpc_csi_node_req {
	char *plugin_id, *volume_id, *volume_namespace, *alloc_id, *node_id, *external_id;
	enum csi_attachment attachment_mode;
	enum csi_access access_mode;
	bool read_only;
	struct csi_capacity_range {
		int64_t required_bytes, limit_bytes;
	} * capacity;
	struct csi_claim *claim;
};

/* CSI.Controller*: each method uses some of these fields. The file system in MountOptions is
 * FSType, but Filesystem in ControllerAttachVolume. */
struct rpc_csi_mount_options {
	char *fs_type, *filesystem;
	struct strings mount_flags;
};

/* VolumeCapability of ControllerExpandVolume. Unlike in all other requests its modes are numbers:
 * access_type 1 is a block device, 2 a file system; access_mode is that of the CSI specification.
 */
struct rpc_csi_capability {
	int64_t access_type, access_mode;
	struct rpc_csi_mount_options *mount_volume;
};

struct rpc_csi_controller_req {
	char *controller_node_id, *plugin_id;
	char *volume_id;          /* Validate, Attach, Detach: the plugin's own id */
	char *external_volume_id; /* Expand, Delete */
	char *client_csi_node_id, *name;
	enum csi_attachment attachment_mode;
	enum csi_access access_mode;
	MODEL_LIST(struct csi_capability) volume_capabilities;
	struct rpc_csi_capability *volume_capability;
	struct rpc_csi_mount_options *mount_options;
	bool read_only;
	struct string_map secrets, parameters, context, volume_context;
	int64_t capacity_min, capacity_max; /* bytes */
	struct csi_capacity_range *capacity_range;
	char *snapshot_id, *clone_id;
	struct csi_topology_request *requested_topologies;
	int64_t max_entries;
	char *starting_token;
	char *external_source_volume_id, *id; /* snapshots */
};

MODEL_DECLARE(csi_capacity_range);
MODEL_DECLARE(rpc_csi_node_req);
MODEL_DECLARE(rpc_csi_mount_options);
MODEL_DECLARE(rpc_csi_capability);
MODEL_DECLARE(rpc_csi_controller_req);

#endif
