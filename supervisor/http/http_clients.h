/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_clients.h: the connections of the control socket, and what slow clients may cost: how long
 * one may take to send a request, and how much memory the requests and answers of all of them hold.
 * Runs in: supervisor.
 *
 * A connection whose client has to send or to read is "waiting". The longest waiting ones are cut
 * off when others need their place or their memory, those that still send after SEND_MS anyway.
 */
#ifndef DROVER_SUPERVISOR_HTTP_HTTP_CLIENTS_H
#define DROVER_SUPERVISOR_HTTP_HTTP_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct MHD_Connection;
struct http_clients;

/* One connection. */
struct http_client {
	TAILQ_ENTRY(http_client) waits; /* in all->waiting while waiting is set */
	struct http_clients *all;
	struct MHD_Connection *conn;
	int fd;            /* conn's */
	uint64_t since_ms; /* when it began to wait */
	size_t held;       /* bytes of request and answer */
	bool waiting, reads, cut;
};

struct http_clients {
	TAILQ_HEAD(, http_client) waiting; /* the longest waiting first */
	size_t held;                       /* by all of them */
	int epoll_fd;                      /* libmicrohttpd's */
};

void http_clients_init(struct http_clients *all, int epoll_fd);

/* NULL: out of memory. */
struct http_client *http_client_new(struct http_clients *all, struct MHD_Connection *conn, int fd);
void http_client_free(struct http_client *c);

/* From now on its client has to send a request, or to read an answer; or the agent has to answer.
 */
void http_client_sends(struct http_client *c);
void http_client_reads(struct http_client *c);
void http_client_asks(struct http_client *c);

/*
 * Counts n more bytes as held for it. False: all clients together would hold too much, and none of
 * the others waits for so long that it could be cut off. If no other client holds memory, there is
 * no limit.
 */
bool http_client_hold(struct http_client *c, size_t n);
void http_client_release(struct http_client *c, size_t n);

/*
 * Cuts off who sends for too long, and the longest waiting one if `full`: no other connection can
 * be taken. Returns in how many milliseconds to call this again; UINT64_MAX: not before something
 * happens.
 */
uint64_t http_clients_tick(struct http_clients *all, bool full);

#endif
