/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_beat.h: heartbeats. heartbeat sends HB_BEAT_REQ to the supervisor's work loop. With the
 * embedded server, its answer renews the lease; with servers, its answer is the heartbeat that is
 * sent to a server, and the server's answer renews the lease. Runs in: heartbeat.
 */
#ifndef DROVER_HEARTBEAT_HB_BEAT_H
#define DROVER_HEARTBEAT_HB_BEAT_H

#include "heartbeat/hb.h"

void hb_beat_init(struct hb *hb);
/* Sends a request when it is due. Returns when it must be called again (CLOCK_MONOTONIC in ms). */
uint64_t hb_beat_tick(struct hb *hb);
/* Handles HB_BEAT_REP. */
void hb_beat_on_rep(struct hb *hb, const struct ipc_packet *p);
/* Called after a successful call of the supervisor. Node.Register counts as a heartbeat, and its
 * answer says when the next one is due. */
void hb_beat_on_answer(struct hb *hb, struct hb_call *c);
/* Called when another server is in use: it must get a heartbeat soon. */
void hb_beat_on_server(struct hb *hb);

#endif
