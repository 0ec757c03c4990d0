// SPDX-License-Identifier: Apache-2.0
/* glob.c: patterns with stars. Runs in: supervisor, template-renderer, the launcher's
 * configuration child, cli. */
#include "common/glob.h"

#include <stddef.h>
#include <string.h>

static bool
fits(const char *pattern, const char *end, const char *text)
{
	const char *star = NULL, *from = NULL;

	while (*text) {
		if (pattern < end && *pattern == '*') {
			star = pattern++;
			from = text;
		} else if (pattern < end && *pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text = ++from;
		} else {
			return false;
		}
	}
	while (pattern < end && *pattern == '*')
		pattern++;
	return pattern == end;
}

bool
glob_fits(const char *pattern, const char *text)
{
	return fits(pattern, pattern + strlen(pattern), text);
}

bool
glob_list_fits(const char *list, const char *text)
{
	for (; *list; list += strspn(list, " ")) {
		const char *end = list + strcspn(list, " ");

		if (fits(list, end, text))
			return true;
		list = end;
	}
	return false;
}
