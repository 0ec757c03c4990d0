/* SPDX-License-Identifier: Apache-2.0 */
/* hb.h: heartbeat's one context: what its parts are and where. Runs in: heartbeat. */
#ifndef DROVER_HB_H
#define DROVER_HB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/err.h"
#include "common/ipc.h"
#include "proto/agent_config.h"

struct hb_link;
struct hb_call;
struct hb_relay;
struct hb_packet;

/* hb_ipc.h: what waits for the supervisor to read it. */
struct hb_ipc {
	struct hb_packet *first, **end;
	unsigned n;
};

/* hb_beat.h */
struct hb_beat {
	uint64_t next_ms;  /* when the next question is due; UINT64_MAX: when something happens */
	uint64_t cycle;    /* of the question that is out; 0: none yet */
	uint64_t asked_ns; /* CLOCK_BOOTTIME just before it was sent; 0: it is answered */
	uint64_t ttl_ms;
	unsigned failures; /* in a row, at the servers */
	bool at_server;    /* the supervisor has answered, a server has not */
};

/* One per process. */
struct hb {
	const struct agent_config *config;
	uint32_t generation;
	uint64_t now_ms; /* CLOCK_MONOTONIC, of this turn */
	struct lease_page *lease;
	struct hb_ipc ipc;
	struct hb_beat beat;
	struct hb_link *link;    /* hb_link.h; NULL: no servers */
	struct hb_call *calls;   /* hb_call.h */
	struct hb_relay *relays; /* hb_relay.h */
	uint64_t last_relay;
};

/* Uniform in [0, below); below > 0. */
static inline uint64_t
hb_random(uint64_t below)
{
	/* The bias is of no matter for jitter and shuffling. */
	return below <= UINT32_MAX ? arc4random_uniform((uint32_t)below) : arc4random();
}

#endif
