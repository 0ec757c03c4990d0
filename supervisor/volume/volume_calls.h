/* SPDX-License-Identifier: Apache-2.0 */
/* volume_calls.h: the CSI calls for one mount, out of its record and its volume. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_VOLUME_VOLUME_CALLS_H
#define DROVER_SUPERVISOR_VOLUME_VOLUME_CALLS_H

#include "model/volume.h"
#include "supervisor/volume/mount_record.h"
#include "supervisor/volume/plugins.h"

/* *volume and *cap: on the way in only. */
typedef struct plugin_call *volume_send(struct sup *sup, const struct mount_record *rec,
    const struct csi_volume *volume, const struct csi_capability *cap, unsigned timeout_ms,
    plugin_call_cb *cb, void *arg);

volume_send volume_send_stage, volume_send_publish, volume_send_unpublish, volume_send_unstage;

/* limit_bytes 0: none. */
struct plugin_call *volume_send_expand(struct sup *sup, const struct mount_record *rec,
    int64_t required_bytes, int64_t limit_bytes, unsigned timeout_ms, plugin_call_cb *cb,
    void *arg);

#endif
