/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nomad.h: a cluster of Nomad servers as a source of work: what its files offer each other. The
 * servers decide; this keeps what they said of this node's allocs, and tells them what became of
 * it. Runs in: supervisor.
 */
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
struct nomad_signing;
struct nomad_wait;
struct acl_known;
struct sd_event_source;

/* A job as it came with some alloc, and its row. It is there while an alloc is of it. */
struct nomad_job {
	struct nomad_job *next;
	struct job_ref *ref;
	unsigned n_allocs;
	struct dirty row;
	bool gone;
};

/* sup_alloc.source_data */
struct nomad_alloc {
	struct sup_alloc *sa;
	struct nomad_job *job;
	struct job_ref *runs_by;  /* the version whose tasks its runner holds */
	struct nomad_alloc *next; /* of those whose update is to be sent */
	bool pending;             /* it is in that list */
	bool sending;             /* it is in the call that is out */
	bool acked;               /* the servers have had an update of it ... */
	uint64_t acked_digest;    /* ... which said this */
	uint64_t sending_digest;
	enum client_status acked_status, sending_status;
	unsigned seen;  /* the number of the last list that had it */
	bool removed;   /* the servers have forgotten it: it is being destroyed */
	bool claimed;   /* a volume of it may be claimed */
	bool destroyed; /* client_alloc_destroy() was called */
	struct nomad_alloc *prev_done, *next_done;
	bool done; /* in the list of those that may be destroyed */
};

/* An alloc that could not be taken. Told to the servers, not asked for again. */
struct nomad_invalid {
	struct nomad_invalid *next;
	struct alloc update;
	uint64_t alloc_modify_index;
	bool told, sending;
	unsigned seen; /* the number of the last list that had it */
};

enum watch_state {
	WATCH_OFF,   /* the node is not registered */
	WATCH_LIST,  /* Node.GetClientAllocs is out */
	WATCH_PULL,  /* Alloc.GetAllocs is out */
	WATCH_WAIT,  /* for a timer */
	WATCH_DOUBT, /* for a beat, before an answer that lacks too much is asked for again */
};

struct nomad {
	struct source base;

	/* nomad_node.c */
	bool registered; /* once, by this id; durable */
	bool ready;      /* since this process began */
	bool denied;     /* the token was refused: the next registration is without */
	bool unknown;    /* the servers did not know the node: what else have they forgotten? */
	char *identity;  /* JWT; NULL: none */
	bool renew_identity;
	struct dirty node_row;
	struct node sent; /* what the servers have */
	uint64_t register_call, register_at_ms;
	struct sd_event_source *register_timer;
	unsigned register_failures;
	struct text beat;
	uint64_t beats; /* answered */
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
	bool watch_fresh;  /* the next list is asked of the leader, from the beginning */
	bool watch_synced; /* a list has been worked through since this process began */
	bool watch_doubt;  /* the last list lacked too much and is to be confirmed */
	uint64_t doubt_beats;
	struct rpc_client_allocs_rep
	    list; /* the one that is worked through: what is to be pulled */
	unsigned list_number;
	size_t wanted_at, wanted_n; /* the ones that GetAllocs is asked for */

	/* nomad_allocs.c */
	struct nomad_job *jobs;
	struct nomad_invalid *invalid;
	struct nomad_alloc *first_done, *last_done;
	unsigned n_done;

	struct nomad_wait *claims;      /* nomad_claims.c */
	struct acl_known *tokens;       /* acl_token.c */
	struct nomad_signing *signings; /* nomad_sign.c */

	/* nomad_services.c */
	struct service_table services;      /* of allocs */
	struct service_table services_gone; /* to be taken out, or being so */
	uint64_t services_call;             /* Upsert */
	struct deferred services_tell;
	struct sd_event_source *services_timer;
	unsigned services_failures;
	size_t services_sent; /* with it */
	bool services_single; /* one of many is refused: find out which */

	/* nomad_update.c */
	struct nomad_alloc *pending;
	uint64_t update_call, update_sent_ms;
	struct sd_event_source *update_timer;
	uint64_t update_due_ms; /* of the timer; 0: off */
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

static inline struct nomad_alloc *
nomad_alloc_of(struct sup_alloc *sa)
{
	return sa->source_data;
}

/* nomad.c */
int64_t nomad_now_ns(void);
/* base and up to as much again, doubled with each failure until it is max. */
uint64_t nomad_retry_ms(unsigned *failures, uint64_t base_ms, uint64_t max_ms);
/* Calls fn(nomad) once, ms from now; *timer is one's own. A timer that is there is moved. */
void nomad_after(struct nomad *n, struct sd_event_source **timer, uint64_t ms,
    int (*fn)(struct sd_event_source *s, uint64_t usec, void *nomad));
const char *nomad_region(const struct nomad *n);
const char *nomad_token(const struct nomad *n);
/* Fills region and token. -ENOMEM is left to be found by the servers. */
void nomad_query(struct nomad *n, struct rpc_query *q);
void nomad_write(struct nomad *n, struct rpc_write *w);
/* link_call() with req encoded. */
uint64_t nomad_call(struct nomad *n, const char *method, const struct type *type, const void *req,
    unsigned deadline_ms, unsigned flags, link_cb *cb, void *arg);

/* nomad_node.c */
int nomad_node_load(struct nomad *n, struct err *e);
void nomad_node_start(struct nomad *n);
void nomad_node_free(struct nomad *n);
/* Does a server's error say that it does not know this node (any more)? Then it is registered
 * again. */
bool nomad_node_check_unknown(struct nomad *n, int r, const struct err *e);
/* Registers the node as it is, soon: the index of that says how far the servers' state is. */
void nomad_node_register_again(struct nomad *n);
/* The node has changed: registered again, soon. */
void nomad_node_changed(struct nomad *n);
void nomad_node_event(struct nomad *n, const char *subsystem, const char *message, const char *key,
    const char *value);
extern const struct link_events nomad_link_events;

/* nomad_watch.c */
void nomad_watch_start(struct nomad *n);
/* The node was unknown and is registered anew: what the servers say of its allocs has a new
 * beginning. */
void nomad_watch_restart(struct nomad *n);
/* A call has been answered: what waits for a better time is tried now. */
void nomad_watch_wake(struct nomad *n);
void nomad_watch_free(struct nomad *n);

/* nomad_allocs.c */
int nomad_allocs_load(struct nomad *n, struct err *e);
/* After the restore: what was over before this supervisor has no runner that would tell of it, and
 * the last one may have died before it did. */
void nomad_allocs_start(struct nomad *n);
/* A new list: each of its entries is asked about. Does it have to be pulled? */
void nomad_allocs_begin_list(struct nomad *n);
bool nomad_alloc_is_news(struct nomad *n, const char *id, uint64_t alloc_modify_index);
/* Of those that are to run here, how many has it not? */
unsigned nomad_allocs_lacking(const struct nomad *n);
/* Takes over what *a holds: a new alloc or a newer version. */
void nomad_alloc_put(struct nomad *n, struct alloc *a);
void nomad_alloc_put_invalid(struct nomad *n, struct alloc *a, const struct err *e);
/* The list is complete: what is not in it is forgotten by the servers. */
void nomad_allocs_remove_others(struct nomad *n);
void nomad_alloc_updated(struct source *s, struct sup_alloc *sa);
void nomad_alloc_destroyed(struct source *s, struct sup_alloc *sa);
/* Removes what is left of it on the node; false: it is not over, or nothing is left. */
bool nomad_alloc_collect(struct source *s, struct sup_alloc *sa);
bool nomad_alloc_collect_oldest(struct source *s);
void nomad_allocs_free(struct nomad *n);

/* nomad_update.c */
void nomad_update_look(struct nomad *n, struct nomad_alloc *na);
void nomad_update_forget(struct nomad *n, struct nomad_alloc *na);
/* Everything that is not over is told again. */
void nomad_update_all(struct nomad *n);
void nomad_update_soon(struct nomad *n);
void nomad_update_free(struct nomad *n);

/* nomad_needs.c: what of the alloc's group this node cannot do. 0 or -EINVAL with the sentence. */
int nomad_check(struct source *s, const struct sup_alloc *sa, struct err *e);

/* nomad_claims.c */
void nomad_claim(struct source *s, struct sup_alloc *sa, const struct volume_request *vr,
    claim_cb *cb, void *arg);
void nomad_claim_cancel(struct source *s, struct sup_alloc *sa);
void nomad_release(struct source *s, struct sup_alloc *sa, const struct volume_request *vr);
/* The first beat has been answered: what waited for it is asked for. */
void nomad_claims_begin(struct nomad *n);
void nomad_claims_free(struct nomad *n);

/* nomad_services.c */
int nomad_services_load(struct nomad *n, struct err *e);
/* The client has restored its allocs. */
void nomad_services_start(struct nomad *n);
void nomad_services_set(struct source *source, struct sup_alloc *sa, const char *workload,
    const struct service_registration *v, size_t n);
/* What the servers lack is told in this turn. */
void nomad_services_soon(struct nomad *n);
/* The node is registered, or back: everything is told again. */
void nomad_services_all(struct nomad *n);
void nomad_services_free(struct nomad *n);

/* nomad_sign.c */
void nomad_sign(struct source *s, struct sup_alloc *sa, const struct source_token *wanted, size_t n,
    sign_cb *cb, void *arg);
void nomad_sign_cancel(struct source *s, struct sup_alloc *sa);
void nomad_sign_free(struct nomad *n);

/* nomad_paths.c */
const struct api_route *nomad_api_routes(void);

/* nomad_api.c */
/* Do the servers answer it, unless this node can? */
bool nomad_api_is_mapped(const struct api_req *req);
/* The token of who asks; NULL: none. */
const char *nomad_api_token(const struct api_req *req);

/* nomad_requests.c */
extern const struct link_method nomad_methods[];

#endif
