/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_conn.h: one connection to a server: TCP, TLS if configured, yamux, and the detection of dead
 * servers. Runs in: heartbeat.
 */
#ifndef DROVER_HEARTBEAT_HB_CONN_H
#define DROVER_HEARTBEAT_HB_CONN_H

#include <sys/socket.h>

#include "heartbeat/hb_rpc.h"
#include "heartbeat/hb_yamux.h"

struct ssl_ctx_st;
struct ssl_st;

enum hb_conn_state {
	HB_CONN_CONNECTING,
	HB_CONN_SECURING, /* during the TLS handshake */
	HB_CONN_UP,
	HB_CONN_DEAD, /* `why` is the reason; the owner must free it */
};

struct hb_conn {
	LIST_ENTRY(hb_conn) link; /* for the owner */
	char name[HB_RPC_ADDR_SIZE];
	enum hb_conn_state state;
	int fd;
	short events; /* events for poll() until it is up */
	struct ssl_st *ssl;
	struct hb_yamux yamux; /* yamux.user is the owner */
	bool proven;           /* a ping was answered, so the peer speaks yamux */
	bool draining;         /* for the owner: no new stream may be opened here */
	bool more;             /* there is input that poll() does not report */
	uint64_t began_ms, heard_ms;
	uint64_t pinged_ms; /* when the last ping was sent; 0 if it was answered */
	struct err why;
};

struct hb_conn_options {
	struct ssl_ctx_st *tls;  /* NULL: no TLS */
	const char *server_name; /* name for the certificate; NULL: any */
	const struct hb_yamux_ops *ops;
	void *user;
};

/* Begins to connect. Returns a connection for hb_conn_free(), or NULL with *e. */
struct hb_conn *hb_conn_new(const char *name, const struct sockaddr_storage *addr,
    const struct hb_conn_options *options, uint64_t now_ms, struct err *e);
/* Closes the connection and frees its streams; no callback of theirs is called. */
void hb_conn_free(struct hb_conn *c);

/* Returns the events to poll() for. */
short hb_conn_events(const struct hb_conn *c);
void hb_conn_ready(
    struct hb_conn *c, const struct hb_conn_options *options, short revents, uint64_t now_ms);
/* Writes as much pending output as the socket accepts. */
void hb_conn_flush(struct hb_conn *c);
/* Sends pings, and closes a connection that takes too long. Returns when it must be called again at
 * the latest (CLOCK_MONOTONIC in ms). */
uint64_t hb_conn_tick(struct hb_conn *c, uint64_t now_ms);
/* Returns whether a ping has been unanswered for longer than a healthy server needs. */
bool hb_conn_is_slow(const struct hb_conn *c, uint64_t now_ms);

#endif
