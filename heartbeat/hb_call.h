/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_call.h: calls to the servers: one stream each, a deadline each, and again at another server
 * where that is allowed. Runs in: heartbeat.
 */
#ifndef DROVER_HB_CALL_H
#define DROVER_HB_CALL_H

#include "heartbeat/hb.h"
#include "heartbeat/hb_conn.h"
#include "heartbeat/hb_rpc.h"

#define HB_CALL_BODY_MAX   (64u << 20)
#define HB_CALL_INLINE_MAX 56000 /* of a body that goes up in the packet itself */

/* Bytes of an answer: in memory, then in a memfd. */
struct hb_body {
	struct hb_buf buf;
	int fd; /* -1: all is in buf */
	size_t len;
};

/*
 * The end of a call, once; the callee owns nothing. r 0: answered, error is "" or the server's
 * text, body the answer; hb_body_seal() takes its descriptor. Else -errno with *e.
 */
typedef void hb_call_cb(struct hb *hb, struct hb_call *c, int r, const struct err *e);

/* A call of the supervisor's was answered without an error; before the answer goes up. */
typedef void hb_answered_cb(struct hb *hb, struct hb_call *c);

struct hb_call {
	struct hb_call *next;
	uint32_t serial; /* the supervisor's, 0: our own */
	char method[HB_RPC_METHOD_MAX];
	struct hb_buf request; /* a body of our own, or that came in the packet */
	const uint8_t *mapped; /* or in a memfd */
	size_t mapped_len;
	uint64_t deadline_ms, retry_ms; /* retry_ms: not before */
	uint64_t begun_ns;              /* CLOCK_BOOTTIME before it was sent */
	bool repeat;
	hb_call_cb *done;
	hb_answered_cb *answered; /* of the supervisor's; may be NULL */

	struct hb_conn *conn; /* NULL: waits for a server */
	struct hb_stream *stream;
	struct hb_buf head_out; /* mode byte and head */
	size_t sent;            /* of head_out and body */
	bool tried;             /* bytes of it have left at some time */

	struct hb_rpc_scan scan;
	struct hb_buf head_in;
	bool in_body;
	char error[HB_RPC_ERROR_MAX];
	struct hb_body body;
};

/* Takes request over (emptied), or the map. NULL when there are too many, or without memory. */
struct hb_call *hb_call_new(struct hb *hb, const char *method, struct hb_buf *request,
    const void *mapped, size_t mapped_len, uint64_t timeout_ms, bool repeat, hb_call_cb *done);
/* Without a word to anyone; the server's answer is dropped. */
void hb_call_cancel(struct hb *hb, uint32_t serial);

/* A sealed memfd with the whole body, or -errno: the caller's. */
int hb_body_seal(struct hb_body *b);

/* HB_CALL_REQ, HB_CALL_BIG_REQ: -EPROTO with *e, never for what a server does. */
int hb_call_on_req(struct hb *hb, struct ipc_packet *p, hb_answered_cb *answered, struct err *e);

/* For struct hb_link_ops. */
void hb_calls_on_room(struct hb *hb, struct hb_conn *conn);
void hb_calls_lose(struct hb *hb, struct hb_conn *conn, const char *why);
/* Those that may be repeated leave conn for the server that is now in use. */
void hb_calls_move(struct hb *hb, struct hb_conn *conn);
bool hb_calls_any(const struct hb *hb, const struct hb_conn *conn);
/* Sends what waits, ends what is late. When it wants to be called again. */
uint64_t hb_calls_tick(struct hb *hb);

#endif
