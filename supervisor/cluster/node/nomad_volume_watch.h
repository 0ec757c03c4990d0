/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_volume_watch.h: waits for changes of volumes at the servers. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_VOLUME_WATCH_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_VOLUME_WATCH_H

#include "supervisor/cluster/node/nomad.h"

/* Called after each answer. changed: the volume is another than at the last call, or this is the
 * first. The watch ends when it returns false. */
typedef bool volume_changed(
    struct nomad *n, const char *namespace, const char *volume_id, bool changed);

/* Watches the volume unless it is watched already. Returns true if the servers have answered an
 * earlier query of that watch; with ACLs not all of them let a node read volumes. */
bool nomad_volume_watch(
    struct nomad *n, const char *namespace, const char *volume_id, volume_changed *fn);
void nomad_volume_watch_free(struct nomad *n);

#endif
