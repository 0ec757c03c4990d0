/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_configured.h: CSI plugins that are not tasks: the configuration has their sockets. Runs
 * in: supervisor. */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGIN_CONFIGURED_H
#define DROVER_SUPERVISOR_VOLUME_PLUGIN_CONFIGURED_H

#include "supervisor/core/sup.h"

/* Makes the root of each configured plugin, then fingerprints and supervises it. */
void plugins_configured_new(struct sup *sup);
void plugins_configured_free(struct sup *sup);

#endif
