/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins.h: the CSI plugins of this node by id: their channel, fingerprint, health; and calls to
 * them. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGINS_H
#define DROVER_SUPERVISOR_VOLUME_PLUGINS_H

#include "common/id.h"
#include "model/csi.h"
#include "model/task.h"
#include "proto/csi_helper.pb-c.h"
#include "supervisor/core/sup.h"

struct plugin;

int plugins_new(struct sup *sup, struct err *e);
void plugins_free(struct sup *sup);

/* The newest registered instance of a plugin that has that half (CSI_PLUGIN_NODE or _CONTROLLER);
 * NULL. */
struct plugin *plugin_find(struct sup *sup, const char *id, enum csi_plugin_kind half);
struct plugin *plugin_next(
    struct sup *sup, struct plugin *p); /* NULL begins; the registered ones, newest first */

/* Any instance of that id, registered or not. */
bool plugin_exists(struct sup *sup, const char *id);
const char *plugin_id(const struct plugin *p);
enum csi_plugin_kind plugin_kind(const struct plugin *p);
const struct id *plugin_alloc(const struct plugin *p);
/* The last fingerprint of each half; NULL if it has not that half. */
const struct csi_info *plugin_controller_info(const struct plugin *p);
const struct csi_info *plugin_node_info(const struct plugin *p);
bool plugin_is_healthy(const struct plugin *p);
/* Where the plugin sees its root for volumes: stage_publish_base_dir, or the host's path for
 * raw_exec. */
const char *plugin_container_root(const struct plugin *p);

/*
 * The end of a call, once: r 0 and rep (status OK), or negative with *e, the sentence of
 * csi_error(); rep is then NULL or the answer with its status. rep is valid in the callback.
 */
typedef void plugin_call_cb(
    struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e);

/*
 * One CSI call by csi-helper. A plugin that does not answer (yet, again) is waited for up to a
 * minute, as long as some allocation here is to be it; a channel is opened where there is none;
 * UNAVAILABLE, or the end of the plugin's task, means a new descriptor and one more try. req's
 * channel and timeout are filled in here; the message is copied. Returns a handle for
 * plugin_call_cancel(). Codes of its own: -EHOSTDOWN, nothing was sent; -ECONNRESET, the plugin
 * went away during the call.
 */
struct plugin_call *plugin_call(struct sup *sup, const char *id, enum csi_plugin_kind half,
    const CsiCallReq *req, unsigned timeout_ms, plugin_call_cb *cb, void *arg);
/* The same to one instance, registered or not. */
struct plugin_call *plugin_call_instance(
    struct plugin *p, const CsiCallReq *req, unsigned timeout_ms, plugin_call_cb *cb, void *arg);
void plugin_call_cancel(struct plugin_call *pc); /* NULL is nothing */
/* What it waits for: "NodeStageVolume of plugin local has not been answered yet". */
void plugin_call_say(const struct plugin_call *pc, char *buf, size_t size);

/* --- for plugin_task.c, which owns the instances --- */
struct plugin *plugin_new(struct sup *sup, const char *id, enum csi_plugin_kind kind,
    const struct id *alloc, const char *container_root);
void plugin_free(struct plugin *p);
/* Which run's cgroup its socket's owner must be in; NULL: it does not run, calls fail and the
 * channel is closed. */
void plugin_set_run(struct plugin *p, const struct id *run);
/* Takes over both infos (NULL: not that half); registers it if it was not. Tells the node. */
void plugin_set_info(struct plugin *p, struct csi_info *controller, struct csi_info *node);
/* Only the health; tells the node when it changed. description is copied. Returns whether it
 * changed. */
bool plugin_set_health(struct plugin *p, bool healthy, const char *description);
void plugin_deregister(struct plugin *p);

#endif
