// SPDX-License-Identifier: Apache-2.0
/* cap_name.c: the names of capabilities, by libcap. Runs in: supervisor, and the launcher's
 * configuration child. */
#include "common/cap_name.h"

#include <stdio.h>
#include <strings.h>
#include <sys/capability.h>

int
cap_number(const char *name)
{
	char full[64];
	cap_value_t v;

	if (strncasecmp(name, "cap_", 4) == 0)
		name += 4;
	if (snprintf(full, sizeof full, "cap_%s", name) >= (int)sizeof full)
		return -1;
	return cap_from_name(full, &v) == 0 ? (int)v : -1;
}
