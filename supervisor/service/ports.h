/* SPDX-License-Identifier: Apache-2.0 */
/* ports.h: the ports of an alloc. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVICE_PORTS_H
#define DROVER_SUPERVISOR_SERVICE_PORTS_H

#include "supervisor/table/alloc_table.h"

struct port_at {
	const char *ip; /* the host's; "" if the source gave none */
	int64_t value, to;
};

/* Finds the alloc's port with this label: in its group, else in one of its tasks. Returns false if
 * there is none. */
bool port_find(const struct alloc *a, const char *label, struct port_at *ret);
/* Calls fn for each port of the alloc. task is NULL for the group's ports, else the task that has
 * the port in a network of its own. */
typedef void port_fn(void *arg, const char *task, const char *label, const struct port_at *at);
void port_each(const struct alloc *a, port_fn *fn, void *arg);

#endif
