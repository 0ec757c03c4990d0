/* SPDX-License-Identifier: Apache-2.0 */
/* nomad.h: a cluster of Nomad servers as a source of work: shared types and functions. The servers
 * decide; this room stores their decisions about this node's allocs and reports the results. Runs
 * in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_H

#include "common/clock.h"
#include "supervisor/alloc/client.h"
#include "supervisor/cluster/link/link.h"
#include "supervisor/cluster/rpc/rpc.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/http/api.h"
#include "supervisor/service/service_table.h"
#include "supervisor/source/source_api.h"

struct nomad;
struct nomad_alloc;
struct nomad_invalid;
struct nomad_job;
struct nomad_signing;
struct nomad_wait;
struct acl_known;
struct sd_event_source;

enum watch_state {
	WATCH_OFF,   /* the node is not registered */
	WATCH_LIST,  /* Node.GetClientAllocs is in progress */
	WATCH_PULL,  /* Alloc.GetAllocs is in progress */
	WATCH_WAIT,  /* waits for a timer */
	WATCH_DOUBT, /* waits for a beat before a suspicious list is confirmed */
};

struct nomad {
	struct source base;

	/* nomad_node.c */
	bool registered; /* registered once with this id; durable */
	bool ready;      /* registered since this process started */
	bool denied;     /* the token was refused: the next registration has no token */
	bool unknown;    /* the servers did not know the node, so they may have lost other state */
	char *identity;  /* JWT; NULL: none */
	bool renew_identity;
	struct dirty node_row;
	struct node sent; /* the node as last registered */
	uint64_t register_call, register_at_ms;
	struct sd_event_source *register_timer;
	unsigned register_failures;
	struct text beat;
	uint64_t beats; /* a beat was answered */
	uint64_t beat_ms;
	enum node_eligibility eligibility;
	MODEL_LIST(struct node_event) events;
	uint64_t events_call;
	struct sd_event_source *events_timer;

	/* nomad_watch.c */
	enum watch_state watch;
	uint64_t watch_call, watch_index, watch_asked_ms;
	struct sd_event_source *watch_timer;
	unsigned watch_failures;
	bool watch_fresh;  /* the next list is requested from the leader, with index 0 */
	bool watch_synced; /* a list was processed since this process started */
	bool watch_doubt;  /* the last list lacked running allocs and must be confirmed */
	uint64_t doubt_beats;
	struct rpc_client_allocs_rep list; /* the list in progress: ids to be pulled */
	unsigned list_number;
	size_t wanted_at, wanted_n; /* ids in the current GetAllocs */

	/* nomad_allocs.c */
	struct nomad_job *jobs;
	struct nomad_invalid *invalid;
	struct nomad_alloc *first_done, *last_done;
	unsigned n_done;

	struct nomad_wait *claims;      /* nomad_claims.c */
	struct acl_known *tokens;       /* acl_token.c */
	struct nomad_signing *signings; /* nomad_sign.c */

	/* nomad_services.c */
	struct service_table services;      /* services of allocs */
	struct service_table services_gone; /* services to be deregistered, or being deregistered */
	uint64_t services_call;             /* Upsert */
	struct deferred services_tell;
	struct sd_event_source *services_timer;
	unsigned services_failures;
	size_t services_sent; /* services in that call */
	bool services_single; /* a batch was refused: services are sent one by one */

	/* nomad_update.c */
	struct nomad_alloc *pending;
	uint64_t update_call, update_sent_ms;
	struct sd_event_source *update_timer;
	uint64_t update_due_ms; /* time of the timer; 0: off */
	unsigned update_failures;
};

static inline struct nomad *
nomad_of(struct source *s)
{
	return (struct nomad *)(void *)s;
}

static inline struct nomad *
nomad_of_sup(struct sup *sup)
{
	return nomad_of(sup->source);
}

/* nomad_call.c */
/* Returns a delay between base and twice base, doubled for each failure up to max. */
uint64_t nomad_retry_ms(unsigned *failures, uint64_t base_ms, uint64_t max_ms);
/* Calls fn(nomad) once, ms from now. *timer belongs to the caller; an existing timer is moved. */
void nomad_after(struct nomad *n, struct sd_event_source **timer, uint64_t ms,
    int (*fn)(struct sd_event_source *s, uint64_t usec, void *nomad));
const char *nomad_region(const struct nomad *n);
const char *nomad_token(const struct nomad *n);
/* Fills in region and token. If memory is short, they stay empty and the servers refuse the call.
 */
void nomad_query(struct nomad *n, struct rpc_query *q);
void nomad_write(struct nomad *n, struct rpc_write *w);
/* Encodes req and calls link_call(). */
uint64_t nomad_call(struct nomad *n, const char *method, const struct type *type, const void *req,
    unsigned deadline_ms, unsigned flags, link_cb *cb, void *arg);

#endif
