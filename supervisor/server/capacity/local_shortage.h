/* SPDX-License-Identifier: Apache-2.0 */
/* local_shortage.h: why a slot could not be placed, and so what it waits for. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_CAPACITY_LOCAL_SHORTAGE_H
#define DROVER_SUPERVISOR_SERVER_CAPACITY_LOCAL_SHORTAGE_H

#include "supervisor/server/capacity/local_usage.h"

struct local_address;

enum local_shortage_kind {
	LOCAL_SHORT_OTHER,         /* a constraint, a driver or a volume: the node must change */
	LOCAL_SHORT_USAGE,         /* the node has too few resources left */
	LOCAL_SHORT_PORT,          /* this static port is taken */
	LOCAL_SHORT_DYNAMIC_PORTS, /* too few dynamic ports are free */
};

struct local_shortage {
	enum local_shortage_kind kind;
	struct local_usage usage;       /* LOCAL_SHORT_USAGE: what the slot needs */
	const struct local_address *at; /* of the ports; NULL: no alloc has had a port of it */
	int64_t port; /* the static port's number; or how many dynamic ports were free */
};

/* Returns true if slots with these shortages wait for the same thing. */
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
