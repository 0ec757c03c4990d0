/* SPDX-License-Identifier: Apache-2.0 */
/* image_config.h: how container images are fetched, as plugin "docker" says. Runs in: every
 * process. */
#ifndef DROVER_PROTO_IMAGE_CONFIG_H
#define DROVER_PROTO_IMAGE_CONFIG_H

#include <stdint.h>

#define IMAGE_HELPER_SIZE 64

struct config_images {
	char auth_helper[IMAGE_HELPER_SIZE]; /* docker-credential-<this>; empty: none */
	uint64_t idle_ms;                    /* the longest time without a byte; default 2 min */
};

#endif
