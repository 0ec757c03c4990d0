/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins.h: the CSI plugins of this node by kind and id: their channel, fingerprint, health; and calls to them. Rows in
 * table plugin, so that a plugin is known before its task was found again (semantics.md 6.4, 6.5). Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_PLUGINS_H
#define DROVER_SUPERVISOR_PLUGINS_H

#include "common/id.h"
#include "model/csi.h"
#include "model/task.h"
#include "proto/csi_helper.pb-c.h"
#include "supervisor/sup.h"

struct plugin;

int plugins_new(struct sup *sup, struct err *e);
void plugins_free(struct sup *sup);

/* The current instance of a plugin that has (enum csi_plugin_kind) the wanted half; NULL. */
struct plugin *plugin_find(struct sup *sup, const char *id, enum csi_plugin_kind half);
struct plugin *plugin_next(struct sup *sup, struct plugin *p); /* NULL begins; all instances */

const char *plugin_id(const struct plugin *p);
enum csi_plugin_kind plugin_kind(const struct plugin *p);
const struct id *plugin_alloc(const struct plugin *p);
/* The last fingerprint of each half; NULL if it has not that half. */
const struct csi_info *plugin_controller_info(const struct plugin *p);
const struct csi_info *plugin_node_info(const struct plugin *p);
bool plugin_is_healthy(const struct plugin *p);
/* Paths as the plugin sees them: its root for volumes (stage_publish_base_dir, or the host's root for raw_exec: row G05). */
const char *plugin_container_root(const struct plugin *p);

/*
 * One CSI call by csi-helper; opens a channel first where there is none, and on UNAVAILABLE takes a new descriptor and tries
 * once more. The callback comes once: r 0 and rep (grpc_status 0), or negative with *e, the sentence of semantics.md 6.6;
 * rep is then NULL or the answer with its status. A call whose plugin is not there fails with -ENOENT.
 */
typedef void plugin_call_cb(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e);
void plugin_call(struct sup *sup, const char *id, enum csi_plugin_kind half, CsiCallReq *req, unsigned timeout_ms,
    plugin_call_cb *cb, void *arg);

#endif
