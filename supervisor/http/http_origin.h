/* SPDX-License-Identifier: Apache-2.0 */
/* http_origin.h: the address that libmicrohttpd is told for a connection that did not come by the
 * control socket, so that a request leads back to its origin. The kernel never gives a peer an
 * address of this family, so no other client can have one. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_HTTP_HTTP_ORIGIN_H
#define DROVER_SUPERVISOR_HTTP_HTTP_ORIGIN_H

#include <string.h>
#include <sys/socket.h>

struct http_tcp;
struct task_socket;

struct http_origin {
	sa_family_t family;       /* AF_UNSPEC */
	struct task_socket *task; /* or: */
	struct http_tcp *tcp;     /* a client of the API over TCP. Both NULL: the listener itself */
};

/* Returns whether the connection has an origin, in *ret; false: it came by the control socket. */
static inline bool
http_origin_of(const struct sockaddr *from, struct http_origin *ret)
{
	if (from->sa_family != AF_UNSPEC)
		return false;
	memcpy(ret, from, sizeof *ret);
	return true;
}

#endif
