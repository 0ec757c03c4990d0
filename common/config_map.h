/* SPDX-License-Identifier: Apache-2.0 */
/* config_map.h: maps the records of the configuration. Runs in: every process but the cli. */
#ifndef DROVER_COMMON_CONFIG_MAP_H
#define DROVER_COMMON_CONFIG_MAP_H

#include "common/err.h"
#include "proto/agent_config.h"

/* Maps the sealed memfd fd as one of the two records and checks its magic, size and seals. Returns
 * NULL with *e on failure. */
const struct agent_config *config_map(int fd, struct err *e);
const struct agent_policy *policy_map(int fd, struct err *e);

#endif
