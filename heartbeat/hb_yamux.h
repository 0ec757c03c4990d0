/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_yamux.h: yamux, the client's side: many streams over one connection. A state machine over
 * bytes: no descriptor, no clock. Runs in: heartbeat.
 *
 * What a peer can make it hold: HB_YAMUX_INBOUND_MAX streams of its own, and answers to pings until
 * hb_yamux_is_full() says that nothing more should be read. Payload is handed on as it comes.
 */
#ifndef DROVER_HB_YAMUX_H
#define DROVER_HB_YAMUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "heartbeat/hb_buf.h"

#define HB_YAMUX_WINDOW      262144u
#define HB_YAMUX_INBOUND_MAX 64u
#define HB_YAMUX_UNACKED_MAX 128u /* a server resets those beyond 256 */

struct hb_yamux;
struct hb_stream_ops;

/* Valid until hb_stream_close(), hb_stream_reset(), or on_reset() returns. */
struct hb_stream {
	struct hb_stream *next;
	struct hb_yamux *session;
	void *user;
	const struct hb_stream_ops *ops; /* for hb_link.h */
	uint32_t id;
	uint32_t send_window; /* bytes that the peer still takes */
	uint32_t recv_window; /* bytes that it may still send */
	uint32_t taken;       /* of those it sent, not yet given back to it */
	bool opened;          /* our SYN is out; always of the peer's */
	bool acked;           /* the peer has taken it */
	bool ended;           /* its FIN came */
};

/* Called from within hb_yamux_input(); each may close any stream. */
struct hb_yamux_ops {
	/* The peer opened s. It sets s->user, or returns false: s is reset and no more. */
	bool (*on_open)(struct hb_stream *s);
	/* Whoever takes the bytes says hb_stream_took(), now or later. */
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
	struct hb_stream *streams;
	unsigned n_inbound, n_unacked; /* of the peer's; of ours that it has not taken yet */
	uint32_t next_id, next_ping;
	bool gone_away, no_memory;
	struct hb_buf out; /* to be written to the connection */
	uint8_t head[12];
	size_t n_head;
	/* The Data frame whose payload is coming. */
	uint32_t data_id, data_left;
	bool data_fin;
};

void hb_yamux_init(struct hb_yamux *y, const struct hb_yamux_ops *ops, void *user);
/* Frees all streams; no function of ops is called. */
void hb_yamux_done(struct hb_yamux *y);

/* Takes all of data. -EPROTO or -ENOMEM with *e: the connection is of no use any more. */
int hb_yamux_input(struct hb_yamux *y, const uint8_t *data, size_t len, struct err *e);
/* So much waits in `out` that nothing should be read that could add to it. */
bool hb_yamux_is_full(const struct hb_yamux *y);
/* Sends a ping; its value. */
uint32_t hb_yamux_ping(struct hb_yamux *y);

/* Opens a stream: nothing is sent before its first bytes are. NULL after a go-away, without memory
 * or ids, and while too many wait for the peer to take them. */
struct hb_stream *hb_stream_open(struct hb_yamux *y, void *user);
/* Returns how much was taken: what windows and buffer allow. */
size_t hb_stream_write(struct hb_stream *s, const void *data, size_t len);
/* len bytes of on_data() were taken: the peer may send as many again. */
void hb_stream_took(struct hb_stream *s, size_t len);
/* Sends FIN; what still comes is dropped. */
void hb_stream_close(struct hb_stream *s);
void hb_stream_reset(struct hb_stream *s);

#endif
