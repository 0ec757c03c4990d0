/* SPDX-License-Identifier: Apache-2.0 */
/* local_shortage.h: why a slot could not be placed, as far as something can be done about it. Runs
 * in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_CAPACITY_LOCAL_SHORTAGE_H
#define DROVER_SUPERVISOR_SERVER_CAPACITY_LOCAL_SHORTAGE_H

#include "supervisor/server/capacity/local_usage.h"

struct local_address;

enum local_shortage_kind {
	LOCAL_SHORT_OTHER,         /* a constraint, a driver or a volume: the node must change */
	LOCAL_SHORT_USAGE,         /* the node has not so much left */
	LOCAL_SHORT_PORT,          /* this static port is taken */
	LOCAL_SHORT_DYNAMIC_PORTS, /* more dynamic ports are needed than are free */
};

struct local_shortage {
	enum local_shortage_kind kind;
	struct local_usage usage;
	const struct local_address *at; /* of the ports. NULL: no alloc has had one of it */
	int64_t port;                   /* its number; or of dynamic ones, how many were free */
};

/* Do the two wait for the same? */
static inline bool
local_shortage_equal(const struct local_shortage *a, const struct local_shortage *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == LOCAL_SHORT_USAGE)
		return local_usage_equal(&a->usage, &b->usage);
	return a->at == b->at && a->port == b->port;
}

#endif
