/* SPDX-License-Identifier: Apache-2.0 */
/* config_map.h: maps the records of the configuration. Runs in: every process but the cli. */
#ifndef DROVER_COMMON_CONFIG_MAP_H
#define DROVER_COMMON_CONFIG_MAP_H

#include <signal.h>
#include <stdbool.h>

#include "common/err.h"
#include "proto/agent_config.h"

/* Maps the sealed memfd fd as one of the two records and checks its magic, size and seals. Returns
 * NULL with *e on failure. */
const struct agent_config *config_map(int fd, struct err *e);
const struct agent_policy *policy_map(int fd, struct err *e);

/* Whether the configuration asks for a drain of the node when this signal ends the agent: the
 * launcher and the supervisor decide it in the same way. */
static inline bool
config_leaves(const struct agent_config *config, int signo)
{
	return config->drain_on_shutdown &&
	       (signo == SIGINT ? config->leave_on_interrupt : config->leave_on_terminate);
}

#endif
