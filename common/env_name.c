// SPDX-License-Identifier: Apache-2.0
/* env_name.c: names of environment variables. Runs in: supervisor, job-parser. */
#include "common/env_name.h"

#include <ctype.h>

void
env_name_clean(char *name)
{
	for (char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '.' && *c != '_')
			*c = '_';
}
