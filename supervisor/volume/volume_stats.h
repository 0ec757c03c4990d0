/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_stats.h: the fill level and the condition of the volumes that are published on this node:
 * asks their plugins (NodeGetVolumeStats) once a minute and on request, keeps the answers in
 * memory, and reports when a volume becomes abnormal or almost full. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_VOLUME_STATS_H
#define DROVER_SUPERVISOR_VOLUME_VOLUME_STATS_H

#include "model/volume_here.h"
#include "supervisor/core/sup.h"

struct mount;

/* Returns what the plugin reported last about this volume, without mounts; NULL if it is not
 * mounted here or its plugin has no statistics. Valid until the next turn. */
const struct volume_here *volume_stats_of(struct sup *sup, const char *namespace, const char *id);
/* Makes what is known about this volume here, with its mounts and what has gone wrong with them.
 * NULL if there is no mount of it. */
struct volume_here *volume_here_make(struct sup *sup, const char *namespace, const char *id);

/*
 * Asks the plugin for the statistics of this volume now. The callback, which may come within the
 * call, comes exactly once: after the answer or the failure, or at once if the volume is not
 * published or has another call out.
 */
typedef void volume_stats_cb(struct sup *sup, void *arg);
void volume_stats_ask(
    struct sup *sup, const char *namespace, const char *id, volume_stats_cb *cb, void *arg);

/* Called when the volume has become abnormal or almost full, or is not any more: text is a
 * sentence. */
typedef void volume_state_cb(
    struct sup *sup, const struct id *alloc, const char *alias, const char *text);
void volumes_report_state(struct sup *sup, volume_state_cb *cb);
/* Returns how many volumes of this plugin are mounted, or being mounted or unmounted. */
size_t volumes_of_plugin(struct sup *sup, const char *plugin);

/* For volumes.c and mount.c: */
struct volume_stats *volume_stats_new(struct sup *sup);
void volume_stats_free(struct volume_stats *vs); /* ignores NULL */
/* A volume was published: its plugin will be asked. */
void volume_stats_watch(struct sup *sup);
/* Cancels a request for the volume's statistics: the mount has something to do. */
void volume_stats_yield(const struct mount *m);
/* The mount is about to be freed. */
void volume_stats_leave(struct mount *m);

#endif
