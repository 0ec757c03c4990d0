/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_gate.h: the clients of the API over TCP, and which of their requests are looked at: those of
 * a client that has proven itself by a certificate, if the configuration asks for one, and those
 * with a valid ACL token. Nobody else can do more than read what is open to everyone. What the
 * sender then may do is checked as for each request. The listener says who a client is, but not
 * what the configuration permits. Runs in: supervisor. Asked by: the network, through the listener.
 */
#ifndef DROVER_SUPERVISOR_HTTP_TCP_GATE_H
#define DROVER_SUPERVISOR_HTTP_TCP_GATE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/list.h"

struct api;
struct api_req;
struct http_tcp;
struct sup;
struct token_check;

/* r is that of api_authenticate_cb; or -EDQUOT if the client has tried too many invalid tokens, and
 * -EBUSY if too many are being checked. */
typedef void tcp_tokens_cb(struct http_tcp *t, int r, const char *why);

/* A client, whose connection has one request at a time. Its texts are printable ASCII. */
struct http_tcp {
	LIST_ENTRY(http_tcp) coming; /* in api.coming until libmicrohttpd has its connection */
	uint32_t link;               /* the listener's number */
	uint32_t listener;           /* the child_generation() of the listener that has it */
	char address[64], certificate[200];
	struct in6_addr from; /* its address; of IPv6 its /64 */
	bool proven;          /* by a certificate or a valid token; it stays so */
	/* While the token of its request is checked: */
	struct token_check *check; /* else NULL */
	LIST_ENTRY(http_tcp) waits;
	tcp_tokens_cb *done;
	struct api_req *req;
	void (*go_on)(struct api_req *req);
};

/* Returns NULL if a text is not printable ASCII. */
struct http_tcp *http_tcp_new(uint32_t link, const char *address, const char *certificate);

/* For http.c, when the head of a request has come. Finds out whether the sender is known, then
 * calls go_on(), now or later. If the request is to be refused, it has its answer by then. */
void tcp_gate_check(struct api_req *req, void (*go_on)(struct api_req *));
/* The request ends: go_on() is not called any more. */
void tcp_gate_forget(struct api_req *req);
/* Returns whether a request whose route was looked for may go on; true at the control socket. Of
 * tasks, whose tokens task_gate.c checks, it refuses only what makes an operator of its sender. */
bool tcp_gate_permits(const struct api_req *req);
void tcp_gate_refuse(struct api_req *req);

/* tcp_tokens.c: finds out whether an ACL token is valid, then calls done(), now or later, unless
 * _forget() was called. */
void tcp_tokens_check(struct sup *sup, struct http_tcp *t, const char *token, tcp_tokens_cb *done);
void tcp_tokens_forget(struct http_tcp *t);
void tcp_tokens_free(struct api *api);

#endif
