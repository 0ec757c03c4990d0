/* SPDX-License-Identifier: Apache-2.0 */
/* ports.h: the ports of an alloc, and at which address its services and checks are. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVICE_PORTS_H
#define DROVER_SUPERVISOR_SERVICE_PORTS_H

#include "supervisor/table/alloc_table.h"

struct port_at {
	const char *ip; /* of the host; "" where the source gave none */
	int64_t value, to;
};

/* The alloc's port of this label: of its group, else of one of its tasks. */
bool port_find(const struct alloc *a, const char *label, struct port_at *ret);
/* Each port of the alloc; task NULL: of its group, else of that task's own network. */
typedef void port_fn(void *arg, const char *task, const char *label, const struct port_at *at);
void port_each(const struct alloc *a, port_fn *fn, void *arg);

struct service_place {
	const char *address; /* the service's own, or NULL */
	const char *mode;
	const char *port_label;
};

/* Where it is: *ret_address is the caller's. 0, or -EINVAL with a sentence. */
int service_place_resolve(struct sup *sup, const struct alloc *a, const struct service_place *place,
    char **ret_address, int64_t *ret_port, struct err *e);

#endif
