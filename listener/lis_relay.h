/* SPDX-License-Identifier: Apache-2.0 */
/* lis_relay.h: connections to the API. When the head of its first request is complete and valid, a
 * connection gets a link of its own to the supervisor, by which its bytes go in both directions
 * until one side ends: no two clients share a link, so none can be taken for another. The
 * supervisor checks each request. Runs in: listener. Asked by: the network, supervisor. */
#ifndef DROVER_LISTENER_LIS_RELAY_H
#define DROVER_LISTENER_LIS_RELAY_H

#include "listener/lis_conn.h"

#define LIS_RELAY_OUT (16 * 1024)

struct lis_relay {
	struct lis_source source;
	TAILQ_ENTRY(lis_relay) all;
	struct lis_conn *conn;
	uint32_t link;
	int fd;      /* -1: it is wanted, or has ended */
	bool proven; /* its client has shown a certificate or a valid token */
	uint64_t begun_ms;
	bool hangs;    /* its other end is closed; it is not watched any more */
	bool ended;    /* everything was read */
	bool answered; /* at least a byte */
	size_t len;    /* of what the client has to read */
	char out[LIS_RELAY_OUT];
};

TAILQ_HEAD(lis_relays, lis_relay);

/* Wants a link for a connection whose head is complete, or refuses the request. */
void lis_relay_begin(struct lis *l, struct lis_conn *c);
/* A link came. Returns false if no relay wants it. */
bool lis_relay_on_link(struct lis *l, uint32_t link, int fd);
/* The supervisor says that the client of a link has proven itself. */
void lis_relay_prove(struct lis *l, uint32_t link);
void lis_relay_ready(struct lis *l, struct lis_relay *r, uint32_t events);
/* The connection is ready, or its deadline is reached. */
void lis_relay_pump(struct lis *l, struct lis_relay *r);
void lis_relay_late(struct lis *l, struct lis_relay *r);
/* For lis_conn_end() and an answer of the listener's own. */
void lis_relay_free(struct lis *l, struct lis_relay *r);

#endif
