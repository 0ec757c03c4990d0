// SPDX-License-Identifier: Apache-2.0
/* signal_name.c: the number of a signal, from its name. Runs in: supervisor. */
#include "supervisor/driver/signal_name.h"

#include <string.h>
#include <strings.h>

int
signal_from_name(const char *name)
{
	if (*name == '\0')
		return SIGINT;
	if (strncasecmp(name, "SIG", 3) == 0)
		name += 3;
	for (int n = 1; n < NSIG; n++) {
		const char *abbrev = sigabbrev_np(n);

		if (abbrev && strcasecmp(abbrev, name) == 0)
			return n;
	}
	return -1;
}
