/* SPDX-License-Identifier: Apache-2.0 */
/* host_facts.h: facts about this machine, for debugging a cluster. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_HOST_FACTS_H
#define DROVER_SUPERVISOR_NODE_HOST_FACTS_H

#include "model/host_data.h"
#include "supervisor/core/sup.h"

/*
 * Fills *ret, which is empty. A file that cannot be read is replaced by the reason. The environment
 * is the supervisor's: the launcher passes on what systemd set and adds nothing.
 */
void host_facts_fill(struct sup *sup, struct host_data *ret);

#endif
