/* SPDX-License-Identifier: Apache-2.0 */
/* local_expand.h: makes the mounts of an expanded volume take its new size. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_CLAIM_LOCAL_EXPAND_H
#define DROVER_SUPERVISOR_SERVER_CLAIM_LOCAL_EXPAND_H

#include "supervisor/server/claim/local_volumes.h"

struct err;

/*
 * Asks the plugin's node service, once for each alloc that has the volume mounted, one after the
 * other; vol.node_expansion is the size. After a success for all it is 0, and the callback gets 0,
 * as it does if no alloc has it mounted: the next mount asks then. After a failure the callback
 * gets the first error, when all were asked, and this repeats itself until it succeeds, unless
 * local_expand_is_refused(). The callback may come within the call. NULL: repeat now, if nothing is
 * in progress.
 */
typedef void local_expand_cb(struct sup *sup, void *arg, int r, const struct err *e);
void local_expand_here(struct local *l, struct local_volume *lv, local_expand_cb *cb, void *arg);
/* Returns true for what the plugin refuses as long as the volume stays mounted as it is: it is
 * asked again with the next mount or the next request, not periodically. */
bool local_expand_is_refused(int r);
/* After the start of the agent: goes on with what an earlier one had to do. */
void local_expand_resume(struct local *l);
/* Before lv is freed. */
void local_expand_drop(struct local_volume *lv);

#endif
