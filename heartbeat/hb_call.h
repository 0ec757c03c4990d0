/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_call.h: calls to the servers. Each has a stream of its own and a deadline, and is repeated at
 * another server if that is allowed. Runs in: heartbeat.
 */
#ifndef DROVER_HEARTBEAT_HB_CALL_H
#define DROVER_HEARTBEAT_HB_CALL_H

#include "heartbeat/hb.h"
#include "heartbeat/hb_conn.h"
#include "heartbeat/hb_rpc.h"

#define HB_CALL_BODY_MAX   (64u << 20)
#define HB_CALL_INLINE_MAX 56000 /* largest body that goes to the supervisor inside the packet */

/* The body of an answer: in buf, from HB_CALL_INLINE_MAX on in a memfd. */
struct hb_body {
	struct hb_buf buf;
	int fd; /* -1 while the body is in buf */
	size_t len;
};

/*
 * Called once at the end of a call; the callee owns nothing. If r is 0, the server has answered:
 * error is NULL or its error, and body is the answer, whose descriptor hb_body_seal() returns. Else
 * r is -errno, with *e.
 */
typedef void hb_call_cb(struct hb *hb, struct hb_call *c, int r, const struct err *e);

/* Called when a call of the supervisor was answered without an error, before the answer is passed
 * on. */
typedef void hb_answered_cb(struct hb *hb, struct hb_call *c);

struct hb_call {
	TAILQ_ENTRY(hb_call) link;
	uint32_t serial; /* of the supervisor's request; 0 for a call of heartbeat */
	char method[HB_RPC_METHOD_MAX];
	struct hb_buf request; /* a body of heartbeat, or one that came in the packet */
	const uint8_t *mapped; /* or the body in a memfd */
	size_t mapped_len;
	uint64_t deadline_ms, retry_ms; /* retry_ms: no attempt before */
	uint64_t begun_ns;              /* CLOCK_BOOTTIME before it was sent */
	bool repeat;
	hb_call_cb *done;
	hb_answered_cb *answered; /* for calls of the supervisor; may be NULL */

	struct hb_conn *conn; /* NULL while it waits for a server */
	struct hb_stream *stream;
	struct hb_buf head_out; /* mode byte and head of the request */
	size_t sent;            /* bytes of head_out and body */
	bool tried;             /* some of its bytes have been sent */

	struct hb_rpc_scan scan;
	struct hb_buf head_in;
	bool in_body;
	char *error; /* of the server; NULL: none */
	struct hb_body body;
};

/* Adds a call. Takes over the contents of request, or the map. Returns NULL if there are too many
 * calls. */
struct hb_call *hb_call_new(struct hb *hb, const char *method, struct hb_buf *request,
    const void *mapped, size_t mapped_len, uint64_t timeout_ms, bool repeat, hb_call_cb *done);
/* Cancels a call of the supervisor without a reply; the server's answer is dropped. */
void hb_call_cancel(struct hb *hb, uint32_t serial);

/* Returns a sealed memfd with the whole body, which the caller closes, or -errno. */
int hb_body_seal(struct hb_body *b);

/* Handles HB_CALL_REQ and HB_CALL_BIG_REQ. Returns 0, or -EPROTO with *e for an invalid request;
 * failures of a server are not errors here. */
int hb_call_on_req(struct hb *hb, struct ipc_packet *p, hb_answered_cb *answered, struct err *e);

/* For struct hb_link_ops. */
void hb_calls_on_room(struct hb *hb, struct hb_conn *conn);
void hb_calls_lose(struct hb *hb, struct hb_conn *conn, const char *why);
/* Resets the calls on conn that may be repeated, so that they are sent to the server now in use. */
void hb_calls_move(struct hb *hb, struct hb_conn *conn);
bool hb_calls_any(const struct hb *hb, const struct hb_conn *conn);
/* Sends calls that wait, fails those past their deadline. Returns when it must be called again
 * (CLOCK_MONOTONIC in ms). */
uint64_t hb_calls_tick(struct hb *hb);

#endif
