/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_caps.h: all capabilities that an instance of a CSI plugin has reported. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGIN_CAPS_H
#define DROVER_SUPERVISOR_VOLUME_PLUGIN_CAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/engine/containers.h"

enum plugin_service {
	PLUGIN_CAPS,      /* of GetPluginCapabilities: services */
	PLUGIN_EXPANSION, /* of it: volume expansion */
	PLUGIN_CONTROLLER_CAPS,
	PLUGIN_NODE_CAPS,
	PLUGIN_GROUP_CAPS,
	PLUGIN_SERVICES
};

/* Bit n is set if it has the capability with the specification's number n. */
struct plugin_caps {
	uint32_t bits[PLUGIN_SERVICES];
};

/* Ignores numbers that no version of the specification has. */
void plugin_caps_add(struct plugin_caps *caps, enum plugin_service service, int number);
bool plugin_caps_has(const struct plugin_caps *caps, enum plugin_service service, int number);
/* Returns the specification's name, such as "GET_CAPACITY". */
const char *plugin_caps_name(enum plugin_service service, int number);
/* Appends the names to *ret. */
void plugin_caps_list(
    const struct plugin_caps *caps, enum plugin_service service, struct strings *ret);

#endif
