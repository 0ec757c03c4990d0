/* SPDX-License-Identifier: Apache-2.0 */
/* drivers.h: the numbers of the drivers. Runs in: every process. */
#ifndef DROVER_PROTO_DRIVERS_H
#define DROVER_PROTO_DRIVERS_H

#include <stdbool.h>
#include <stdint.h>

enum driver {
	DRIVER_NONE = 0,
	DRIVER_RAW_EXEC = 1,
	DRIVER_EXEC = 2,
	DRIVER_DOCKER = 3, /* containers */
	DRIVER_PODMAN = 4, /* the same, with the keys of another plugin */
};

static inline bool
driver_has_containers(uint32_t driver)
{
	return driver == DRIVER_DOCKER || driver == DRIVER_PODMAN;
}

#endif
