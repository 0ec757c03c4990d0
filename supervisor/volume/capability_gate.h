/* SPDX-License-Identifier: Apache-2.0 */
/* capability_gate.h: which calls a plugin's controller has, by its capabilities. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_VOLUME_CAPABILITY_GATE_H
#define DROVER_SUPERVISOR_VOLUME_CAPABILITY_GATE_H

#include "proto/csi_helper.pb-c.h"
#include "supervisor/core/sup.h"

/* Returns 0 if the plugin's controller has this call, or does not run, so that the call itself
 * waits for it or fails; else -EOPNOTSUPP. */
int capability_gate(struct sup *sup, const char *plugin, const CsiCallReq *req, struct err *e);
/* Returns true if the plugin's controller is healthy and has this call. */
bool capability_has_call(struct sup *sup, const char *plugin, CsiCallReq__CallCase call);

#endif
