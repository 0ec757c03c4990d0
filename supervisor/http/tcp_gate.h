/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_gate.h: the clients of the API over TCP, and which of their requests are looked at: those of
 * a client that has proven itself by a certificate, if the configuration asks for one, and those
 * with a valid ACL token. Nobody else can do more than read what is open to everyone. What the
 * sender then may do is checked as for each request. The listener says who a client is, but not
 * what the configuration permits. Runs in: supervisor. Asked by: the network, through the listener.
 */
#ifndef DROVER_SUPERVISOR_HTTP_TCP_GATE_H
#define DROVER_SUPERVISOR_HTTP_TCP_GATE_H

#include <stdbool.h>

struct api_req;

/* A client. Its texts are printable ASCII. */
struct http_tcp {
	unsigned refs;
	char address[64], certificate[200];
};

/* Returns NULL if a text is not printable ASCII. */
struct http_tcp *http_tcp_new(const char *address, const char *certificate);
struct http_tcp *http_tcp_ref(struct http_tcp *t);
/* Accepts NULL. */
void http_tcp_unref(struct http_tcp *t);

/* For http.c. Finds out whether the sender is known, then calls go_on(), now or later, or answers.
 */
void tcp_gate_check(struct api_req *req, void (*go_on)(struct api_req *));
/* Returns whether a request whose route was looked for may go on; true for one that did not come
 * over TCP. */
bool tcp_gate_permits(const struct api_req *req);
void tcp_gate_refuse(struct api_req *req);

#endif
