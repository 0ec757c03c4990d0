// SPDX-License-Identifier: Apache-2.0
/* net_sysctl.c: the settings of its network namespace that a job may choose: of sockets, and of
 * interfaces those that all of them or new ones have. Runs in: supervisor, network-helper. */
#include "common/net_sysctl.h"

#include <string.h>

#include "common/cleanup.h"

/* Not in these lists is what reaches others: answers to ARP for other addresses (proxy_), packets
 * from other addresses (ip_nonlocal_bind), and congestion control, which would load a module of the
 * kernel and permit it to all users of the machine. */
static const char *const allowed[] = { "net.core.", "net.ipv4.tcp_", "net.ipv4.udp_",
	"net.ipv4.icmp_", "net.ipv4.ip_forward", "net.ipv4.ip_local_",
	"net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.conf.all.",
	"net.ipv4.conf.default.", "net.ipv6.bindv6only", "net.ipv6.conf.all.",
	"net.ipv6.conf.default.", "net.unix." };
static const char *const refused[] = { "proxy_", "congestion_control", ".." };

bool
net_sysctl_is_allowed(const char *name)
{
	bool found = false;

	for (size_t i = 0; i < ELEMENTSOF(allowed); i++)
		found |= strncmp(name, allowed[i], strlen(allowed[i])) == 0;
	for (size_t i = 0; i < ELEMENTSOF(refused); i++)
		found &= !strstr(name, refused[i]);
	return found && !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.")];
}
