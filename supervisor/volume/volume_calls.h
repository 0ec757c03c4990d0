/* SPDX-License-Identifier: Apache-2.0 */
/* volume_calls.h: the CSI calls of one mount, made from its record and its volume. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_VOLUME_VOLUME_CALLS_H
#define DROVER_SUPERVISOR_VOLUME_VOLUME_CALLS_H

#include "model/volume.h"
#include "supervisor/volume/mount_record.h"
#include "supervisor/volume/plugin_calls.h"
#include "supervisor/volume/volumes.h"

/* One call and who gets its answer. */
struct volume_call {
	struct sup *sup;
	const struct mount_record *rec;
	const struct csi_volume *volume; /* for stage and publish only, as capability */
	const struct csi_capability *capability;
	plugin_call_cb *cb;
	void *arg;
};

/* Each returns a handle for plugin_call_cancel(). Each try of a call times out after two
 * minutes, that of a Probe after five seconds. */
typedef struct plugin_call *volume_send(const struct volume_call *c);
volume_send volume_send_stage, volume_send_publish, volume_send_unpublish, volume_send_unstage;
/* A Probe: what was sent before has reached the plugin when it is answered. */
volume_send volume_send_probe;
/* Expands it to the size that c->volume has at its plugin. */
volume_send volume_send_due_expand;
/* NodeGetVolumeStats, of a published volume. Each try times out after 10 s. */
volume_send volume_send_stats;
struct plugin_call *volume_send_expand(const struct volume_call *c, const struct volume_size *size);

#endif
