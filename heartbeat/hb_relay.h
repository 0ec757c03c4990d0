/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_relay.h: streams that servers open, between them and the supervisor: requests and their
 * answers, and streaming ones; and streaming ones that the supervisor opens. What they carry is not
 * looked into, only where it ends. Runs in: heartbeat.
 */
#ifndef DROVER_HB_RELAY_H
#define DROVER_HB_RELAY_H

#include "heartbeat/hb.h"
#include "heartbeat/hb_conn.h"
#include "proto/heartbeat.pb-c.h"

/* A server's new stream; false: it is refused. Sets s->user. */
bool hb_relay_open(struct hb *hb, struct hb_conn *conn, struct hb_stream *s);
/* The connection is gone. */
void hb_relays_lose(struct hb *hb, struct hb_conn *conn);
/* Its buffer has emptied: those that wait go on. */
void hb_relays_on_room(struct hb *hb, struct hb_conn *conn);
bool hb_relays_any(const struct hb *hb, const struct hb_conn *conn);

/* HB_STREAM_ASK_EV. -EPROTO with *e, never for what a server does. */
int hb_relay_on_ask(struct hb *hb, const HbStreamAskEv *ev, struct err *e);
/* The other HB_STREAM_…_EV of the supervisor. -EPROTO with *e for what it may not say. */
int hb_relay_on_event(struct hb *hb, const struct ipc_packet *p, struct err *e);

#endif
