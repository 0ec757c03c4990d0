/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_beat.h: the beat. The supervisor's work loop is asked; without servers its answer moves the
 * lease, with servers its answer is the beat that goes to them, and theirs moves it. Runs in:
 * heartbeat.
 */
#ifndef DROVER_HB_BEAT_H
#define DROVER_HB_BEAT_H

#include "heartbeat/hb.h"

void hb_beat_init(struct hb *hb);
/* Asks when it is time. When it wants to be called again. */
uint64_t hb_beat_tick(struct hb *hb);
/* HB_BEAT_REP. */
void hb_beat_on_rep(struct hb *hb, const struct ipc_packet *p);
/* A call of the supervisor's was answered. Node.Register counts as a beat, and its answer says when
 * the next is due. */
void hb_beat_on_answer(struct hb *hb, struct hb_call *c);
/* Another server is in use: it has to hear of the node. */
void hb_beat_on_server(struct hb *hb);

#endif
