/* SPDX-License-Identifier: Apache-2.0 */
/* host_facts.h: what is true of this machine, for who debugs a cluster. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_HOST_FACTS_H
#define DROVER_SUPERVISOR_NODE_HOST_FACTS_H

#include "model/host_data.h"
#include "supervisor/core/sup.h"

/*
 * ret is empty. What cannot be read says why in its place. The environment is this process's own:
 * the launcher passes on what systemd said to it, and nothing of its own. -ENOMEM.
 */
int host_facts_fill(struct sup *sup, struct host_data *ret);

#endif
