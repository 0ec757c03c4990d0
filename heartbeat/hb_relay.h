/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_relay.h: relays streams between servers and the supervisor: requests of servers and their
 * answers, streaming requests of servers, and streaming requests of the supervisor. Their contents
 * are scanned only for the ends of objects. Runs in: heartbeat.
 */
#ifndef DROVER_HEARTBEAT_HB_RELAY_H
#define DROVER_HEARTBEAT_HB_RELAY_H

#include "heartbeat/hb.h"
#include "heartbeat/hb_conn.h"
#include "proto/heartbeat.pb-c.h"

/* Accepts a server's new stream and sets s->user; false if it is rejected. */
bool hb_relay_open(struct hb *hb, struct hb_conn *conn, struct hb_stream *s);
/* The connection is closed. */
void hb_relays_lose(struct hb *hb, struct hb_conn *conn);
/* The connection's output buffer is empty: streams that wait continue. */
void hb_relays_on_room(struct hb *hb, struct hb_conn *conn);
bool hb_relays_any(const struct hb *hb, const struct hb_conn *conn);

/* Handles HB_STREAM_ASK_EV. Returns 0, or -EPROTO with *e for an invalid message; failures of a
 * server are not errors here. */
int hb_relay_on_ask(struct hb *hb, const HbStreamAskEv *ev, struct err *e);
/* Handles the supervisor's other HB_STREAM_…_EV. Returns 0, or -EPROTO with *e for a message that
 * it must not send. */
int hb_relay_on_event(struct hb *hb, const struct ipc_packet *p, struct err *e);

#endif
