// SPDX-License-Identifier: Apache-2.0
/* service_place.c: finds the addresses and ports of services and checks. Runs in: supervisor. */
#include "supervisor/service/service_place.h"

#include <errno.h>

#include "supervisor/driver/container.h"
#include "supervisor/node/node_state.h"

int64_t
port_inside(const struct task *task, const char *label, const struct port_at *at)
{
	int64_t mapped = task ? container_port_inside(task, label) : 0;

	return mapped > 0 ? mapped : at->to > 0 ? at->to : at->value;
}

static int
find_port(
    const struct alloc *a, const char *label, struct port_at *ret, bool *ret_found, struct err *e)
{
	*ret = (struct port_at){ 0 };
	*ret_found = port_find(a, label, ret);
	if (*ret_found || !*label)
		return 0;
	ret->value = port_number(label);
	return ret->value > 0
		   ? 0
		   : err_say(e, -EINVAL,
			 "port \"%s\" is neither a number nor a label of the allocation's network",
			 label);
}

int
service_place_resolve(struct sup *sup, const struct alloc *a, const struct service_place *place,
    char **ret_address, int64_t *ret_port, struct err *e)
{
	bool own = *str(place->address), found, advertised = false;
	const char *label = str(place->port_label), *mode = str(place->mode), *ip;
	const char *alone = place->task ? container_address(place->task, a, &advertised) : "";
	struct port_at at;

	if (!*mode || str_eq(mode, "auto"))
		mode = own ? "own" : advertised ? "driver" : "host";
	else if (own)
		return err_say(
		    e, -EINVAL, "address \"%s\" requires address_mode \"auto\"", place->address);
	if (str_eq(mode, "driver") && !*alone)
		return err_say(e, -EINVAL, SERVICE_NEEDS_DRIVER_NETWORK);
	if (str_eq(mode, "alloc") && !(a->network_status && a->network_status->address))
		return err_say(e, -EINVAL,
		    "address_mode \"alloc\" needs a network of the allocation's own: set the mode "
		    "of the group's network to \"bridge\" or \"cni/NAME\"");
	if (find_port(a, label, &at, &found, e) < 0)
		return e->code;
	if (str_eq(mode, "own")) {
		ip = place->address;
	} else if (str_eq(mode, "driver")) {
		ip = alone;
		at.value = port_inside(place->task, label, &at);
	} else if (str_eq(mode, "alloc")) {
		ip = a->network_status->address;
		at.value = port_inside(NULL, label, &at);
	} else {
		ip = found && *at.ip && !str_eq(at.ip, "0.0.0.0") && !str_eq(at.ip, "::")
			 ? at.ip
			 : node_ip(sup);
	}
	str_set(ret_address, ip);
	*ret_port = at.value;
	return 0;
}
