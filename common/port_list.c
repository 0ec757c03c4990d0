// SPDX-License-Identifier: Apache-2.0
/* port_list.c: parses lists of ports. Runs in: the launcher's configuration child, supervisor. */
#include "common/port_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PORT_MAX 65535

static bool
take_port(const char **at, uint32_t *ret)
{
	char *end;
	unsigned long v;

	if (**at < '0' || **at > '9')
		return false;
	v = strtoul(*at, &end, 10);
	if (v < 1 || v > PORT_MAX)
		return false;
	*ret = (uint32_t)v;
	*at = end;
	return true;
}

int
port_list_next(const char **at, uint32_t *ret_low, uint32_t *ret_high)
{
	uint32_t low, high;

	*at += strspn(*at, ", ");
	if (!**at)
		return 0;
	if (!take_port(at, &low))
		return -EINVAL;
	high = low;
	if (**at == '-') {
		++*at;
		if (!take_port(at, &high) || high < low)
			return -EINVAL;
	}
	if (**at && **at != ',' && **at != ' ')
		return -EINVAL;
	*ret_low = low;
	*ret_high = high;
	return 1;
}

bool
port_list_has(const char *list, int64_t port)
{
	uint32_t low, high;

	while (port_list_next(&list, &low, &high) > 0)
		if (port >= low && port <= high)
			return true;
	return false;
}
