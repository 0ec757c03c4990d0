/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins.h: the CSI plugins of this node, by id: their channel, fingerprint and health; and calls
 * to them. A plugin has an instance for each of its allocs on this node. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGINS_H
#define DROVER_SUPERVISOR_VOLUME_PLUGINS_H

#include "common/id.h"
#include "model/csi.h"
#include "model/task.h"
#include "proto/csi_helper.pb-c.h"
#include "supervisor/core/sup.h"

struct plugin;

void plugins_new(struct sup *sup);
void plugins_free(struct sup *sup);

/* Returns the newest registered instance of a plugin that has this half (CSI_PLUGIN_NODE or
 * _CONTROLLER); NULL if there is none. */
struct plugin *plugin_find(struct sup *sup, const char *id, enum csi_plugin_kind half);
/* Returns the registered instance after p, newest first: from NULL to NULL. */
struct plugin *plugin_next(struct sup *sup, struct plugin *p);
/* Returns true if there is an instance of this id, registered or not. */
bool plugin_exists(struct sup *sup, const char *id);

const char *plugin_id(const struct plugin *p);
enum csi_plugin_kind plugin_kind(const struct plugin *p);
const struct id *plugin_alloc(const struct plugin *p);
/* Return the last fingerprint of each half; NULL if the instance does not have it. */
const struct csi_info *plugin_controller_info(const struct plugin *p);
const struct csi_info *plugin_node_info(const struct plugin *p);
bool plugin_is_healthy(const struct plugin *p);
/* Returns where the plugin sees its root for volumes: stage_publish_base_dir, or the host's path
 * for raw_exec. */
const char *plugin_container_root(const struct plugin *p);

/*
 * The end of a call, called once: r is 0 with rep (status OK), or negative with the error of
 * csi_error(); rep is then NULL or the answer with its status. rep is valid until the callback
 * returns.
 */
typedef void plugin_call_cb(
    struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e);

/*
 * Makes one CSI call, through csi-helper. Waits up to a minute for an instance that answers, as
 * long as an alloc with the plugin runs or will run on this node; opens a channel if there is none.
 * After UNAVAILABLE or the end of the plugin's task, reconnects and tries once more. Fills in the
 * channel and timeout of *req, and copies it. Returns a handle for plugin_call_cancel(). The
 * callback may come within the call. Codes of its own: -EHOSTDOWN if nothing was sent, -ECONNRESET
 * if the plugin ended during the call.
 */
struct plugin_call *plugin_call(struct sup *sup, const char *id, enum csi_plugin_kind half,
    const CsiCallReq *req, unsigned timeout_ms, plugin_call_cb *cb, void *arg);
/* Makes a call to one instance, registered or not. Returns NULL if it does not run; otherwise the
 * callback comes later. */
struct plugin_call *plugin_call_instance(
    struct plugin *p, const CsiCallReq *req, unsigned timeout_ms, plugin_call_cb *cb, void *arg);
void plugin_call_cancel(struct plugin_call *pc); /* ignores NULL */
/* Writes what the call waits for: "NodeStageVolume of plugin local has not been answered yet". */
void plugin_call_say(const struct plugin_call *pc, char *buf, size_t size);

/* For plugin_task.c, which owns the instances. */
struct plugin *plugin_new(struct sup *sup, const char *id, enum csi_plugin_kind kind,
    const struct id *alloc, const char *container_root);
void plugin_free(struct plugin *p);
/* Sets the run that the plugin's socket must belong to. NULL: the task does not run; calls fail and
 * the channel is closed. */
void plugin_set_run(struct plugin *p, const struct id *run);
/* Takes over both infos (NULL: the instance does not have that half), registers the instance, and
 * updates the node. */
void plugin_set_info(struct plugin *p, struct csi_info *controller, struct csi_info *node);
/* Sets the health, and updates the node if it has changed. Copies description. Returns true if the
 * health has changed. */
bool plugin_set_health(struct plugin *p, bool healthy, const char *description);
void plugin_deregister(struct plugin *p);

#endif
