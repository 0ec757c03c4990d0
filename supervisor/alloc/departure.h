/* SPDX-License-Identifier: Apache-2.0 */
/*
 * departure.h: the node lands or retires. Landing finishes or stops what runs, keeps data, and ends
 * the agent; its next start comes back. Retiring also removes everything of the allocs and has the
 * servers forget the node; the data directory then refuses to start until an operator lets it
 * rejoin as a new node (drover node rejoin). A node that the source has forgotten removes
 * everything as well, but joins again at once, as a new node. The state is durable before anyone is
 * told. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_DEPARTURE_H
#define DROVER_SUPERVISOR_ALLOC_DEPARTURE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

struct sup;

enum departure_state {
	DEPARTURE_NONE, /* the node works */
	DEPARTURE_LANDING,
	DEPARTURE_LANDED,
	DEPARTURE_RETURNING, /* the servers are to make the node eligible again */
	DEPARTURE_RETIRING,
	DEPARTURE_RETIRED,
	DEPARTURE_RENEWING, /* the servers have forgotten the node, or are to: all is removed */
	DEPARTURE_RENEWED,  /* that is done: the next supervisor joins as a new node */
	DEPARTURE_STATES
};
extern const char *const departure_names[DEPARTURE_STATES];

enum departure_event {
	DEPARTURE_LAND,
	DEPARTURE_RETIRE,
	DEPARTURE_CANCEL,
	DEPARTURE_FINISHED,  /* nothing is left to be done, or the deadline has passed */
	DEPARTURE_STARTED,   /* the agent was started again */
	DEPARTURE_RETURNED,  /* the servers place allocs on the node again */
	DEPARTURE_REJOIN,    /* an operator lets a retired node join as a new one */
	DEPARTURE_FORGOTTEN, /* a node with client { ephemeral } was not heard for too long */
	DEPARTURE_EVENTS
};
/* Returns the state that follows, or -EINVAL with a sentence: the event is refused in this state.
 */
int departure_next(enum departure_state state, enum departure_event event, struct err *e);

/*
 * Reads the state, before the node's identity is read. Returns 0; 1 if the agent must end now,
 * because its last work was to land or retire (PROC_EXIT_LEFT); -ESHUTDOWN with a sentence if the
 * node is retired.
 */
int departure_new(struct sup *sup, struct err *e);
/* The source has started: continues what the last supervisor had begun. */
void departure_start(struct sup *sup);
void departure_free(struct sup *sup);

enum departure_state departure_state(const struct sup *sup);
/* A request by LAND, RETIRE or CANCEL. deadline_ns: until allocs are stopped; -1: at once, 0:
 * never. token: with which the servers may be asked to forget the node; NULL: the node's. Returns
 * 0; -EINVAL with *e if the state refuses it; else -errno with *e, because state.db cannot be
 * written now: then nothing has changed. Durable in this turn. */
int departure_request(struct sup *sup, enum departure_event event, int64_t deadline_ns,
    const char *token, struct err *e);
/* SIGUSR1 and SIGUSR2: as a request with the deadline of drain_on_shutdown; ignored if the node
 * lands or retires already. */
void departure_signal(struct sup *sup, int signo);
/* For a source: the servers do not know the node any more. Returns true if it retires, so that it
 * must not register again. */
bool departure_is_wanted_gone(struct sup *sup);
/* For a source: the servers must not hear of this node any more, until it is a new one. */
bool departure_is_renewing(const struct sup *sup);
/* Returns the state as the API shows it; a new reference. */
json_t *departure_show(struct sup *sup);

#endif
