// SPDX-License-Identifier: Apache-2.0
/* node_network.c: fingerprint of the network that tasks share with the host. Runs in: supervisor.
 */
#include "supervisor/node/node_network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "supervisor/node/node_attr.h"

#define DEVICE_SIZE   16
#define SPEED_UNKNOWN 1000
#define FILE_MAX      (1 << 20)
#define ROUTE_GATEWAY 2
#define IPV6_LINK     0x20 /* of /proc/net/if_inet6: the scope */
#define IPV6_HOST     0x10

struct route {
	char device[DEVICE_SIZE];
	unsigned destination, gateway, flags, metric,
	    mask; /* in network order, as the file has it */
};

/* Fills *ret from a line of /proc/net/route. */
static bool
parse_route(const char *line, struct route *ret)
{
	return sscanf(line, "%15s %x %x %x %*d %*d %u %x", ret->device, &ret->destination,
		   &ret->gateway, &ret->flags, &ret->metric, &ret->mask) == 6;
}

/* Calls fn for each line behind the first; text is cut up. */
static void
each_line(char *text, void (*fn)(void *arg, const char *line), void *arg)
{
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		fn(arg, line);
}

struct search {
	char device[DEVICE_SIZE]; /* of the default route */
	unsigned metric;
	struct route nets[64]; /* directly connected, of that device */
	size_t n_nets;
	char last[INET_ADDRSTRLEN]; /* fib_trie: the address whose kind comes next */
	struct node_network *net;
};

static void
find_default(void *arg, const char *line)
{
	struct search *s = arg;
	struct route r;

	if (!parse_route(line, &r) || r.destination != 0 || r.mask != 0 ||
	    !(r.flags & ROUTE_GATEWAY) || (s->device[0] && s->metric <= r.metric))
		return;
	(void)strcpy(s->device, r.device);
	s->metric = r.metric;
}

static void
find_nets(void *arg, const char *line)
{
	struct search *s = arg;
	struct route r;

	if (s->n_nets < sizeof s->nets / sizeof s->nets[0] && parse_route(line, &r) &&
	    strcmp(r.device, s->device) == 0 && r.gateway == 0 && r.mask != 0)
		s->nets[s->n_nets++] = r;
}

static void
add_address(struct node_network *net, const char *family, const char *address)
{
	struct node_address *a;

	for (size_t i = 0; i < net->addresses.n; i++)
		if (str_eq(net->addresses.v[i].address, address))
			return;
	a = list_add(node_address, &net->addresses);
	if (!a)
		return;
	(void)str_set(&a->family, family);
	(void)str_set(&a->alias, "default");
	(void)str_set(&a->address, address);
}

static bool
is_of_device(const struct search *s, in_addr_t address)
{
	bool loopback = (ntohl(address) >> 24) == 127;

	if (strcmp(s->device, "lo") == 0)
		return loopback;
	for (size_t i = 0; i < s->n_nets; i++)
		if ((address & s->nets[i].mask) == s->nets[i].destination)
			return true;
	return false;
}

/* "|-- 192.0.2.2" and below it "/32 host LOCAL". */
static void
find_ipv4(void *arg, const char *line)
{
	struct search *s = arg;
	const char *leaf = strstr(line, "|-- ");
	struct in_addr a;

	if (leaf) {
		s->last[0] = '\0';
		(void)sscanf(leaf, "|-- %15s", s->last);
	} else if (strstr(line, "/32 host LOCAL") && inet_pton(AF_INET, s->last, &a) == 1 &&
		   is_of_device(s, a.s_addr)) {
		add_address(s->net, "ipv4", s->last);
	}
}

/* 32 digits, index, prefix, scope, flags, device. */
static void
find_ipv6(void *arg, const char *line)
{
	struct search *s = arg;
	char digits[33], device[DEVICE_SIZE], text[INET6_ADDRSTRLEN];
	struct in6_addr a;
	unsigned scope;

	if (sscanf(line, "%32s %*x %*x %x %*x %15s", digits, &scope, device) != 3 ||
	    strcmp(device, s->device) != 0 || strlen(digits) != 32 || scope == IPV6_LINK ||
	    scope == IPV6_HOST)
		return;
	for (size_t i = 0; i < sizeof a.s6_addr; i++) {
		unsigned byte;

		if (sscanf(digits + 2 * i, "%2x", &byte) != 1)
			return;
		a.s6_addr[i] = (uint8_t)byte;
	}
	if (inet_ntop(AF_INET6, &a, text, sizeof text))
		add_address(s->net, "ipv6", text);
}

static void
search_file(const char *path, struct search *s, void (*fn)(void *arg, const char *line))
{
	cleanup_free char *text = NULL;

	if (fd_read_file(AT_FDCWD, path, FILE_MAX, &text) >= 0)
		each_line(text, fn, s);
}

static void
take_device(struct node_network *net, const char *device)
{
	cleanup_free char *mac = NULL, *speed = NULL;
	char path[80];

	(void)str_set(&net->mode, "host");
	(void)str_set(&net->device, device);
	(void)snprintf(path, sizeof path, "/sys/class/net/%s/address", device);
	if (fd_read_file(AT_FDCWD, path, 64, &mac) > 0) {
		mac[strcspn(mac, "\n")] = '\0';
		(void)str_set(&net->mac_address, mac);
	}
	(void)snprintf(path, sizeof path, "/sys/class/net/%s/speed", device);
	net->speed = SPEED_UNKNOWN;
	if (fd_read_file(AT_FDCWD, path, 64, &speed) > 0 && atol(speed) > 0)
		net->speed = atol(speed);
}

/* The shape before NodeNetworks: one entry for the first address. */
static void
take_resource(struct node *n, const struct node_network *net)
{
	struct network_resource *res;
	const char *ip = net->addresses.v[0].address;

	res = list_add(network_resource, &n->node_resources.networks);
	if (!res)
		return;
	(void)str_set(&res->mode, "host");
	(void)str_set(&res->device, net->device);
	(void)str_set(&res->ip, ip);
	(void)str_setf(&res->cidr, "%s/%d", ip, strchr(ip, ':') ? 128 : 32);
	res->mbits = net->speed > SPEED_UNKNOWN ? net->speed : SPEED_UNKNOWN;
	node_attr(n, "unique.network.ip-address", ip);
}

void
node_network_take(struct node *n)
{
	struct search s = { 0 };

	search_file("/proc/net/route", &s, find_default);
	if (!s.device[0])
		(void)strcpy(s.device, "lo");
	search_file("/proc/net/route", &s, find_nets);
	s.net = list_add(node_network, &n->node_resources.node_networks);
	if (!s.net)
		return;
	take_device(s.net, s.device);
	search_file("/proc/net/fib_trie", &s, find_ipv4);
	search_file("/proc/net/if_inet6", &s, find_ipv6);
	/* A device without an address, or a kernel without these files: tasks can reach themselves.
	 */
	if (s.net->addresses.n == 0)
		add_address(s.net, "ipv4", "127.0.0.1");
	take_resource(n, s.net);
}
