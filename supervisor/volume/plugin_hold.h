/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_hold.h: plugins that had no attachment or space left for another volume on this node
 * (RESOURCE_EXHAUSTED). For 30 s, doubling up to 5 min while it lasts, no further volume of the
 * plugin is placed here. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGIN_HOLD_H
#define DROVER_SUPERVISOR_VOLUME_PLUGIN_HOLD_H

#include "proto/csi_helper.pb-c.h"
#include "supervisor/core/sup.h"

/* Returns true if placements of further volumes of the plugin wait; then *why says it in a
 * sentence. */
bool plugin_is_held(struct sup *sup, const char *id, char *why, size_t size);

/* For plugin_calls.c: a call has ended with this answer, and with the error *e if it has failed. */
void plugin_hold_note(struct sup *sup, const char *id, CsiCallReq__CallCase call,
    const CsiCallRep *rep, const struct err *e);
/* For plugins.c. */
void plugin_holds_free(struct sup *sup);

#endif
