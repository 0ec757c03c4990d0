/* SPDX-License-Identifier: Apache-2.0 */
/* csi.h: types that volumes, volume requests and plugins share: modes, mount options, CSIInfo. Runs
 * in: supervisor, cli. */
#ifndef DROVER_MODEL_CSI_H
#define DROVER_MODEL_CSI_H

#include "model/engine/field.h"

enum csi_access {
	CSI_ACCESS_NONE,
	CSI_SINGLE_NODE_READER,
	CSI_SINGLE_NODE_WRITER,
	CSI_MULTI_NODE_READER,
	CSI_MULTI_NODE_SINGLE_WRITER,
	CSI_MULTI_NODE_MULTI_WRITER,
	HOST_SINGLE_WRITER, /* this and the next: only for host volumes */
	HOST_MULTI_WRITER,
};

enum csi_attachment { CSI_ATTACHMENT_NONE, CSI_BLOCK_DEVICE, CSI_FILE_SYSTEM };

extern const char *const csi_access_names[HOST_MULTI_WRITER + 1];
extern const char *const csi_attachment_names[CSI_FILE_SYSTEM + 1];

struct mount_options {
	char *fs_type;
	struct strings mount_flags;
};

struct csi_topology {
	struct string_map segments;
};

struct csi_controller_info {
	bool supports_create_delete, supports_attach_detach, supports_list_volumes,
	    supports_get_capacity, supports_create_delete_snapshot, supports_list_snapshots,
	    supports_clone, supports_read_only_attach, supports_expand,
	    supports_list_volumes_attached_nodes, supports_condition, supports_get;
};

struct csi_node_info {
	char *id;
	int64_t max_volumes; /* INT64_MAX if the plugin reports 0 */
	struct csi_topology *accessible_topology;
	bool requires_node_stage_volume, supports_stats, supports_expand, supports_condition;
};

/* One fingerprint of one plugin instance, as the node reports it. */
struct csi_info {
	char *plugin_id, *alloc_id;
	bool healthy;
	char *health_description;
	int64_t update_time;
	char *provider, *provider_version;
	bool requires_controller_plugin, requires_topologies;
	struct csi_controller_info *controller_info; /* exactly one of the two is set */
	struct csi_node_info *node_info;
};

MODEL_DECLARE(mount_options);
MODEL_DECLARE(csi_topology);
MODEL_DECLARE(csi_controller_info);
MODEL_DECLARE(csi_node_info);
MODEL_DECLARE(csi_info);

/* Merges the options of a volume request (may be NULL) over those of the volume: the request's
 * fs_type if it has one, and its mount_flags if it has any. *volume may be NULL before and after.
 */
void mount_options_merge(struct mount_options **volume, const struct mount_options *request);

#define USAGE_SIZE 80
/*
 * Writes a name for this way of using a volume on the node: "rw-file-system-single-node-writer"; if
 * the request changes the volume's options, with "-" and 8 hex digits of the options' digest, so
 * that requests with different options never share a mount.
 */
void csi_usage(char ret[USAGE_SIZE], bool read_only, enum csi_attachment attachment,
    enum csi_access access, const struct mount_options *volume,
    const struct mount_options *request);

#endif
