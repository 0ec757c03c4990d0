/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins.h: the registry of this node's CSI plugins, by id: their fingerprint and health. A plugin
 * has an instance for each of its allocs on this node. plugin_calls.h calls them. Runs in:
 * supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGINS_H
#define DROVER_SUPERVISOR_VOLUME_PLUGINS_H

#include "common/id.h"
#include "model/csi.h"
#include "model/task.h"
#include "supervisor/core/sup.h"
#include "supervisor/volume/plugin_caps.h"

struct plugin;

void plugins_new(struct sup *sup);
void plugins_free(struct sup *sup);

/* Returns the registered instance of a plugin that has this half (CSI_PLUGIN_NODE or _CONTROLLER);
 * of several the newest that is healthy, else the newest that runs. NULL if there is none. */
struct plugin *plugin_find(struct sup *sup, const char *id, enum csi_plugin_kind half);
/* Returns the instance after p, newest first, registered or not: from NULL to NULL. */
struct plugin *plugin_next(struct sup *sup, struct plugin *p);
/* Returns true if there is an instance of this id and kind, registered or not. */
bool plugin_exists(struct sup *sup, const char *id, enum csi_plugin_kind kind);

const char *plugin_id(const struct plugin *p);
enum csi_plugin_kind plugin_kind(const struct plugin *p);
const struct id *plugin_alloc(const struct plugin *p);
/* Return the last fingerprint of each half; NULL if the instance does not have it. One that has not
 * answered yet has an info with the cause. */
const struct csi_info *plugin_controller_info(const struct plugin *p);
const struct csi_info *plugin_node_info(const struct plugin *p);
/* Returns 0, or -EOPNOTSUPP if the plugin's node service does not expand volumes. A plugin that
 * does not run is waited for by the call. */
int plugin_check_node_expands(struct sup *sup, const char *id, struct err *e);
/* Returns the capabilities of the last fingerprint; NULL before the first. */
const struct plugin_caps *plugin_caps_of(const struct plugin *p);
bool plugin_is_healthy(const struct plugin *p);
/* Returns since when it is healthy or not: CLOCK_REALTIME, in ns. */
int64_t plugin_health_since(const struct plugin *p);
/* Returns where the plugin sees its root for volumes: stage_publish_base_dir, or the host's path
 * for raw_exec. */
const char *plugin_container_root(const struct plugin *p);

/* Returns the number of the last channel to the instance; a new process gets a new one. */
uint64_t plugin_channel(const struct plugin *p);

/* For plugin_task.c and plugin_configured.c, which own the instances, and plugin_watch.c. */
/* alloc is zero for a plugin that is not a task; its socket is the configuration's. */
struct plugin *plugin_new(struct sup *sup, const char *id, enum csi_plugin_kind kind,
    const struct id *alloc, const char *socket, const char *container_root);
void plugin_free(struct plugin *p); /* deregisters it */
/* Sets the run that the plugin's socket must belong to. NULL: the task does not run; calls fail and
 * the channel is closed. */
void plugin_set_run(struct plugin *p, const struct id *run);
/* Copies caps, takes over both infos (NULL: the instance does not have that half), registers the
 * instance, and updates the node. */
void plugin_set_info(struct plugin *p, struct csi_info *controller, struct csi_info *node,
    const struct plugin_caps *caps);
/* Sets the health, and updates the node if it has changed. Copies description. Returns true if the
 * health has changed. */
bool plugin_set_health(struct plugin *p, bool healthy, const char *description);

#endif
