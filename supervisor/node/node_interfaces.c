// SPDX-License-Identifier: Apache-2.0
/* node_interfaces.c: reads the addresses of the machine's network interfaces. Runs in: supervisor.
 */
#include "supervisor/node/node_interfaces.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"

#define FILE_MAX      (1 << 20)
#define ADDRESSES_MAX 256 /* more are left out: they are sent with each template that asks */
#define ROUTE_GATEWAY 2

struct address {
	char name[IFNAMSIZ];
	char text[INET6_ADDRSTRLEN + 4];
	long index;
	bool v6;
};

struct found {
	struct address v[ADDRESSES_MAX];
	size_t n;
	char gateway[IFNAMSIZ]; /* the interface of the default route; "" if there is none */
	unsigned metric;
};

static char *
read_of(const char *name, const char *what)
{
	cleanup_free char *text = NULL;
	char path[80];

	(void)snprintf(path, sizeof path, "/sys/class/net/%s/%s", name, what);
	if (fd_read_file(AT_FDCWD, path, 64, &text) < 0)
		return mem_strdup("");
	text[strcspn(text, "\n")] = '\0';
	return steal_ptr(&text);
}

static long
number_of(const char *name, const char *what)
{
	cleanup_free char *text = read_of(name, what);

	return atol(text);
}

static void
add(struct found *f, const char *name, int family, const void *bytes, unsigned bits)
{
	struct address *a = &f->v[f->n];
	char text[INET6_ADDRSTRLEN];

	if (f->n == ADDRESSES_MAX || !inet_ntop(family, bytes, text, sizeof text))
		return;
	*a = (struct address){ .index = number_of(name, "ifindex"), .v6 = family == AF_INET6 };
	(void)snprintf(a->name, sizeof a->name, "%s", name);
	(void)snprintf(a->text, sizeof a->text, "%s/%u", text, bits);
	f->n++;
}

static void
find_ipv4(struct found *f, int fd)
{
	struct ifreq reqs[ADDRESSES_MAX];
	struct ifconf conf = { .ifc_len = sizeof reqs, .ifc_req = reqs };

	if (ioctl(fd, SIOCGIFCONF, &conf) < 0)
		return;
	for (size_t i = 0; i < (size_t)conf.ifc_len / sizeof *reqs; i++) {
		const struct sockaddr_in address = *(const struct sockaddr_in *)&reqs[i].ifr_addr;
		const struct sockaddr_in *mask = (const void *)&reqs[i].ifr_netmask;

		/* With the label and the address it finds one address of several. */
		if (ioctl(fd, SIOCGIFNETMASK, &reqs[i]) < 0)
			continue;
		reqs[i].ifr_name[strcspn(reqs[i].ifr_name, ":")] = '\0';
		add(f, reqs[i].ifr_name, AF_INET, &address.sin_addr,
		    (unsigned)__builtin_popcount(mask->sin_addr.s_addr));
	}
}

/* A line of /proc/net/if_inet6 is: 32 digits, index, prefix, scope, flags, device. */
static void
find_ipv6(struct found *f, const char *line)
{
	char digits[33], name[IFNAMSIZ];
	unsigned char bytes[16];
	unsigned bits;

	if (sscanf(line, "%32s %*x %x %*x %*x %15s", digits, &bits, name) != 3 ||
	    strlen(digits) != 32)
		return;
	for (size_t i = 0; i < sizeof bytes; i++)
		if (sscanf(digits + 2 * i, "%2hhx", &bytes[i]) != 1)
			return;
	add(f, name, AF_INET6, bytes, bits);
}

/* A line of /proc/net/route. */
static void
find_gateway(struct found *f, const char *line)
{
	char name[IFNAMSIZ];
	unsigned destination, flags, metric, mask;

	if (sscanf(line, "%15s %x %*x %x %*d %*d %u %x", name, &destination, &flags, &metric,
		&mask) != 5 ||
	    destination != 0 || mask != 0 || !(flags & ROUTE_GATEWAY) ||
	    (f->gateway[0] && f->metric <= metric))
		return;
	(void)strcpy(f->gateway, name);
	f->metric = metric;
}

static void
each_line(const char *path, struct found *f, void (*fn)(struct found *f, const char *line))
{
	cleanup_free char *text = NULL;
	char *save = NULL;

	if (fd_read_file(AT_FDCWD, path, FILE_MAX, &text) < 0)
		return;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		fn(f, line);
}

static bool
is_before(const struct address *a, const struct address *b)
{
	return a->index != b->index ? a->index < b->index : !a->v6 && b->v6;
}

/* Addresses of one interface stay in the order of the kernel. */
static void
sort(struct found *f)
{
	for (size_t i = 1; i < f->n; i++)
		for (size_t k = i; k > 0 && is_before(&f->v[k], &f->v[k - 1]); k--) {
			struct address swapped = f->v[k];

			f->v[k] = f->v[k - 1];
			f->v[k - 1] = swapped;
		}
}

/* As Go's package net shows them. */
static void
show_flags(int fd, const char *name, char *ret, size_t size)
{
	static const struct {
		short flag;
		const char *name;
	} all[] = { { IFF_UP, "up" }, { IFF_BROADCAST, "broadcast" }, { IFF_LOOPBACK, "loopback" },
		{ IFF_POINTOPOINT, "pointtopoint" }, { IFF_MULTICAST, "multicast" },
		{ IFF_RUNNING, "running" } };
	struct ifreq req = { 0 };
	size_t len = 0;

	(void)snprintf(req.ifr_name, sizeof req.ifr_name, "%s", name);
	(void)snprintf(ret, size, "0");
	if (ioctl(fd, SIOCGIFFLAGS, &req) < 0)
		return;
	for (size_t i = 0; i < ELEMENTSOF(all); i++)
		if (req.ifr_flags & all[i].flag)
			len += (size_t)snprintf(
			    ret + len, size - len, "%s%s", len > 0 ? "|" : "", all[i].name);
}

static json_t *
describe(int fd, const struct found *f, const struct address *a)
{
	cleanup_free char *hardware = read_of(a->name, "address");
	char flags[80];

	show_flags(fd, a->name, flags, sizeof flags);
	/* A loopback interface has none. */
	if (strspn(hardware, "0:") == strlen(hardware))
		*hardware = '\0';
	return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:b}", "name", a->name, "address", a->text,
	    "hardware", hardware, "flags", flags, "index", (json_int_t)a->index, "mtu",
	    (json_int_t)number_of(a->name, "mtu"), "default", strcmp(a->name, f->gateway) == 0);
}

json_t *
node_interfaces(void)
{
	cleanup_free struct found *f = mem_zeroed(1, sizeof *f);
	cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	json_t *list = json_array();

	each_line("/proc/net/route", f, find_gateway);
	find_ipv4(f, fd);
	each_line("/proc/net/if_inet6", f, find_ipv6);
	sort(f);
	for (size_t i = 0; i < f->n; i++)
		(void)json_array_append_new(list, describe(fd, f, &f->v[i]));
	return list;
}
