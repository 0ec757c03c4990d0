/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_link.h: chooses the server in use. One connection at a time carries the calls. If it is slow,
 * or its server reports that it has no leader, heartbeat tries the next server and switches to it
 * as soon as it has answered. Runs in: heartbeat.
 */
#ifndef DROVER_HEARTBEAT_HB_LINK_H
#define DROVER_HEARTBEAT_HB_LINK_H

#include <poll.h>

#include "heartbeat/hb.h"
#include "heartbeat/hb_conn.h"
#include "heartbeat/hb_rpc.h"

#define HB_LINK_POLL_MAX 16 /* maximum number of connections, with the resolver */

/* Callbacks of one stream. Its owner sets s->ops and s->user; s->session->user is struct hb. */
struct hb_stream_ops {
	void (*on_data)(struct hb_stream *s, const uint8_t *data, size_t len);
	void (*on_fin)(struct hb_stream *s);
	void (*on_reset)(struct hb_stream *s);
	/* The peer accepts more bytes. */
	void (*on_window)(struct hb_stream *s);
};

/* Callbacks for the users of the connections. */
struct hb_link_ops {
	/* A server has opened s. Returns false to reject it. */
	bool (*open)(struct hb *hb, struct hb_conn *conn, struct hb_stream *s);
	/* Returns whether conn has a stream in use. */
	bool (*uses)(const struct hb *hb, const struct hb_conn *conn);
	/* All output of conn has been sent, so more can be written. */
	void (*room)(struct hb *hb, struct hb_conn *conn);
	/* conn is replaced; it stays open for calls that cannot be repeated. */
	void (*move)(struct hb *hb, struct hb_conn *conn);
	/* conn is about to be closed. */
	void (*lose)(struct hb *hb, struct hb_conn *conn, const char *why);
	/* Another server, or none, is in use. */
	void (*server)(struct hb *hb);
};

/* Makes the link, if servers are configured. resolver is from hb_resolve_start(). Returns 0, or
 * -errno with *e if a TLS file cannot be used. */
int hb_link_new(struct hb *hb, const struct hb_link_ops *ops, int resolver, struct err *e);

/* Returns the connection in use, or NULL if there is none; hb_link_why() then returns the
 * reason. */
struct hb_conn *hb_link_current(struct hb_link *l);
const char *hb_link_why(struct hb_link *l);
/* Has the resolver look up a name, for hb_names.h. Returns 0 or -errno. */
int hb_link_resolve(struct hb_link *l, const char *host);
/* Reports a failure of the current server, so that another one is tried. */
void hb_link_complain(struct hb_link *l, const char *why);
/* Sets the servers as the cluster lists them. An empty list is ignored. */
void hb_link_set_servers(struct hb_link *l, const struct hb_rpc_node *node);

/* Fills fds with at most HB_LINK_POLL_MAX entries and returns their number. */
size_t hb_link_poll(struct hb_link *l, struct pollfd *fds);
/* Handles the result of poll() on the fds that hb_link_poll() filled. */
void hb_link_ready(struct hb_link *l, const struct pollfd *fds, size_t n);
/* Connects, switches and closes. Returns when it must be called again at the latest
 * (CLOCK_MONOTONIC in ms). */
uint64_t hb_link_tick(struct hb_link *l);
/* Returns whether there is input that poll() does not report. */
bool hb_link_has_more(const struct hb_link *l);
/* Sends the output of the turn. */
void hb_link_flush(struct hb_link *l);

#endif
