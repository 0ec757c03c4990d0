/* SPDX-License-Identifier: Apache-2.0 */
/* hb.h: heartbeat's context: the structs of its parts, and where they are defined. Runs in:
 * heartbeat. */
#ifndef DROVER_HEARTBEAT_HB_H
#define DROVER_HEARTBEAT_HB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/err.h"
#include "common/ipc.h"
#include "common/list.h"
#include "proto/agent_config.h"

struct hb_link;
struct hb_call;
struct hb_relay;
struct hb_packet;

/* hb_ipc.h: packets that the supervisor has not read yet. */
struct hb_ipc {
	STAILQ_HEAD(, hb_packet) packets;
	unsigned n;
};

/* hb_beat.h */
struct hb_beat {
	uint64_t next_ms;  /* when to send the next HB_BEAT_REQ; UINT64_MAX: after an event */
	uint64_t cycle;    /* of the last request; 0 if none was sent yet */
	uint64_t asked_ns; /* CLOCK_BOOTTIME just before it was sent; 0 after its answer */
	uint64_t ttl_ms;
	unsigned failures; /* consecutive failures at the servers */
	bool at_server; /* a heartbeat is at a server: the supervisor has answered, the server has
			   not */
};

/* hb_names.h: the look-ups of a probe. */
struct hb_names {
	uint32_t serial;            /* of the request; 0: nobody waits */
	uint64_t since_ms;          /* of the request */
	uint32_t next;              /* of the configured servers */
	char asked[256];            /* the name that is being looked up, or "" */
	char missing[ERR_MSG_SIZE]; /* the sentence about a name without an address, or "" */
};

/* The only instance. */
struct hb {
	const struct agent_config *config;
	uint32_t generation;
	int resolver_fd; /* socket of the resolver; -1 without servers */
	uint64_t now_ms; /* CLOCK_MONOTONIC at the beginning of this turn */
	struct lease_page *lease;
	struct hb_ipc ipc;
	struct hb_beat beat;
	struct hb_names names;
	struct hb_link *link;        /* hb_link.h; NULL without servers */
	TAILQ_HEAD(, hb_call) calls; /* hb_call.h */
	unsigned n_calls;
	uint64_t last_seq;
	LIST_HEAD(, hb_relay) relays; /* hb_relay.h */
	uint64_t last_relay;
};

/* Returns a uniformly distributed number in [0, below); below > 0. */
static inline uint64_t
hb_random(uint64_t below)
{
	/* Slightly biased, which does not matter for jitter and shuffling. */
	return below <= UINT32_MAX ? arc4random_uniform((uint32_t)below) : arc4random();
}

#endif
