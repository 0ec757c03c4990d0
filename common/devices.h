/* SPDX-License-Identifier: Apache-2.0 */
/* devices.h: which devices of the machine a container may have. Runs in: exec-helper, supervisor.
 */
#ifndef DROVER_COMMON_DEVICES_H
#define DROVER_COMMON_DEVICES_H

#include <stdbool.h>

struct config_devices;

/* Returns whether a pattern of the policy matches path, which is below /dev. A path with an empty
 * component, "." or ".." matches none. */
bool devices_allow(const struct config_devices *d, const char *path);

#endif
