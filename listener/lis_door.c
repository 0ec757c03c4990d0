// SPDX-License-Identifier: Apache-2.0
/* lis_door.c: the TCP addresses: their keys and tokens, and whose connections are accepted. Runs
 * in: listener. Asked by: anyone on the network. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/proc_fd.h"
#include "common/tls.h"
#include "listener/lis.h"

#define ADDRESS_MAX     100 /* connections of one client's address */
#define ACCEPTS         64  /* at once */
#define ACCEPT_AGAIN_MS 200
#define TOKEN_MIN       16

static const struct {
	int fd;
	enum config_file ca, cert, key, token;
	const char *block; /* of the configuration, with the keys */
} table[LISTEN_USES] = {
	[LISTEN_HEALTH] = { FD_SPECIAL, FILE_HEALTH_CA, FILE_HEALTH_CERT, FILE_HEALTH_KEY,
	    FILE_HEALTH_TOKEN, "health.tls" },
	/* ACL tokens are the supervisor's. */
	[LISTEN_API] = { FD_SPECIAL2, FILE_TLS_CA, FILE_TLS_CERT, FILE_TLS_KEY, CONFIG_FILES,
	    "tls" },
};

/* --- the configuration --- */

static bool
has_file(const struct lis *l, enum config_file which)
{
	return l->files >> which & 1;
}

static int
read_token(struct lis_door *d, int fd, struct err *e)
{
	char text[LIS_TOKEN_MAX + 2]; /* with the end of the line, and one more than it may have */
	ssize_t n = pread(fd, text, sizeof text, 0);

	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	for (ssize_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] > '~')
			n = 0;
	if (n < TOKEN_MIN || n > LIS_TOKEN_MAX)
		return err_say(e, -EINVAL,
		    "health.token_file: expected one line of %d to %d printable characters without "
		    "spaces",
		    TOKEN_MIN, LIS_TOKEN_MAX);
	memcpy(d->token, text, (size_t)n);
	d->token_len = (size_t)n;
	return 0;
}

static int
open_tls(const struct lis *l, struct lis_door *d, size_t i, struct err *e)
{
	int ca_fd = has_file(l, table[i].ca) ? FD_FILES + (int)table[i].ca : -1;

	d->tls = tls_new_server(ca_fd, table[i].block, e);
	return !d->tls ? e->code
		       : tls_identify(d->tls, FD_FILES + (int)table[i].cert,
			     FD_FILES + (int)table[i].key, table[i].block, e);
}

static int
open_door(const struct lis *l, struct lis_door *d, size_t i, struct err *e)
{
	int r = has_file(l, table[i].cert) ? open_tls(l, d, i, e) : 0;

	if (r == 0 && has_file(l, table[i].token))
		r = read_token(d, FD_FILES + (int)table[i].token, e);
	return r;
}

void
lis_doors_open(struct lis *l)
{
	for (size_t i = 0; i < LISTEN_USES; i++) {
		struct lis_door *d = &l->doors[i];
		struct err e = { 0 };

		*d = (struct lis_door){
			.source.kind = LIS_DOOR, .fd = table[i].fd, .is_api = i == LISTEN_API
		};
		TAILQ_INIT(&d->conns);
		d->refuses = open_door(l, d, i, &e) < 0;
		if (d->refuses)
			log_error("%s: connections to this address are closed until the file is "
				  "right and the configuration is reloaded",
			    e.msg);
	}
	for (int i = 0; i < CONFIG_FILES; i++)
		(void)close(FD_FILES + i);
}

bool
lis_doors_serve(struct lis *l)
{
	bool any = false;

	for (size_t i = 0; i < LISTEN_USES; i++) {
		struct lis_door *d = &l->doors[i];

		if (lis_watch(l, EPOLL_CTL_ADD, d->fd, EPOLLIN, &d->source) < 0)
			d->fd = -1; /* /dev/null */
		any |= d->fd >= 0;
	}
	return any;
}

/* Compares in a time that does not depend on how much is right. */
bool
lis_door_opens_for(const struct lis_door *d, const struct lis_conn *c)
{
	const struct lis_head *head = &c->head;
	unsigned char differs = 0;

	/* The supervisor decides too; this keeps bodies of nobody away from it. */
	if (d->is_api)
		return c->subject[0] || head->token_len > 0 || !head->writes;
	if (d->token_len == 0)
		return true;
	if (!head->token || head->token_len != d->token_len)
		return false;
	for (size_t i = 0; i < d->token_len; i++)
		differs |= (unsigned char)(head->token[i] ^ d->token[i]);
	return differs == 0;
}

/* --- connections --- */

/* One client has a whole /64 of IPv6. */
static struct in6_addr
key_of(const struct sockaddr_storage *from)
{
	struct in6_addr key = { 0 };

	if (from->ss_family == AF_INET) {
		key.s6_addr[10] = key.s6_addr[11] = 0xff;
		memcpy(&key.s6_addr[12], &((const struct sockaddr_in *)from)->sin_addr, 4);
		return key;
	}
	key = ((const struct sockaddr_in6 *)from)->sin6_addr;
	if (!IN6_IS_ADDR_V4MAPPED(&key))
		memset(&key.s6_addr[8], 0, 8);
	return key;
}

static void
write_address(const struct sockaddr_storage *from, char ret[LIS_ADDRESS_SIZE])
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;
	const struct sockaddr_in *in = (const struct sockaddr_in *)from;
	bool mapped = from->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
	char host[INET6_ADDRSTRLEN] = "";

	if (from->ss_family == AF_INET)
		(void)inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
	else if (mapped)
		(void)inet_ntop(AF_INET, &in6->sin6_addr.s6_addr[12], host, sizeof host);
	else
		(void)inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
	(void)snprintf(ret, LIS_ADDRESS_SIZE,
	    from->ss_family == AF_INET6 && !mapped ? "[%s]:%u" : "%s:%u", host,
	    ntohs(from->ss_family == AF_INET ? in->sin_port : in6->sin6_port));
}

/* Ends the connection that has waited longest for its client, to make room for another one. The new
 * client has proven nothing yet, so those with a certificate stay. */
static void
evict(struct lis *l, struct lis_door *d)
{
	struct lis_conn *c, *oldest = NULL;

	TAILQ_FOREACH (c, &d->conns, all)
		if (c->state != LIS_WAITS && !c->relay && !c->subject[0] &&
		    (!oldest || c->since_ms < oldest->since_ms))
			oldest = c;
	if (oldest)
		lis_conn_end(l, oldest);
}

static bool
may_join(struct lis *l, struct lis_door *d, const struct in6_addr *from)
{
	const struct lis_conn *c;
	unsigned n = 0;

	TAILQ_FOREACH (c, &d->conns, all)
		n += memcmp(&c->from, from, sizeof *from) == 0;
	if (n >= ADDRESS_MAX)
		return false;
	if (d->n_conns == LIS_CONNS_MAX)
		evict(l, d);
	return d->n_conns < LIS_CONNS_MAX;
}

static void
wait_for_descriptors(struct lis *l, struct lis_door *d)
{
	log_warn("accept a connection: %s", strerrordesc_np(errno));
	d->accept_at_ms = l->now_ms + ACCEPT_AGAIN_MS;
	(void)lis_watch(l, EPOLL_CTL_MOD, d->fd, 0, &d->source);
}

void
lis_door_accept(struct lis *l, struct lis_door *d)
{
	for (int i = 0; i < ACCEPTS; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t len = sizeof from;
		int fd =
		    accept4(d->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
		char address[LIS_ADDRESS_SIZE];
		struct in6_addr key;

		if (fd < 0 &&
		    (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
			wait_for_descriptors(l, d);
		if (fd < 0)
			return;
		key = key_of(&from);
		write_address(&from, address);
		if (!d->refuses && may_join(l, d, &key))
			lis_conn_new(l, d, fd, &key, address);
		else
			(void)close(fd);
	}
}

void
lis_doors_close(struct lis *l)
{
	for (size_t i = 0; i < LISTEN_USES; i++)
		if (l->doors[i].fd >= 0)
			(void)lis_watch(l, EPOLL_CTL_DEL, l->doors[i].fd, 0, NULL);
}

bool
lis_doors_finish(struct lis *l)
{
	bool any = false;

	for (size_t i = 0; i < LISTEN_USES; i++) {
		struct lis_conn *c, *after;

		TAILQ_FOREACH_SAFE (c, &l->doors[i].conns, all, after)
			lis_conn_finish(l, c);
		any |= l->doors[i].n_conns > 0;
	}
	return any;
}

uint64_t
lis_doors_tick(struct lis *l)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < LISTEN_USES; i++) {
		struct lis_door *d = &l->doors[i];
		uint64_t at = lis_conns_tick(l, d);

		if (d->accept_at_ms && d->accept_at_ms <= l->now_ms) {
			d->accept_at_ms = 0;
			(void)lis_watch(l, EPOLL_CTL_MOD, d->fd, EPOLLIN, &d->source);
		}
		if (at < next)
			next = at;
		if (d->accept_at_ms && d->accept_at_ms < next)
			next = d->accept_at_ms;
	}
	return next;
}
