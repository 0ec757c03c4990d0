/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_link.h: which server is in use. One connection at a time carries the calls; while it is slow,
 * or a server says that it has no leader, the next one is tried, and takes over as soon as it has
 * answered. Runs in: heartbeat.
 */
#ifndef DROVER_HB_LINK_H
#define DROVER_HB_LINK_H

#include <poll.h>

#include "heartbeat/hb.h"
#include "heartbeat/hb_conn.h"
#include "heartbeat/hb_rpc.h"

#define HB_LINK_POLL_MAX 16 /* connections at once */

/* The events of one stream. Its owner sets s->ops and s->user; s->session->user is struct hb. */
struct hb_stream_ops {
	void (*on_data)(struct hb_stream *s, const uint8_t *data, size_t len);
	void (*on_fin)(struct hb_stream *s);
	void (*on_reset)(struct hb_stream *s);
	/* The stream takes more bytes. */
	void (*on_window)(struct hb_stream *s);
};

/* The users of the connections. */
struct hb_link_ops {
	/* A server has opened s. False: it is refused. */
	bool (*open)(struct hb *hb, struct hb_conn *conn, struct hb_stream *s);
	/* Does anybody have a stream on conn? */
	bool (*uses)(const struct hb *hb, const struct hb_conn *conn);
	/* Everything that was written has left: more can be. */
	void (*room)(struct hb *hb, struct hb_conn *conn);
	/* conn is replaced and stays open for what cannot be repeated. */
	void (*move)(struct hb *hb, struct hb_conn *conn);
	/* conn is about to be closed. */
	void (*lose)(struct hb *hb, struct hb_conn *conn, const char *why);
	/* Another server is in use. */
	void (*server)(struct hb *hb);
};

/* With servers in the configuration. resolver: hb_resolve_start()'s. 0 or -errno with *e: TLS's
 * files are not usable. */
int hb_link_new(struct hb *hb, const struct hb_link_ops *ops, int resolver, struct err *e);

/* NULL: there is none now; hb_link_why() says why. */
struct hb_conn *hb_link_current(struct hb_link *l);
const char *hb_link_why(struct hb_link *l);
/* The current server does not do what it should: another is tried. */
void hb_link_complain(struct hb_link *l, const char *why);
/* The servers as the cluster names them. An empty list changes nothing. */
void hb_link_set_servers(struct hb_link *l, const struct hb_rpc_node *node);

/* Fills fds, at most HB_LINK_POLL_MAX; their number. */
size_t hb_link_poll(struct hb_link *l, struct pollfd *fds);
/* After poll; fds as they were filled. */
void hb_link_ready(struct hb_link *l, const struct pollfd *fds, size_t n);
/* Connects, switches, ends. When it wants to be called again, at the latest. */
uint64_t hb_link_tick(struct hb_link *l);
/* Something is there to be read that poll does not know of. */
bool hb_link_has_more(const struct hb_link *l);
/* Writes what the turn left to be written. */
void hb_link_flush(struct hb_link *l);

#endif
