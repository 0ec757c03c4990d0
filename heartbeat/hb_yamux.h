/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_yamux.h: the client side of yamux: many streams over one connection. A state machine over
 * bytes, without descriptors or clock. Runs in: heartbeat.
 *
 * A peer can make it hold HB_YAMUX_INBOUND_MAX streams, and answers to pings until
 * hb_yamux_is_full() says that nothing more should be read. Payload is passed on immediately.
 */
#ifndef DROVER_HEARTBEAT_HB_YAMUX_H
#define DROVER_HEARTBEAT_HB_YAMUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/list.h"
#include "heartbeat/hb_buf.h"

#define HB_YAMUX_WINDOW      262144u
#define HB_YAMUX_INBOUND_MAX 64u
#define HB_YAMUX_UNACKED_MAX 128u /* servers reset those beyond 256 */

struct hb_yamux;
struct hb_stream_ops;

/* Valid until hb_stream_close(), hb_stream_reset(), or on_reset() returns. */
struct hb_stream {
	LIST_ENTRY(hb_stream) link;
	struct hb_yamux *session;
	void *user;
	const struct hb_stream_ops *ops; /* set by the owner, see hb_link.h */
	uint32_t id;
	uint32_t send_window; /* bytes that the peer accepts now */
	uint32_t recv_window; /* bytes that the peer may still send */
	uint32_t taken;       /* received bytes that its window does not include again yet */
	bool opened;          /* our SYN was sent; always true for the peer's */
	bool acked;           /* the peer has accepted it */
	bool ended;           /* the peer has sent FIN */
};

/* Called from hb_yamux_input(); each may close any stream. */
struct hb_yamux_ops {
	/* The peer opened s. Sets s->user, or returns false: s is then reset and freed. */
	bool (*on_open)(struct hb_stream *s);
	/* The owner calls hb_stream_took() for the bytes, now or later. */
	void (*on_data)(struct hb_stream *s, const uint8_t *data, size_t len);
	void (*on_fin)(struct hb_stream *s);
	void (*on_reset)(struct hb_stream *s);
	/* The window has grown. */
	void (*on_window)(struct hb_stream *s);
	/* The answer to hb_yamux_ping(). */
	void (*on_pong)(struct hb_yamux *y, uint32_t value);
	/* No new stream may be opened any more. */
	void (*on_go_away)(struct hb_yamux *y, uint32_t code);
};

struct hb_yamux {
	const struct hb_yamux_ops *ops;
	void *user;
	LIST_HEAD(, hb_stream) streams;
	unsigned n_inbound, n_unacked; /* streams of the peer; ours that it has not accepted yet */
	uint32_t next_id, next_ping;
	bool gone_away;
	struct hb_buf out; /* output for the connection */
	uint8_t head[12];
	size_t n_head;
	/* The Data frame whose payload is being received. */
	uint32_t data_id, data_left;
	bool data_fin;
};

void hb_yamux_init(struct hb_yamux *y, const struct hb_yamux_ops *ops, void *user);
/* Frees all streams without calling ops. */
void hb_yamux_done(struct hb_yamux *y);

/* Consumes all of data. Returns 0, or -EPROTO with *e: the connection must then be closed. */
int hb_yamux_input(struct hb_yamux *y, const uint8_t *data, size_t len, struct err *e);
/* Returns whether so much output is pending that no input should be read that could add to it. */
bool hb_yamux_is_full(const struct hb_yamux *y);
/* Sends a ping and returns its value. */
uint32_t hb_yamux_ping(struct hb_yamux *y);

/* Opens a stream; nothing is sent until its first bytes are written. Returns NULL after a go-away,
 * if ids run out, and while too many streams wait to be accepted. */
struct hb_stream *hb_stream_open(struct hb_yamux *y, void *user);
/* Writes as much as windows and buffer allow; returns how much. */
size_t hb_stream_write(struct hb_stream *s, const void *data, size_t len);
/* Returns len bytes of on_data() to the peer's window. */
void hb_stream_took(struct hb_stream *s, size_t len);
/* Sends FIN and frees the stream; bytes that still arrive are dropped. */
void hb_stream_close(struct hb_stream *s);
void hb_stream_reset(struct hb_stream *s);

#endif
