/* SPDX-License-Identifier: Apache-2.0 */
/* node_cni.h: the CNI plugins and networks of this machine. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_NODE_CNI_H
#define DROVER_SUPERVISOR_NODE_NODE_CNI_H

#include <stdbool.h>

#include "supervisor/core/sup.h"

/* Has network-helper list them, and adds them to the node when the answer comes: attributes
 * plugins.cni.version.PLUGIN, and networks of mode cni/NAME. Only for a node with servers, which
 * place jobs by them. */
void node_cni_take(struct sup *sup);
/* Returns whether the answer is outstanding and still expected: for some seconds, because plugins
 * may hang. */
bool node_cni_is_awaited(void);

#endif
