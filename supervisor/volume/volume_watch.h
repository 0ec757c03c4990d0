/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_watch.h: compares once a minute, and when a plugin becomes healthy, what plugins list
 * about the volumes that are mounted on this node. A change is logged and is an event of the node,
 * once. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_VOLUME_WATCH_H
#define DROVER_SUPERVISOR_VOLUME_VOLUME_WATCH_H

#include "supervisor/core/sup.h"

struct volume_watch;

struct volume_watch *volume_watch_new(struct sup *sup);
void volume_watch_free(struct volume_watch *w); /* ignores NULL */
/* A volume is published: goes on with the comparisons, which end when none is. */
void volume_watch_mounted(struct volume_watch *w);
/* A plugin has become healthy: compares soon. */
void volume_watch_soon(struct volume_watch *w);

#endif
