/* SPDX-License-Identifier: Apache-2.0 */
/* service_place.h: the addresses and ports of services and checks. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVICE_SERVICE_PLACE_H
#define DROVER_SUPERVISOR_SERVICE_SERVICE_PLACE_H

#include "common/err.h"
#include "supervisor/service/ports.h"

/* Returns the port inside the network of a container's own (task), or of its group (NULL). */
int64_t port_inside(const struct task *task, const char *label, const struct port_at *at);

/* The error for a service or check with address_mode "driver" whose task has no such network. */
#define SERVICE_NEEDS_DRIVER_NETWORK                                                               \
	"address_mode \"driver\" needs a container with a network of its own: a task of driver "   \
	"docker or podman, in a group without a network of its own, and without network_mode "     \
	"\"host\" or \"none\""

struct service_place {
	const struct task *task; /* whose service it is; NULL: the group's */
	const char *address;     /* the service's own, or NULL */
	const char *mode;
	const char *port_label;
};

/* Finds the address and port of a service or check. The caller frees *ret_address. Returns 0, or
 * -EINVAL with *e. */
int service_place_resolve(struct sup *sup, const struct alloc *a, const struct service_place *place,
    char **ret_address, int64_t *ret_port, struct err *e);

#endif
