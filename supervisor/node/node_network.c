// SPDX-License-Identifier: Apache-2.0
/* node_network.c: fingerprint of the network that tasks share with the host. Runs in: supervisor.
 */
#include "supervisor/node/node_network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "supervisor/node/node_attr.h"

#define SPEED_UNKNOWN 1000
#define FILE_MAX      (1 << 20)
#define ADDRESSES_MAX 16384
#define ROUTE_GATEWAY 2
#define IPV6_LINK     0x20 /* scope "link" in /proc/net/if_inet6 */

/* The state of the search for the node's networks. */
struct search {
	struct node *node;
	const struct agent_config *config;
	char device[CONFIG_DEVICE_SIZE]; /* of the network "default" */
	unsigned metric;
};

/* Calls fn for each line. text is overwritten. */
static void
each_line(char *text, struct search *s, void (*fn)(struct search *s, const char *line))
{
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		fn(s, line);
}

static void
search_file(const char *path, struct search *s, void (*fn)(struct search *s, const char *line))
{
	cleanup_free char *text = NULL;

	if (fd_read_file(AT_FDCWD, path, FILE_MAX, &text) >= 0)
		each_line(text, s, fn);
}

/* Keeps the device of the default route with the lowest metric. */
static void
find_default(struct search *s, const char *line)
{
	char device[CONFIG_DEVICE_SIZE];
	unsigned destination, flags, metric, mask;

	if (sscanf(line, "%15s %x %*x %x %*d %*d %u %x", device, &destination, &flags, &metric,
		&mask) != 5 ||
	    destination != 0 || mask != 0 || !(flags & ROUTE_GATEWAY) ||
	    (s->device[0] && s->metric <= metric))
		return;
	(void)strcpy(s->device, device);
	s->metric = metric;
}

static void
take_device(struct node_network *net, const char *device)
{
	cleanup_free char *mac = NULL, *speed = NULL;
	char path[80];

	str_set(&net->mode, "host");
	str_set(&net->device, device);
	(void)snprintf(path, sizeof path, "/sys/class/net/%s/address", device);
	if (fd_read_file(AT_FDCWD, path, 64, &mac) > 0) {
		mac[strcspn(mac, "\n")] = '\0';
		str_set(&net->mac_address, mac);
	}
	(void)snprintf(path, sizeof path, "/sys/class/net/%s/speed", device);
	net->speed = SPEED_UNKNOWN;
	if (fd_read_file(AT_FDCWD, path, 64, &speed) > 0 && atol(speed) > 0)
		net->speed = atol(speed);
}

static struct node_network *
network_of(struct search *s, const char *device)
{
	struct node_resources *res = &s->node->node_resources;
	struct node_network *net;

	for (size_t i = 0; i < res->node_networks.n; i++)
		if (str_eq(res->node_networks.v[i].device, device))
			return &res->node_networks.v[i];
	net = list_add(node_network, &res->node_networks);
	take_device(net, device);
	return net;
}

static void
add_address(struct search *s, const char *device, int family, const char *alias,
    const char *reserved_ports, const char *address)
{
	struct node_network *net = network_of(s, device);
	struct node_address *a = list_add(node_address, &net->addresses);

	str_set(&a->family, family == AF_INET6 ? "ipv6" : "ipv4");
	str_set(&a->alias, alias);
	str_set(&a->address, address);
	str_set(&a->reserved_ports, reserved_ports);
}

static bool
is_in(const struct config_host_network *net, int family, const unsigned char *address)
{
	unsigned whole = net->prefix_bits / 8, rest = net->prefix_bits % 8;

	if (net->family == 0)
		return true;
	return net->family == family && memcmp(net->prefix, address, whole) == 0 &&
	       (rest == 0 || (net->prefix[whole] ^ address[whole]) >> (8 - rest) == 0);
}

/* Adds an address once for each of its aliases. */
static void
take_address(struct search *s, const char *device, int family, const void *address)
{
	char text[INET6_ADDRSTRLEN];

	if (!inet_ntop(family, address, text, sizeof text))
		return;
	if (strcmp(device, s->device) == 0)
		add_address(s, device, family, "default", "", text);
	for (uint32_t i = 0; i < s->config->n_host_networks; i++) {
		const struct config_host_network *net = &s->config->host_networks[i];

		if ((!net->interface[0] || strcmp(net->interface, device) == 0) &&
		    is_in(net, family, address))
			add_address(s, device, family, net->name, net->reserved_ports, text);
	}
}

static void
find_ipv4(struct search *s)
{
	cleanup_free struct ifreq *reqs = NULL;
	struct ifconf conf = { 0 };
	cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	size_t n;

	/* Without a buffer it returns the size that it needs. */
	if (fd < 0 || ioctl(fd, SIOCGIFCONF, &conf) < 0)
		return;
	n = (size_t)conf.ifc_len / sizeof *reqs + 1;
	if (n > ADDRESSES_MAX) {
		log_warn("this node has %zu addresses; only the first %d are used", n - 1,
		    ADDRESSES_MAX);
		n = ADDRESSES_MAX;
	}
	reqs = mem_zeroed(n, sizeof *reqs);
	conf = (struct ifconf){ .ifc_len = (int)(n * sizeof *reqs), .ifc_req = reqs };
	if (ioctl(fd, SIOCGIFCONF, &conf) < 0)
		return;
	for (size_t i = 0; i < (size_t)conf.ifc_len / sizeof *reqs; i++) {
		const struct sockaddr_in *in = (const void *)&reqs[i].ifr_addr;

		/* An address may have a label: eth0:1. */
		reqs[i].ifr_name[strcspn(reqs[i].ifr_name, ":")] = '\0';
		take_address(s, reqs[i].ifr_name, AF_INET, &in->sin_addr);
	}
}

/* A line is: 32 digits, index, prefix, scope, flags, device. */
static void
find_ipv6(struct search *s, const char *line)
{
	char digits[33], device[CONFIG_DEVICE_SIZE];
	unsigned char a[16];
	unsigned scope;

	if (sscanf(line, "%32s %*x %*x %x %*x %15s", digits, &scope, device) != 3 ||
	    strlen(digits) != 32 || scope == IPV6_LINK)
		return;
	for (size_t i = 0; i < sizeof a; i++)
		if (sscanf(digits + 2 * i, "%2hhx", &a[i]) != 1)
			return;
	take_address(s, device, AF_INET6, a);
}

/* Fills in the older form of the networks: one entry for the first address. */
static void
take_resource(struct node *n, const struct node_network *net)
{
	struct network_resource *res;
	const char *ip = net->addresses.v[0].address;

	res = list_add(network_resource, &n->node_resources.networks);
	str_set(&res->mode, "host");
	str_set(&res->device, net->device);
	str_set(&res->ip, ip);
	str_setf(&res->cidr, "%s/%d", ip, strchr(ip, ':') ? 128 : 32);
	res->mbits = net->speed > SPEED_UNKNOWN ? net->speed : SPEED_UNKNOWN;
	node_attr(n, "unique.network.ip-address", ip);
}

/* Returns whether a program is in one of these directories, which have ':' between them. */
static bool
has_program(const char *path, const char *name)
{
	char dirs[CONFIG_PATH_SIZE], file[CONFIG_PATH_SIZE + 16], *rest = dirs, *dir;

	(void)strcpy(dirs, path);
	while ((dir = strsep(&rest, ":"))) {
		(void)snprintf(file, sizeof file, "%s/%s", dir, name);
		if (*dir && access(file, X_OK) == 0)
			return true;
	}
	return false;
}

bool
node_network_has_plugins(const struct agent_config *c)
{
	return has_program(c->cni.path, "bridge");
}

/* The plugins are those that make_bridge() of network-helper/net_config.c names; they run iptables.
 */
int
node_network_check_bridge(const struct agent_config *c, struct err *e)
{
	static const char *const plugins[] = { "loopback", "bridge", "host-local", "firewall",
		"portmap" };

	for (size_t i = 0; i < ELEMENTSOF(plugins); i++)
		if (!has_program(c->cni.path, plugins[i]))
			return err_say(e, -ENOENT,
			    "CNI plugin \"%s\" is not in %s: install "
			    "containernetworking-plugins, or set cni_path",
			    plugins[i], c->cni.path);
	if (!has_program(CNI_PROGRAMS, "iptables"))
		return err_say(e, -ENOENT,
		    "there is no iptables in " CNI_PROGRAMS ": install the package iptables");
	return 0;
}

/* The servers compare only the mode. */
void
node_network_add_cni(struct node *n, const char *name)
{
	struct node_network *net = list_add(node_network, &n->node_resources.node_networks);
	struct network_resource *res = list_add(network_resource, &n->node_resources.networks);

	str_setf(&net->mode, "cni/%s", name);
	str_setf(&res->mode, "cni/%s", name);
}

bool
node_network_bridge_ip(const struct agent_config *c, char ret[INET_ADDRSTRLEN])
{
	char text[CONFIG_CIDR_SIZE];
	struct in_addr address;

	(void)strcpy(text, c->cni.subnet);
	text[strcspn(text, "/")] = '\0';
	if (!node_network_has_plugins(c) || inet_pton(AF_INET, text, &address) != 1)
		return false;
	address.s_addr = htonl(ntohl(address.s_addr) + 1);
	return inet_ntop(AF_INET, &address, ret, INET_ADDRSTRLEN) != NULL;
}

/* The network of allocations whose mode is "bridge". */
static void
take_bridge(struct node *n, const struct agent_config *c)
{
	struct node_network *net = list_add(node_network, &n->node_resources.node_networks);
	struct network_resource *res = list_add(network_resource, &n->node_resources.networks);

	str_set(&net->mode, "bridge");
	str_set(&net->device, c->cni.bridge);
	str_set(&res->mode, "bridge");
	str_set(&res->device, c->cni.bridge);
}

static void
find_device(struct search *s)
{
	if (s->config->network_interface[0])
		(void)strcpy(s->device, s->config->network_interface);
	else
		search_file("/proc/net/route", s, find_default);
	if (!s->device[0])
		(void)strcpy(s->device, "lo");
}

static json_t *
pack_host_networks(const struct agent_config *c)
{
	json_t *all = c->n_host_networks > 0 ? json_object() : NULL;

	for (uint32_t i = 0; all && i < c->n_host_networks; i++) {
		const struct config_host_network *net = &c->host_networks[i];

		(void)json_object_set_new(all, net->name,
		    json_pack("{s:s,s:s,s:s,s:s}", "Name", net->name, "CIDR", net->cidr,
			"Interface", net->interface, "ReservedPorts", net->reserved_ports));
	}
	return all;
}

void
node_network_take(struct node *n, const struct agent_config *c)
{
	struct search s = { .node = n, .config = c };

	find_device(&s);
	(void)network_of(&s, s.device); /* "default" is the first network */
	find_ipv4(&s);
	search_file("/proc/net/if_inet6", &s, find_ipv6);
	/* Without an address tasks can still reach each other. */
	if (n->node_resources.node_networks.v[0].addresses.n == 0) {
		log_warn("interface %s has no address: tasks get 127.0.0.1", s.device);
		add_address(&s, s.device, AF_INET, "default", "", "127.0.0.1");
	}
	take_resource(n, &n->node_resources.node_networks.v[0]);
	if (node_network_check_bridge(c, NULL) == 0)
		take_bridge(n, c);
	n->host_networks = pack_host_networks(c);
	n->node_resources.min_dynamic_port = (int64_t)c->min_dynamic_port;
	n->node_resources.max_dynamic_port = (int64_t)c->max_dynamic_port;
	str_set(&n->reserved_resources.networks.reserved_host_ports, c->cni.reserved_ports);
}
