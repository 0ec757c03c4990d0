/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_conn.h: one connection to a server: TCP, TLS where it is wanted, yamux, and whether the server
 * is still there. Runs in: heartbeat.
 */
#ifndef DROVER_HB_CONN_H
#define DROVER_HB_CONN_H

#include <sys/socket.h>

#include "heartbeat/hb_rpc.h"
#include "heartbeat/hb_yamux.h"

struct ssl_ctx_st;
struct ssl_st;

enum hb_conn_state {
	HB_CONN_CONNECTING,
	HB_CONN_SECURING, /* the TLS handshake */
	HB_CONN_UP,
	HB_CONN_DEAD, /* why says why; its owner frees it */
};

struct hb_conn {
	struct hb_conn *next; /* its owner's */
	char name[HB_RPC_ADDR_SIZE];
	enum hb_conn_state state;
	int fd;
	short events; /* of poll, while it is not up */
	struct ssl_st *ssl;
	struct hb_yamux yamux; /* its user is the owner */
	bool proven;           /* it has answered a ping: whoever is there speaks yamux */
	bool draining;         /* its owner's: nothing new begins here */
	bool more;             /* there is something to read that poll does not know of */
	uint64_t began_ms, heard_ms;
	uint64_t pinged_ms; /* 0: no ping is out */
	struct err why;
};

struct hb_conn_options {
	struct ssl_ctx_st *tls;  /* NULL: plain */
	const char *server_name; /* NULL: any */
	const struct hb_yamux_ops *ops;
	void *user;
};

/* Begins to connect. NULL with *e. */
struct hb_conn *hb_conn_new(const char *name, const struct sockaddr_storage *addr,
    const struct hb_conn_options *options, uint64_t now_ms, struct err *e);
/* Frees its streams without a word: whoever uses them has let go. */
void hb_conn_free(struct hb_conn *c);

/* For poll. */
short hb_conn_events(const struct hb_conn *c);
void hb_conn_ready(
    struct hb_conn *c, const struct hb_conn_options *options, short revents, uint64_t now_ms);
/* Writes what streams have said since, as much as goes. */
void hb_conn_flush(struct hb_conn *c);
/* Pings, and ends what takes too long. When it wants to be called again, at the latest. */
uint64_t hb_conn_tick(struct hb_conn *c, uint64_t now_ms);
/* A ping is out for longer than a healthy server needs. */
bool hb_conn_is_slow(const struct hb_conn *c, uint64_t now_ms);

#endif
