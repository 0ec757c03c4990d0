/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_sockaddr.h: what the files of the function sockaddr (tpl_sockaddr*.c) share: the addresses of
 * the machine's network interfaces, as github.com/hashicorp/go-sockaddr has them. Runs in:
 * template-renderer. */
#ifndef DROVER_TEMPLATE_TPL_SOCKADDR_H
#define DROVER_TEMPLATE_TPL_SOCKADDR_H

#include "template/go_ip.h"
#include "template/tpl_functions.h"
#include "template/tpl_run.h"

/* One address of an interface. */
struct if_addr {
	struct go_ip ip;
	const struct template_interface *of;
};

/* A list of them, []sockaddr.IfAddr. */
struct if_addrs {
	const struct if_addr **v;
	size_t n;
};

/* Values, and the other way. */
struct go_value if_value(struct arena *a, const struct if_addr *addr);
struct go_value if_list_value(struct arena *a, struct if_addrs list);
struct if_addrs if_list(struct arena *a, struct go_value v);
/* NULL: it is no address. */
const struct if_addr *if_of_value(struct go_value v);

/* All of this machine. */
struct if_addrs if_all(struct go_call *c);
/* The value of an attribute, such as "address"; fails if there is no such. */
struct go_value if_attribute(struct go_call *c, const struct if_addr *addr, struct go_value name);
/* Those that the selector and its parameter keep, or the others if not `kept`. */
struct if_addrs if_filter(
    struct go_call *c, const char *selector, const char *param, struct if_addrs from, bool kept);
/* Sorts a copy by "type,-size". */
struct if_addrs if_sort(struct go_call *c, const char *by, struct if_addrs from);

go_fn sockaddr_all, sockaddr_default, sockaddr_interface_ip, sockaddr_interface_ips,
    sockaddr_private_ip, sockaddr_private_ips, sockaddr_private, sockaddr_public_ip,
    sockaddr_public_ips, sockaddr_public, sockaddr_attr, sockaddr_exclude, sockaddr_include,
    sockaddr_join, sockaddr_limit, sockaddr_math, sockaddr_offset, sockaddr_sort, sockaddr_unique;

#endif
