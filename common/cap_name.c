// SPDX-License-Identifier: Apache-2.0
/* cap_name.c: names of capabilities, from libcap. Runs in: supervisor, and the launcher's
 * configuration child. */
#include "common/cap_name.h"

#include <stdio.h>
#include <string.h>
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

void
cap_names(uint64_t mask, char *buf, size_t size)
{
	size_t at = 0;

	buf[0] = '\0';
	for (cap_value_t c = 0; c < 64 && at < size; c++) {
		char *name = mask >> c & 1 ? cap_to_name(c) : NULL;

		if (name)
			at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "",
			    strncmp(name, "cap_", 4) == 0 ? name + 4 : name);
		(void)cap_free(name);
	}
}
