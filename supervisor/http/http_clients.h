/* SPDX-License-Identifier: Apache-2.0 */
/* http_clients.h: the connections of the control socket, and limits for slow clients: the time to
 * send a request, and the memory of all requests and answers. Runs in: supervisor. A connection is
 * "waiting" while the agent waits for its client to send or to read. The longest waiting
 * connections are cut off when others need their place or memory; one whose client still sends
 * after SEND_MS is always cut off. */
#ifndef DROVER_SUPERVISOR_HTTP_HTTP_CLIENTS_H
#define DROVER_SUPERVISOR_HTTP_HTTP_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/list.h"

struct MHD_Connection;
struct api_task;
struct http_clients;
struct http_tcp;
struct task_socket;

/* One connection. */
struct http_client {
	TAILQ_ENTRY(http_client) waits; /* link in all->waiting while `waiting` is set */
	struct http_clients *all;
	struct MHD_Connection *conn;
	/* The task by whose socket it came; NULL: the control socket. */
	struct task_socket *task;
	const struct api_task *from;
	bool is_link;         /* it is a link of the listener, for health and metrics */
	struct http_tcp *tcp; /* it is a client of the API over TCP; else NULL */
	int fd;               /* descriptor of the connection */
	uint64_t since_ms;    /* when it began to wait */
	size_t held;          /* bytes of request and answer */
	bool waiting;
	bool reads; /* while waiting: the client has to read, not to send */
	bool cut;   /* cut off: its traffic is ignored until it times out */
};

struct http_clients {
	TAILQ_HEAD(, http_client) waiting; /* sorted, the longest waiting first */
	size_t held, held_max;             /* bytes held by all connections */
	int epoll_fd;                      /* libmicrohttpd's */
};

void http_clients_init(struct http_clients *all, int epoll_fd, size_t held_max);

struct http_client *http_client_new(struct http_clients *all, struct MHD_Connection *conn, int fd);
void http_client_free(struct http_client *c);

/* Sets what the agent waits for: that the client sends a request, that it reads its answer, or
 * nothing of the client, because the agent is working on the answer. */
void http_client_expect_request(struct http_client *c);
void http_client_expect_read(struct http_client *c);
void http_client_expect_nothing(struct http_client *c);

/* Counts n more bytes for the connection. Returns false if all clients together would hold too much
 * memory and no other connection has waited long enough to be cut off, or may be cut off for this
 * one: a client over TCP that has not proven itself cuts off nobody. If no other client holds
 * memory, there is no limit. */
bool http_client_hold(struct http_client *c, size_t n);
/* Counts n bytes less. */
void http_client_release(struct http_client *c, size_t n);

/* Cuts off connections that send for too long, and the longest waiting one if `full` (no other
 * connection can be accepted). Returns after how many milliseconds to call this again; UINT64_MAX:
 * not before an event. */
uint64_t http_clients_tick(struct http_clients *all, bool full);

#endif
