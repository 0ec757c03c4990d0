/* SPDX-License-Identifier: Apache-2.0 */
/* lis_conn.h: the connections of clients. Runs in: listener. */
#ifndef DROVER_LISTENER_LIS_CONN_H
#define DROVER_LISTENER_LIS_CONN_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/list.h"
#include "common/tls.h"
#include "listener/lis_answer.h"
#include "listener/lis_gate.h"
#include "listener/lis_head.h"

#define LIS_ADDRESS_SIZE 64 /* "[2001:db8::1]:4711" */

struct lis;
struct lis_door;
struct lis_relay;

/* The kind of object that owns a descriptor of the loop: the first member of that object. */
struct lis_source {
	enum lis_source_kind { LIS_DOOR, LIS_CONN, LIS_LINE, LIS_RELAY } kind;
};

enum lis_conn_state {
	LIS_SHAKES, /* the handshake of TLS */
	LIS_READS,  /* the head of a request */
	LIS_WAITS,  /* on a line, for its answer */
	LIS_WRITES, /* the answer */
	LIS_RELAYS, /* bytes in both directions (lis_relay.h) */
	LIS_DRAINS, /* after the last answer, until the client closes: otherwise it may not arrive
		     */
};

struct lis_conn {
	struct lis_source source;
	TAILQ_ENTRY(lis_conn) all, waits;
	struct lis_door *door;
	int fd;
	struct ssl_st *ssl; /* NULL: without TLS */
	enum lis_conn_state state;
	uint64_t since_ms, deadline_ms;
	struct in6_addr from; /* the client; of IPv6 its /64 */
	char address[LIS_ADDRESS_SIZE];
	char subject[TLS_SUBJECT_SIZE]; /* of its certificate; "": none */
	struct lis_head head;
	struct lis_question question;
	struct lis_relay *relay;
	char *in; /* LIS_HEAD_MAX bytes while it reads; NULL: none came yet */
	size_t in_len;
	char out[512]; /* the head of the answer, or all of a short one */
	size_t out_len, out_at, body_at;
	size_t drained;            /* bytes in LIS_DRAINS */
	struct lis_answer *answer; /* NULL: the listener's own */
	bool closes;               /* after the answer */
	bool served;               /* it has had an answer */
	bool shakes;               /* the first byte of its handshake was seen */
};

/* A connection that was accepted; it is closed if there is no memory. */
void lis_conn_new(
    struct lis *l, struct lis_door *d, int fd, const struct in6_addr *from, const char *address);
/* Frees it at once; _close() first lets what was sent arrive. */
void lis_conn_end(struct lis *l, struct lis_conn *c);
void lis_conn_close(struct lis *l, struct lis_conn *c);
/* For lis_doors_finish(). */
void lis_conn_finish(struct lis *l, struct lis_conn *c);
void lis_conn_ready(struct lis *l, struct lis_conn *c, uint32_t events);
/* Answers a client that waits; adds a reference to the answer. */
void lis_conn_answer(struct lis *l, struct lis_conn *c, struct lis_answer *answer);
void lis_conn_refuse(struct lis *l, struct lis_conn *c, int status, const char *why);
/* Returns the bytes that came, 0 if none did, or -1 if the connection has ended. */
ssize_t lis_conn_receive(struct lis_conn *c, char *buf, size_t size);
/* Returns how many bytes were sent, or -errno; flags as for send(2). */
ssize_t lis_conn_send(struct lis_conn *c, const char *data, size_t len, int flags);
/* Ends what has reached its deadline. Returns the next one; UINT64_MAX: none. */
uint64_t lis_conns_tick(struct lis *l, struct lis_door *d);

#endif
