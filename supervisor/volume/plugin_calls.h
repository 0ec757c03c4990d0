/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_calls.h: calls to the CSI plugins of plugins.h. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGIN_CALLS_H
#define DROVER_SUPERVISOR_VOLUME_PLUGIN_CALLS_H

#include "proto/csi_helper.pb-c.h"
#include "supervisor/volume/plugins.h"

struct plugin_call;

/*
 * The end of a call, called once: r is 0 with rep (status OK, or as good as that), or negative with
 * the error of csi_error(); rep is then NULL or the answer with its status. rep is valid until the
 * callback returns.
 */
typedef void plugin_call_cb(
    struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e);

/*
 * Makes one CSI call, through csi-helper. Waits up to a minute for an instance that answers, as
 * long as an alloc with the plugin runs or will run on this node; opens a channel if there is none,
 * and waits as long if that fails.
 * Repeats the call as csi_codes.def says, and after the end of the plugin's task; the timeout is
 * that of each try. Fills in the channel and timeout of *req, and copies it. Returns a handle for
 * plugin_call_cancel(). Codes of its own: -EHOSTDOWN if nothing was sent, -ECONNRESET if the plugin
 * ended during the call.
 */
struct plugin_call *plugin_call(struct sup *sup, const char *id, enum csi_plugin_kind half,
    const CsiCallReq *req, unsigned timeout_ms, plugin_call_cb *cb, void *arg);
/* Makes a call to one instance, registered or not. Returns NULL if it does not run; otherwise the
 * callback comes later. */
struct plugin_call *plugin_call_instance(
    struct plugin *p, const CsiCallReq *req, unsigned timeout_ms, plugin_call_cb *cb, void *arg);
void plugin_call_cancel(struct plugin_call *pc); /* ignores NULL */
/* Return whether a try of the call, also an earlier one, may have taken effect without a good
 * answer, or may still do so; and the time since the first was sent. Valid until the callback
 * returns. */
bool plugin_call_is_unknown(const struct plugin_call *pc);
uint64_t plugin_call_usec(const struct plugin_call *pc);
/* Writes what the call waits for: "NodeStageVolume of plugin local has not been answered yet". */
void plugin_call_say(const struct plugin_call *pc, char *buf, size_t size);

#endif
