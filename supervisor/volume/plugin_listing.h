/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_listing.h: all pages of a plugin's ListVolumes. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGIN_LISTING_H
#define DROVER_SUPERVISOR_VOLUME_PLUGIN_LISTING_H

#include "model/node_answers.h"
#include "supervisor/core/sup.h"

/* Exactly one of the two is set: the volumes, sorted by volume_entries_sort(), which are taken over
 * and freed with rpc_csi_rep_free(), or why there is no complete list. */
typedef void plugin_listing_cb(
    struct sup *sup, void *arg, struct rpc_csi_rep *list, const struct err *e);
/* Asks the controller of the plugin, if one is healthy on this node and can list volumes. The
 * callback comes exactly once, perhaps within the call, and after LISTING_TIMEOUT_S at the latest.
 */
#define LISTING_TIMEOUT_S 10
void plugin_listing_begin(struct sup *sup, const char *plugin, plugin_listing_cb *cb, void *arg);

#endif
