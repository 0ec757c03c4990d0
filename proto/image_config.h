/* SPDX-License-Identifier: Apache-2.0 */
/* image_config.h: how container images are fetched and removed, as plugin "docker" says. Runs in:
 * every process. */
#ifndef DROVER_PROTO_IMAGE_CONFIG_H
#define DROVER_PROTO_IMAGE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#define IMAGE_HELPER_SIZE 64

struct config_images {
	char auth_helper[IMAGE_HELPER_SIZE]; /* docker-credential-<this>; empty: none */
	uint64_t idle_ms;                    /* the longest time without a byte; default 2 min */
	uint64_t gc_delay_ms;                /* after the last use; default 3 min */
	bool gc;                             /* unused images are removed; default true */
	uint8_t reserved[7];
};

#endif
