// SPDX-License-Identifier: Apache-2.0
/* cores.c: sets of processors by their numbers. Runs in: supervisor. */
#include "supervisor/node/cores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define ELLIPSIS "…"

bool
core_set_parse(struct core_set *set, const char *list)
{
	list += strspn(list, " ");
	while (*list >= '0' && *list <= '9') {
		char *end;
		long low = strtol(list, &end, 10), high = low;

		if (*end == '-' && end[1] >= '0' && end[1] <= '9')
			high = strtol(end + 1, &end, 10);
		if (high < low || high >= CORES_MAX)
			return false;
		memset(set->has + low, 1, (size_t)(high - low + 1));
		list = end + strspn(end, " \n");
		if (*list == '\0')
			return true;
		if (*list++ != ',')
			return false;
		list += strspn(list, " ");
	}
	return false;
}

bool
core_set_has(const struct core_set *set, int64_t core)
{
	return core >= 0 && core < CORES_MAX && set->has[core];
}

void
ints_add(struct ints *list, int64_t value)
{
	list->v = mem_resize(list->v, list->n + 1, sizeof *list->v);
	list->v[list->n++] = value;
}

void
core_list_format(const struct ints *list, char buf[CORES_TEXT_SIZE])
{
	struct core_set set = { 0 };
	size_t at = 0;

	for (size_t i = 0; i < list->n; i++)
		if (list->v[i] >= 0 && list->v[i] < CORES_MAX)
			set.has[list->v[i]] = 1;
	buf[0] = '\0';
	for (int low = 0, high; low < CORES_MAX; low = high + 1) {
		high = low;
		if (!set.has[low])
			continue;
		while (high + 1 < CORES_MAX && set.has[high + 1])
			high++;
		if (at > CORES_TEXT_SIZE - sizeof "4095-4095,4095" - sizeof ELLIPSIS) {
			(void)strcpy(buf + at, ELLIPSIS);
			return;
		}
		at += (size_t)snprintf(buf + at, CORES_TEXT_SIZE - at, "%s%d", at ? "," : "", low);
		if (high > low)
			at += (size_t)snprintf(buf + at, CORES_TEXT_SIZE - at, "-%d", high);
	}
}
