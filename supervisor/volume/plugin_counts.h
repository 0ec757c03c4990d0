/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_counts.h: counts the tries of calls to CSI plugins, for the metrics. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGIN_COUNTS_H
#define DROVER_SUPERVISOR_VOLUME_PLUGIN_COUNTS_H

#include <stddef.h>

#include "proto/csi_helper.pb-c.h"
#include "supervisor/core/sup.h"

/* The tries of one method of a plugin that ended with this status. */
struct plugin_count {
	char *plugin;
	const char *method, *code; /* "NodePublishVolume", "NotFound" */
	uint64_t n, usec;
};

/* rep: NULL, or the answer. After 1,000 combinations no new one is counted. */
void plugin_count_add(struct sup *sup, const char *plugin, CsiCallReq__CallCase call,
    const CsiCallRep *rep, uint64_t usec);
/* Returns the i-th; NULL after the last. They stay valid until the agent ends. */
const struct plugin_count *plugin_count_at(const struct sup *sup, size_t i);
/* For plugins.c. */
void plugin_counts_free(struct sup *sup);

#endif
