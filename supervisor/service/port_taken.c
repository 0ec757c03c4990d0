// SPDX-License-Identifier: Apache-2.0
/*
 * port_taken.c: asks the kernel for the sockets of the machine's network (NETLINK_SOCK_DIAG), which
 * it lists for everybody, also those of other users and with ports below 1024. Runs in: supervisor.
 */
#include "supervisor/service/port_taken.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/mem.h"

#define ANSWER_MAX 32768 /* bytes of one answer: what the kernel writes at most */

struct search {
	const struct port_wanted *wanted;
	size_t n;
	bool ipv6;
	int protocol;
};

/* A socket that others can reach. */
struct listener {
	int family;
	uint32_t port, uid;
	uint8_t address[sizeof(struct in6_addr)];
	bool any;       /* it has no address: it gets what is sent to each of the machine's */
	bool only_ipv6; /* of AF_INET6: also if it has no address */
};

static bool
read_listener(const struct nlmsghdr *h, struct listener *l)
{
	static const struct in6_addr none;
	const struct inet_diag_msg *msg = NLMSG_DATA(h);
	const struct rtattr *a = (const void *)(msg + 1);
	size_t left;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof *msg))
		return false;
	*l = (struct listener){ .family = msg->idiag_family,
		.port = ntohs(msg->id.idiag_sport),
		.uid = msg->idiag_uid };
	memcpy(l->address, msg->id.idiag_src, sizeof l->address);
	if (l->family == AF_INET)
		memset(l->address + sizeof(struct in_addr), 0,
		    sizeof l->address - sizeof(struct in_addr));
	else if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)l->address)) {
		l->family = AF_INET;
		memmove(l->address, l->address + 12, sizeof(struct in_addr));
		memset(l->address + sizeof(struct in_addr), 0, 12);
	}
	l->any = memcmp(l->address, &none, sizeof none) == 0;
	left = h->nlmsg_len - NLMSG_LENGTH(sizeof *msg);
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == INET_DIAG_SKV6ONLY && RTA_PAYLOAD(a) >= 1)
			l->only_ipv6 = *(const uint8_t *)RTA_DATA(a) != 0;
	return true;
}

/* Returns whether the socket gets what is sent to the address (NULL: to any) of this family. */
static bool
gets(const struct listener *l, int family, const void *address)
{
	size_t size = family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);

	if (l->family != family && (family == AF_INET6 || !l->any || l->only_ipv6))
		return false;
	return l->any || !address || memcmp(l->address, address, size) == 0;
}

static bool
takes(const struct search *s, const struct listener *l, const struct port_wanted *w)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct in6_addr address;

	if (l->port != w->port)
		return false;
	for (size_t i = 0; i < ELEMENTSOF(families); i++)
		if ((families[i] == AF_INET || s->ipv6) &&
		    (!*w->ip || inet_pton(families[i], w->ip, &address) == 1) &&
		    gets(l, families[i], *w->ip ? &address : NULL))
			return true;
	return false;
}

static int
say_taken(
    const struct search *s, const struct listener *l, const struct port_wanted *w, struct err *e)
{
	const char *protocol = s->protocol == IPPROTO_TCP ? "tcp" : "udp";
	char place[INET6_ADDRSTRLEN] = "";

	(void)inet_ntop(l->family, l->address, place, sizeof place);
	return err_say(e, -EADDRINUSE,
	    "port \"%.60s\" (%u/%s at %s) is in use: a program of this machine, with uid %u, has "
	    "it at %s%s%s and would lose its traffic; stop that program (`ss -lntup 'sport = "
	    ":%u'` shows it), or give the job another port or host_network",
	    w->label, w->port, protocol, *w->ip ? w->ip : "all addresses", l->uid,
	    l->family == AF_INET6 ? "[" : "", place, l->family == AF_INET6 ? "]" : "", w->port);
}

/* Returns 1 at the end of the list. Both kinds of a message that ends it begin with an errno. */
static int
read_message(const struct search *s, const struct nlmsghdr *h, struct err *e)
{
	bool ends = h->nlmsg_type == NLMSG_DONE;
	struct listener l;

	if (ends || h->nlmsg_type == NLMSG_ERROR) {
		int error =
		    h->nlmsg_len < NLMSG_LENGTH(sizeof error) ? -EBADMSG : *(int *)NLMSG_DATA(h);

		return error < 0 ? error : ends ? 1 : -EBADMSG;
	}
	if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY || !read_listener(h, &l))
		return -EBADMSG;
	for (size_t i = 0; i < s->n; i++)
		if (takes(s, &l, &s->wanted[i]))
			return say_taken(s, &l, &s->wanted[i], e);
	return 0;
}

/* The kernel writes the next part of its list when the one before has been read, so nothing of this
 * waits. */
static int
read_list(const struct search *s, int fd, struct err *e)
{
	cleanup_free char *buf = mem_alloc(ANSWER_MAX);
	int r = 0;

	while (r == 0) {
		ssize_t got = recv(fd, buf, ANSWER_MAX, MSG_DONTWAIT);
		size_t n = got < 0 ? 0 : (size_t)got;
		const struct nlmsghdr *h = (const void *)buf;

		if (got <= 0)
			return got < 0 ? -errno : -EBADMSG;
		for (; r == 0 && NLMSG_OK(h, n); h = NLMSG_NEXT(h, n))
			r = read_message(s, h, e);
	}
	return r < 0 ? r : 0;
}

static int
search_sockets(const struct search *s, int family, struct err *e)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 body;
	} req = {
		.head = { .nlmsg_len = sizeof req,
		    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.body = { .sdiag_family = (uint8_t)family,
		    .sdiag_protocol = (uint8_t)s->protocol,
		    .idiag_states = 1u << (s->protocol == IPPROTO_TCP ? TCP_LISTEN : TCP_CLOSE) },
	};
	cleanup_close int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd < 0 || send(fd, &req, sizeof req, 0) < 0)
		return -errno;
	return read_list(s, fd, e);
}

int
port_check_free(const struct port_wanted *wanted, size_t n, bool ipv6, struct err *e)
{
	static const struct {
		int family, protocol;
	} lists[] = { { AF_INET, IPPROTO_TCP }, { AF_INET6, IPPROTO_TCP }, { AF_INET, IPPROTO_UDP },
		{ AF_INET6, IPPROTO_UDP } };
	int r = 0;

	for (size_t i = 0; n > 0 && r == 0 && i < ELEMENTSOF(lists); i++) {
		struct search s = { wanted, n, ipv6, lists[i].protocol };

		r = search_sockets(&s, lists[i].family, e);
	}
	return r < 0 && !e->code ? err_set(e, r, "ask the kernel for the sockets of this machine")
				 : r;
}
