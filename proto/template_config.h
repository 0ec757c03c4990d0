/* SPDX-License-Identifier: Apache-2.0 */
/* template_config.h: client { template { } }, a part of the configuration of proto/agent_config.h.
 * Runs in: every process. */
#ifndef DROVER_PROTO_TEMPLATE_CONFIG_H
#define DROVER_PROTO_TEMPLATE_CONFIG_H

#include <stdint.h>

#define CONFIG_DENIED_SIZE 512

/* How long a changed value waits for others: of templates without a wait block, by default 5 s and
 * 4 min; and the bounds of wait blocks, by default 0 and UINT64_MAX. */
struct config_template {
	uint64_t wait_min_ms, wait_max_ms, bounds_min_ms, bounds_max_ms;
	char denied[CONFIG_DENIED_SIZE]; /* patterns of glob.h, with spaces between them */
};

#endif
