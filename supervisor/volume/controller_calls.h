/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controller_calls.h: the calls to a plugin's controller: volumes, sizes, lists, snapshots. Each
 * callback comes exactly once, perhaps within the call; its data is valid until it returns. Runs
 * in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_CONTROLLER_CALLS_H
#define DROVER_SUPERVISOR_VOLUME_CONTROLLER_CALLS_H

#include "model/node_answers.h"
#include "model/volume.h"
#include "supervisor/volume/volumes.h"

/*
 * Calls to the plugin's controller. *vol has external_id, plugin_id, requested_capabilities,
 * mount_options, secrets, parameters and context, and need not outlive the call, but see
 * volume_create(). node is the plugin's own id of the node.
 */
typedef void volume_attach_cb(struct sup *sup, void *arg, int r,
    const struct string_map *publish_context, const struct err *e);
/* Fills in external_id, capacity, context and topologies of *vol, which must live until the
 * callback. */
void volume_create(struct sup *sup, struct csi_volume *vol, volume_cb *cb, void *arg);
void volume_delete(struct sup *sup, const struct csi_volume *vol, volume_cb *cb, void *arg);
void volume_validate(struct sup *sup, const struct csi_volume *vol, volume_cb *cb, void *arg);
void volume_attach(struct sup *sup, const struct csi_volume *vol, const char *node, bool read_only,
    volume_attach_cb *cb, void *arg);
/* A volume that the plugin does not know counts as detached. */
void volume_detach(
    struct sup *sup, const struct csi_volume *vol, const char *node, volume_cb *cb, void *arg);

/* Gets the new size of the volume, and whether its nodes have to expand it too. */
typedef void volume_expand_cb(
    struct sup *sup, void *arg, int r, int64_t capacity_bytes, bool on_nodes, const struct err *e);
/* *vol as for volume_attach(). limit_bytes 0: no limit. */
void volume_expand(struct sup *sup, const struct csi_volume *vol, int64_t required_bytes,
    int64_t limit_bytes, volume_expand_cb *cb, void *arg);

/* Gets the capacity for volumes with the capabilities, parameters and required topology of *vol
 * (plugin_id). */
typedef void volume_capacity_cb(
    struct sup *sup, void *arg, int r, const struct csi_capacity *capacity, const struct err *e);
void volume_capacity(
    struct sup *sup, const struct csi_volume *vol, volume_capacity_cb *cb, void *arg);

/* Gets what the controller says about *vol (external_id, plugin_id). */
typedef void volume_get_cb(
    struct sup *sup, void *arg, int r, const struct rpc_csi_entry *entry, const struct err *e);
void volume_get(struct sup *sup, const struct csi_volume *vol, volume_get_cb *cb, void *arg);
/* Gives the volume the mutable parameters of *vol (external_id, plugin_id, secrets). */
void volume_modify(struct sup *sup, const struct csi_volume *vol, volume_cb *cb, void *arg);

/* Lists a page of the plugin's volumes: at most max, never more than 50 (max 0: 50). next_token is
 * for the next page. Each try may take timeout_ms, but not longer than the configuration permits
 * (0: as long as that). */
typedef void volume_list_cb(
    struct sup *sup, void *arg, int r, const struct rpc_csi_rep *list, const struct err *e);
void volume_list(struct sup *sup, const char *plugin, int64_t max, const char *token,
    uint64_t timeout_ms, volume_list_cb *cb, void *arg);

typedef void snapshot_list_cb(struct sup *sup, void *arg, int r,
    const struct rpc_csi_snapshots_rep *list, const struct err *e);
void snapshot_list(struct sup *sup, const char *plugin, int64_t max, const char *token,
    const struct string_map *secrets, snapshot_list_cb *cb, void *arg);
/* Makes a snapshot of *vol (external_id, plugin_id, secrets, parameters). The list has only the new
 * snapshot. */
void snapshot_create(struct sup *sup, const struct csi_volume *vol, const char *name,
    snapshot_list_cb *cb, void *arg);
/* Makes a group snapshot of volumes of one plugin: snapshots of the same moment. *vol has
 * plugin_id, and secrets and parameters for the call. */
void group_snapshot_create(struct sup *sup, const struct csi_volume *vol, const char *name,
    const struct strings *external_ids, snapshot_list_cb *cb, void *arg);
/* id and snapshots are the plugin's, and complete. *vol as above, without parameters. */
void group_snapshot_get(struct sup *sup, const struct csi_volume *vol, const char *id,
    const struct strings *snapshots, snapshot_list_cb *cb, void *arg);
void group_snapshot_delete(struct sup *sup, const struct csi_volume *vol, const char *id,
    const struct strings *snapshots, volume_cb *cb, void *arg);
/* A snapshot that the plugin does not know counts as deleted. */
void snapshot_delete(struct sup *sup, const char *plugin, const char *id,
    const struct string_map *secrets, volume_cb *cb, void *arg);

#endif
