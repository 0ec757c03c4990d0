/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_names.h: looks up the names of the configured servers for a probe, one after the other, by the
 * resolver that the link uses. Runs in: heartbeat.
 */
#ifndef DROVER_HEARTBEAT_HB_NAMES_H
#define DROVER_HEARTBEAT_HB_NAMES_H

#include "heartbeat/hb.h"
#include "heartbeat/hb_resolve.h"

/* HB_NAMES_REQ, which is answered after some seconds at the latest. A second one joins the first.
 */
void hb_names_on_req(struct hb *hb, uint32_t serial);
/* An answer of the resolver, to whichever question. */
void hb_names_on_answer(struct hb *hb, const struct hb_resolve_answer *a);
/* The resolver has ended. */
void hb_names_lose(struct hb *hb);
/* Returns when it must be called again at the latest (CLOCK_MONOTONIC in ms). */
uint64_t hb_names_tick(struct hb *hb);

#endif
