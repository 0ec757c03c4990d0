// SPDX-License-Identifier: Apache-2.0
/* devices.c: compares paths below /dev with the patterns of the policy. Runs in: exec-helper,
 * supervisor. */
#include "common/devices.h"

#include <fnmatch.h>
#include <string.h>

#include "proto/agent_config.h"

bool
devices_allow(const struct config_devices *d, const char *path)
{
	size_t len = strlen(path);

	if (len == 0 || path[len - 1] == '/' || strstr(path, "//"))
		return false;
	for (uint32_t i = 0; i < d->n; i++)
		if (fnmatch(d->patterns[i], path, FNM_PATHNAME | FNM_PERIOD | FNM_NOESCAPE) == 0)
			return true;
	return false;
}
